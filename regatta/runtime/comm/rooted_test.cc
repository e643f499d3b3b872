// all_to_all and the collectives with a root, in every layout of the ranks, and all collectives
// between buffers that the ranks share.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

// TestLayout, ranks, elements of a part, whether the buffers come from allocate().
using Case = std::tuple<TestLayout, int, std::size_t, bool>;

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(name_of_test_layout(std::get<0>(info.param))) + "_n" +
         std::to_string(std::get<1>(info.param)) + "_c" + std::to_string(std::get<2>(info.param)) +
         (std::get<3>(info.param) ? "_shared" : "_private");
}

std::int32_t value_of(int rank, std::size_t i) {
  return static_cast<std::int32_t>(i % 1013) * 17 + rank * 100003;
}

class PartsTest : public testing::TestWithParam<Case> {
 protected:
  int ranks() const { return std::get<1>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }
  std::size_t whole() const { return count() * static_cast<std::size_t>(ranks()); }

  void run(const std::function<void(Communicator&)>& body) const {
    run_all(std::get<0>(GetParam()), ranks(), body);
  }

  // A vector in the memory that the case asks for.
  struct Vector {
    std::shared_ptr<std::byte> memory;
    std::vector<std::int32_t> own;
    std::span<std::int32_t> data;
  };
  Vector make(Communicator& world, std::size_t elements, int seed) const {
    Vector vector;
    if (std::get<3>(GetParam())) {
      vector.memory = *world.allocate(elements * sizeof(std::int32_t));
      vector.data = {reinterpret_cast<std::int32_t*>(vector.memory.get()), elements};
    } else {
      vector.own.resize(elements);
      vector.data = vector.own;
    }
    for (std::size_t i = 0; i < elements; ++i)
      vector.data[i] = value_of(seed, i);
    return vector;
  }

  std::int32_t sum_of(std::size_t i) const {
    std::int32_t sum = 0;
    for (int rank = 0; rank < ranks(); ++rank)
      sum += value_of(rank, i);
    return sum;
  }
};

constexpr int kOther = 77;  // fills what is to be overwritten

INSTANTIATE_TEST_SUITE_P(Worlds, PartsTest,
                         testing::Combine(testing::ValuesIn(test_layouts()),
                                          testing::Values(1, 2, 3, 4, 7),
                                          testing::Values(0U, 1U, 333U, 300007U), testing::Bool()),
                         case_name);

TEST_P(PartsTest, AllToAllGivesEveryRankItsPart) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    const auto check = [&](std::span<const std::int32_t> out) {
      for (int from = 0; from < ranks(); ++from)
        for (std::size_t i = 0; i < count(); ++i)
          ASSERT_EQ(out[static_cast<std::size_t>(from) * count() + i],
                    value_of(from, world.rank().index() * count() + i));
    };
    const Vector in = make(world, whole(), rank);
    const Vector out = make(world, whole(), kOther);
    expect_ok(world.all_to_all(in.data.data(), out.data.data(), count(), DataType::kI32).wait());
    check(out.data);
    expect_ok(world.all_to_all(in.data.data(), in.data.data(), count(), DataType::kI32).wait());
    check(in.data);
  });
}

TEST_P(PartsTest, GatherAndScatterAreOpposites) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    const Vector in = make(world, count(), rank);
    for (int root = 0; root < ranks(); root += 2) {
      const Vector all = make(world, rank == root ? whole() : 0, kOther);
      expect_ok(world.gather(in.data.data(), all.data.data(), count(), DataType::kI32, Rank{root})
                    .wait());
      for (std::size_t i = 0; i < all.data.size(); ++i)
        ASSERT_EQ(all.data[i], value_of(static_cast<int>(i / count()), i % count()));
      const Vector back = make(world, count(), kOther);
      expect_ok(
          world.scatter(all.data.data(), back.data.data(), count(), DataType::kI32, Rank{root})
              .wait());
      EXPECT_TRUE(std::equal(back.data.begin(), back.data.end(), in.data.begin()));
    }
  });
}

TEST_P(PartsTest, ReduceGivesTheRootTheSum) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    for (int root = 0; root < ranks(); root += 2) {
      const Vector in = make(world, count(), rank);
      const Vector out = make(world, rank == root ? count() : 0, kOther);
      expect_ok(world
                    .reduce(in.data.data(), out.data.data(), count(), DataType::kI32,
                            ReduceOp::kSum, Rank{root})
                    .wait());
      for (std::size_t i = 0; i < out.data.size(); ++i)
        ASSERT_EQ(out.data[i], sum_of(i));
      for (std::size_t i = 0; i < count(); ++i)
        ASSERT_EQ(in.data[i], value_of(rank, i));
    }
  });
}

TEST_P(PartsTest, TheOthersWorkOnTheSameBuffers) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    const std::size_t mine = world.rank().index() * count();
    const Vector in = make(world, whole(), rank);
    const Vector out = make(world, whole(), kOther);
    const auto i32 = DataType::kI32;
    expect_ok(
        world.all_reduce(in.data.data(), out.data.data(), whole(), i32, ReduceOp::kSum).wait());
    for (std::size_t i = 0; i < whole(); ++i)
      ASSERT_EQ(out.data[i], sum_of(i));
    expect_ok(
        world.reduce_scatter(in.data.data(), out.data.data(), count(), i32, ReduceOp::kMax).wait());
    for (std::size_t i = 0; i < count(); ++i)
      ASSERT_EQ(out.data[i], value_of(ranks() - 1, mine + i));
    expect_ok(world.all_gather(in.data.data(), out.data.data(), count(), i32).wait());
    for (std::size_t i = 0; i < whole(); ++i)
      ASSERT_EQ(out.data[i], value_of(static_cast<int>(i / count()), i % count()));
    expect_ok(world.broadcast(in.data.data(), whole(), i32, Rank{ranks() - 1}).wait());
    for (std::size_t i = 0; i < whole(); ++i)
      ASSERT_EQ(in.data[i], value_of(ranks() - 1, i));
  });
}

// One rank with private memory among sharers: all must take the same way.
TEST(SharedBuffers, MixWithPrivateOnes) {
  constexpr std::size_t kCount = 100000;
  run_all(TestLayout::kShm, 3, [](Communicator& world) {
    const auto memory = world.allocate(kCount * sizeof(float));
    ASSERT_TRUE(memory);
    auto* shared = reinterpret_cast<float*>(memory->get());
    std::vector<float> own(kCount);
    for (int outsider = 0; outsider < 3; ++outsider) {
      float* data = world.rank().value == outsider ? own.data() : shared;
      std::fill_n(data, kCount, static_cast<float>(world.rank().value + 1));
      expect_ok(world.all_reduce(data, data, kCount, DataType::kF32, ReduceOp::kSum).wait());
      EXPECT_EQ(std::count(data, data + kCount, 6.0F), static_cast<std::ptrdiff_t>(kCount));
    }
  });
}

TEST(SharedBuffers, AreTakenAgainWhenTheyCameBack) {
  run_all(TestLayout::kShm, 2, [](Communicator& world) {
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    std::byte* first = nullptr;
    {
      const auto memory = world.allocate(kBytes);
      ASSERT_TRUE(memory);
      first = memory->get();
      first[5] = std::byte{9};
    }
    const auto again = world.allocate(kBytes);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->get(), first);
    EXPECT_EQ(again->get()[5], std::byte{0});
    const auto other = world.allocate(1);
    ASSERT_TRUE(other);
    EXPECT_NE(other->get(), first);
    const auto too_much = world.allocate(std::size_t{1} << 50);
    ASSERT_FALSE(too_much);
    EXPECT_THAT(too_much.error().message, testing::HasSubstr("used up"));
  });
}

// More communicators than there are regions, one after the other and at once.
TEST(Regions, ServeMoreGroupsThanThereAre) {
  run_all(TestLayout::kShm, 3, [](Communicator& world) {
    std::vector<Communicator> kept;
    for (int i = 0; i < 200; ++i) {
      auto group = world.split(i % 3 == world.rank().value ? 1 : 0);
      ASSERT_TRUE(group) << group.error().message;
      int value = 1;
      expect_ok(group->all_reduce(&value, &value, 1, DataType::kI32, ReduceOp::kSum).wait());
      EXPECT_EQ(value, group->world_size());
      if (i % 2 == 0) kept.push_back(std::move(*group));
    }
    for (Communicator& group : kept) {
      std::vector<int> values(50000, 1);
      expect_ok(group
                    .all_reduce(values.data(), values.data(), values.size(), DataType::kI32,
                                ReduceOp::kSum)
                    .wait());
      EXPECT_EQ(values.back(), group.world_size());
    }
  });
}

// Nobody waits: the helper threads move the data.
TEST(Helper, GoesOnWhileTheCallersCompute) {
  for (const bool caller_moves_data : {true, false}) {
    run_all(
        TestLayout::kShm, 2,
        [](Communicator& world) {
          std::vector<float> data(1 << 20, 1.0F);
          std::vector<Handle> handles;
          handles.reserve(3);
          for (int i = 0; i < 3; ++i)
            handles.push_back(world.all_reduce(data.data(), data.data(), data.size(),
                                               DataType::kF32, ReduceOp::kSum));
          const Seconds deadline = os::monotonic_now() + Seconds{10};
          while (!handles.back().done() && os::monotonic_now() < deadline)
            os::sleep_for(Seconds{0.001});
          EXPECT_TRUE(handles.back().done());
          EXPECT_EQ(data.back(), 8.0F);
        },
        [&](int, CommunicatorOptions& options) { options.caller_moves_data = caller_moves_data; });
  }
}

TEST(Mistakes, AnotherCallOnOneRankIsNamed) {
  run_all(TestLayout::kShm, 3, [](Communicator& world) {
    std::vector<float> data(1000);
    const bool odd = world.rank().value == 1;
    const Status status =
        odd ? world.broadcast(data.data(), 500, DataType::kF32, Rank{0}).wait()
            : world.all_reduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum)
                  .wait();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kConflict);
    EXPECT_THAT(status.error().message, testing::HasSubstr("rank 1 at s0 called broadcast of"));
  });
}

}  // namespace
}  // namespace regatta::comm
