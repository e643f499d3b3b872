// Several communicators and many operations in flight.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

class WorldTest : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Worlds, WorldTest, testing::ValuesIn(test_layouts()));

TEST_P(WorldTest, SplitOrdersRanksByTheOldOnes) {
  run_all(GetParam(), 6, [](Communicator& world) {
    const int rank = world.rank().value;
    auto third = world.split(rank % 3);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->world_size(), 2);
    EXPECT_EQ(third->rank().value, rank / 3);
    auto none = world.split(rank == 4 ? -5 : 7);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->world_size(), rank == 4 ? 0 : 5);
    EXPECT_EQ(none->rank().value, rank == 4 ? -1 : rank - (rank > 4));
    // A child of a child.
    auto alone = third->split(third->rank().value);
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->world_size(), 1);
    int value = rank;
    expect_ok(third->all_reduce(&value, &value, 1, DataType::kI32, ReduceOp::kSum).wait());
    EXPECT_EQ(value, 2 * (rank % 3) + 3);
  });
}

// Rows and columns of a 2x2 grid: even ranks start with the row, odd ones with the column.
TEST_P(WorldTest, GroupsInOppositeOrderDoNotBlockEachOther) {
  run_all(GetParam(), 4, [](Communicator& world) {
    const int rank = world.rank().value;
    auto row = world.split(rank / 2);
    auto column = world.split(rank % 2);
    ASSERT_TRUE(row && column);
    constexpr int kRounds = 40;
    constexpr std::size_t kCount = 30000;
    std::vector<std::vector<std::int32_t>> sums(std::size_t{2} * kRounds,
                                                std::vector<std::int32_t>(kCount));
    std::vector<Handle> handles;
    for (int i = 0; i < kRounds; ++i) {
      for (const int turn : {0, 1}) {
        const bool use_row = (turn + rank) % 2 == 0;
        auto& data = at(sums, 2 * i + (use_row ? 0 : 1));
        data.assign(kCount, rank + i);
        Communicator& group = use_row ? *row : *column;
        handles.push_back(
            group.all_reduce(data.data(), data.data(), kCount, DataType::kI32, ReduceOp::kSum));
      }
    }
    for (Handle& handle : handles)
      expect_ok(handle.wait());
    for (int i = 0; i < kRounds; ++i) {
      const int row_sum = 4 * (rank / 2) + 1 + 2 * i;
      const int column_sum = 2 * (rank % 2) + 2 + 2 * i;
      EXPECT_EQ(at(sums, 2 * i), std::vector<std::int32_t>(kCount, row_sum));
      EXPECT_EQ(at(sums, 2 * i + 1), std::vector<std::int32_t>(kCount, column_sum));
    }
  });
}

// Every rank sends forward and backward at the same time, as in the steady phase of 1F1B, with the
// receives called after the sends.
TEST_P(WorldTest, CrossingSendsOfAPipelineDoNotBlock) {
  run_all(GetParam(), 4, [](Communicator& world) {
    const int rank = world.rank().value;
    const int last = world.world_size() - 1;
    constexpr std::size_t kCount = 50000;
    for (int micro = 0; micro < 12; ++micro) {
      std::vector<float> forward(kCount, static_cast<float>(100 * rank + micro));
      std::vector<float> backward(kCount, static_cast<float>(-100 * rank - micro));
      std::vector<float> from_before(kCount);
      std::vector<float> from_after(kCount);
      std::vector<Handle> handles;
      const auto f32 = DataType::kF32;
      if (rank < last) {
        handles.push_back(world.send(forward.data(), kCount, f32, Rank{rank + 1}));
        handles.push_back(world.recv(from_after.data(), kCount, f32, Rank{rank + 1}));
      }
      if (rank > 0) {
        handles.push_back(world.send(backward.data(), kCount, f32, Rank{rank - 1}));
        handles.push_back(world.recv(from_before.data(), kCount, f32, Rank{rank - 1}));
      }
      for (Handle& handle : handles)
        expect_ok(handle.wait());
      if (rank > 0) {
        EXPECT_EQ(from_before.back(), static_cast<float>(100 * (rank - 1) + micro));
      }
      if (rank < last) {
        EXPECT_EQ(from_after.back(), static_cast<float>(-100 * (rank + 1) - micro));
      }
    }
  });
}

// More small messages than the credit holds, received much later and in one go.
TEST_P(WorldTest, UnreceivedMessagesWaitAndArriveInOrder) {
  run_all(GetParam(), 2, [](Communicator& world) {
    constexpr std::size_t kMessages = 400;
    constexpr std::size_t kCount = 5000;  // 20 kB: 8 MB in all
    std::vector<std::vector<std::int32_t>> data(kMessages, std::vector<std::int32_t>(kCount));
    std::vector<Handle> handles;
    if (world.rank().value == 0) {
      for (std::size_t i = 0; i < kMessages; ++i) {
        data[i].assign(kCount, static_cast<std::int32_t>(i));
        handles.push_back(world.send(data[i].data(), kCount, DataType::kI32, Rank{1}));
      }
    } else {
      os::sleep_for(Seconds{0.1});
      for (auto& message : data)
        handles.push_back(world.recv(message.data(), kCount, DataType::kI32, Rank{0}));
    }
    for (Handle& handle : handles)
      expect_ok(handle.wait());
    for (std::size_t i = 0; i < kMessages; ++i)
      EXPECT_EQ(data[i].back(), static_cast<std::int32_t>(i));
  });
}

TEST_P(WorldTest, CallsOfOneCommunicatorRunInOrder) {
  run_all(GetParam(), 3, [](Communicator& world) {
    // Each call works on what the one before left, without a wait between them.
    std::vector<std::int64_t> data(20000, world.rank().value + 1);
    std::vector<Handle> handles;
    for (int i = 0; i < 10; ++i) {
      handles.push_back(
          world.all_reduce(data.data(), data.data(), data.size(), DataType::kI64, ReduceOp::kSum));
      handles.push_back(world.broadcast(data.data(), data.size(), DataType::kI64, Rank{i % 3}));
    }
    for (Handle& handle : handles)
      expect_ok(handle.wait());
    EXPECT_EQ(data.front(), 6 * 19683);  // 3^9
    EXPECT_EQ(data.back(), 6 * 19683);
    for (std::size_t i = 1; i < handles.size(); ++i)
      EXPECT_LE(handles[i - 1].ended_at(), handles[i].started_at());
  });
}

// Sums of numbers whose order matters: the same bits on all ranks and in all runs.
TEST_P(WorldTest, ResultsAreBitEqualOnAllRanksAndInAllRuns) {
  for (const std::size_t count : {5U, 1000U, 4000U, 200001U}) {
    std::vector<std::vector<float>> results(5);
    for (int run = 0; run < 2; ++run) {
      std::vector<std::vector<float>> ranks(5);
      run_all(
          GetParam(), 5,
          [&](Communicator& world) {
            std::mt19937 random(static_cast<unsigned>(world.rank().value));
            std::uniform_real_distribution<float> values(-1e6F, 1e6F);
            std::vector<float> in(count);
            for (float& x : in)
              x = values(random);
            std::vector<float> out(count);
            expect_ok(
                world.all_reduce(in.data(), out.data(), count, DataType::kF32, ReduceOp::kAverage)
                    .wait());
            ranks[world.rank().index()] = out;
          },
          [](int, CommunicatorOptions& options) { options.measure = Measure::kTransport; });
      for (const auto& one : ranks)
        EXPECT_TRUE(one == ranks[0]);
      at(results, run) = ranks[0];
    }
    EXPECT_TRUE(results[0] == results[1]);
  }
}

template <typename T>
void expect_reduction(DataType type, ReduceOp op, T expected) {
  for (const std::size_t count : {3U, 70000U})
    run_all(TestLayout::kMixed, 3, [&](Communicator& world) {
      const auto value = static_cast<T>(world.rank().value * 2 + 4);  // 4, 6, 8
      const std::vector<T> in(count, value);
      std::vector<T> out(count);
      expect_ok(world.all_reduce(in.data(), out.data(), count, type, op).wait());
      EXPECT_EQ(out, std::vector<T>(count, expected));
    });
}

TEST(Reductions, EveryTypeAndOperation) {
  const auto check = [](ReduceOp op, int expected) {
    expect_reduction<float>(DataType::kF32, op, static_cast<float>(expected));
    expect_reduction<double>(DataType::kF64, op, expected);
    expect_reduction<std::int32_t>(DataType::kI32, op, expected);
    expect_reduction<std::int64_t>(DataType::kI64, op, expected);
    expect_reduction<std::uint8_t>(DataType::kU8, op, static_cast<std::uint8_t>(expected));
  };
  check(ReduceOp::kSum, 18);
  check(ReduceOp::kMin, 4);
  check(ReduceOp::kMax, 8);
  check(ReduceOp::kAverage, 6);
}

TEST(Traffic, CountsTheBytesOfTheSchedule) {
  run_all(TestLayout::kMixed, 4, [](Communicator& world) {
    std::vector<float> data(100000);
    const auto before = traffic_of(world);
    EXPECT_EQ(before.network_bytes, std::vector<long long>(4, 0));
    expect_ok(
        world.all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kSum)
            .wait());
    const auto after = traffic_of(world);
    // 0 and 1, 2 and 3 share a server: half of 400 kB and back inside, and between the servers half
    // of that half there and back.
    const std::size_t rank = world.rank().index();
    std::vector<long long> inside(4, 0);
    inside[rank ^ 1U] = 400000;
    std::vector<long long> between(4, 0);
    between[rank ^ 2U] = 200000;
    EXPECT_EQ(after.shared_bytes, inside);
    EXPECT_EQ(after.network_bytes, between);
  });
}

TEST(Handles, TellStartAndEnd) {
  run_all(TestLayout::kShm, 2, [](Communicator& world) {
    constexpr Seconds kOff{1e-6};
    const Seconds before = os::monotonic_now();
    Handle handle = world.barrier();
    expect_ok(handle.wait());
    EXPECT_TRUE(handle.done());
    EXPECT_GE(handle.started_at() + kOff, before);
    EXPECT_GE(handle.ended_at(), handle.started_at());
    EXPECT_LE(handle.ended_at(), os::monotonic_now() + kOff);
    // An empty handle stands for nothing to do.
    Handle empty;
    EXPECT_TRUE(empty.done());
    expect_ok(empty.wait());
  });
}

}  // namespace
}  // namespace regatta::comm
