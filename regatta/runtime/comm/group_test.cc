// Calls that belong together: send_recv, groups, and communicators of the same ranks.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

using testing::HasSubstr;

class GroupTest : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Worlds, GroupTest,
                         testing::Values(TestLayout::kShm, TestLayout::kTcp, TestLayout::kMixed));

// More than fits on credit, so that a send ends only when its receiver has called.
constexpr std::size_t kMany = 1 << 20;
constexpr auto kI32 = DataType::kI32;

TEST_P(GroupTest, SendRecvPassesAroundARing) {
  run_all(GetParam(), 4, [](Communicator& world) {
    const int rank = world.rank().value;
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, kMany}) {
      const std::vector<std::int32_t> mine(count, rank);
      std::vector<std::int32_t> theirs(count + 1, -1);
      expect_ok(send_recv(world, {mine.data(), count, Rank{(rank + 1) % 4}},
                          {theirs.data(), count, Rank{(rank + 3) % 4}}, kI32)
                    .wait());
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(theirs[i], (rank + 3) % 4);
      EXPECT_EQ(theirs.back(), -1);
    }
  });
}

// Each rank calls in its own order what would wait for ever if each call waited for its end.
TEST_P(GroupTest, TakesSendsReceivesAndCollectivesInAnyOrder) {
  run_all(GetParam(), 4, [](Communicator& world) {
    const int rank = world.rank().value;
    std::vector<std::int32_t> mine(kMany, rank + 1);
    std::vector<std::int32_t> sum(kMany);
    std::vector<std::vector<std::int32_t>> theirs(4, std::vector<std::int32_t>(kMany));
    const auto reduce = [&] {
      world.all_reduce(mine.data(), sum.data(), kMany, kI32, ReduceOp::kSum);
    };
    Handle all = group_calls([&] {
      if (rank == 0) reduce();
      for (int step = 0; step < 4; ++step) {
        const int peer = rank < 2 ? step : 3 - step;
        const auto receive = [&] { world.recv(at(theirs, peer).data(), kMany, kI32, Rank{peer}); };
        if (rank % 2 == 0) receive();
        world.send(mine.data(), kMany, kI32, Rank{peer});
        if (rank % 2 == 1) receive();
        if (rank == 1 && step == 1) reduce();
      }
      if (rank > 1) reduce();
    });
    expect_ok(all.wait());
    EXPECT_TRUE(all.done());
    EXPECT_GE(all.ended_at(), all.started_at());
    EXPECT_GT(all.started_at(), Seconds{});
    for (std::size_t peer = 0; peer < 4; ++peer)
      EXPECT_EQ(theirs[peer], std::vector<std::int32_t>(kMany, static_cast<int>(peer) + 1));
    EXPECT_EQ(sum, std::vector<std::int32_t>(kMany, 10));
  });
}

// Without a group too: a collective does not wait for sends, nor they for it.
TEST_P(GroupTest, CollectivesDoNotWaitForSends) {
  run_all(GetParam(), 2, [](Communicator& world) {
    std::vector<std::int32_t> data(kMany, 1);
    std::vector<std::int32_t> sum(kMany);
    std::vector<Handle> handles;
    if (world.rank().value == 0) handles.push_back(world.send(data.data(), kMany, kI32, Rank{1}));
    expect_ok(world.all_reduce(data.data(), sum.data(), kMany, kI32, ReduceOp::kSum).wait());
    std::vector<std::int32_t> got(kMany);
    if (world.rank().value == 1) handles.push_back(world.recv(got.data(), kMany, kI32, Rank{0}));
    for (Handle& handle : handles)
      expect_ok(handle.wait());
    EXPECT_EQ(sum.back(), 2);
    if (world.rank().value == 1) {
      EXPECT_EQ(got, data);
    }
  });
}

TEST_P(GroupTest, TakesCommunicatorsInAnyOrder) {
  run_all(GetParam(), 4, [](Communicator& world) {
    auto twin = duplicate(world);
    ASSERT_TRUE(twin) << twin.error().message;
    EXPECT_EQ(twin->rank(), world.rank());
    EXPECT_EQ(twin->world_size(), 4);
    std::vector<std::int64_t> a(70000, 1);
    std::vector<std::int64_t> b(70000, 2);
    for (int round = 0; round < 5; ++round) {
      const auto first = [&] {
        world.all_reduce(a.data(), a.data(), a.size(), DataType::kI64, ReduceOp::kSum);
      };
      const auto second = [&] {
        twin->all_reduce(b.data(), b.data(), b.size(), DataType::kI64, ReduceOp::kSum);
      };
      Handle both = group_calls([&] {
        if ((world.rank().value + round) % 2 == 0) first();
        second();
        if ((world.rank().value + round) % 2 == 1) first();
      });
      expect_ok(both.wait());
    }
    EXPECT_EQ(a.back(), 1024);
    EXPECT_EQ(b.back(), 2048);
  });
}

TEST_P(GroupTest, MayLieInAnotherOneAndBeEmpty) {
  run_all(GetParam(), 2, [](Communicator& world) {
    expect_ok(group_calls([] {}).wait());
    const std::int32_t mine = world.rank().value;
    std::int32_t theirs = -1;
    std::int32_t sum = mine;
    Handle inner;
    Handle outer = group_calls([&] {
      inner = group_calls([&] { world.send(&mine, 1, kI32, Rank{1 - mine}); });
      EXPECT_TRUE(inner.done());  // it begins with the outer one
      world.recv(&theirs, 1, kI32, Rank{1 - mine});
      world.all_reduce(&sum, &sum, 1, kI32, ReduceOp::kSum);
    });
    expect_ok(outer.wait());
    EXPECT_EQ(theirs, 1 - mine);
    EXPECT_EQ(sum, 1);
  });
}

TEST_P(GroupTest, TellsTheFirstErrorAndRefusesWhatWaits) {
  run_all(GetParam(), 2, [](Communicator& world) {
    std::int32_t value = 1;
    Handle all = group_calls([&] {
      world.all_reduce(&value, &value, 1, kI32, ReduceOp::kSum);
      world.send(&value, 1, kI32, Rank{7});
      EXPECT_THAT(world.split(0).error().message, HasSubstr("outside the group"));
      EXPECT_THAT(duplicate(world).error().message, HasSubstr("outside the group"));
      EXPECT_THAT(world.shrink().error().message, HasSubstr("outside the group"));
      EXPECT_THAT(world.grow(2, {}).error().message, HasSubstr("outside the group"));
    });
    const Status status = all.wait();
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("send: rank 7 is not in the communicator"));
    EXPECT_EQ(value, 2);
    expect_ok(world.barrier().wait());
  });
}

TEST(Groups, NameTheRankThatDoesNotTakePart) {
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp}) {
    run_all(
        layout, 3,
        [](Communicator& world) {
          const int rank = world.rank().value;
          std::vector<std::int32_t> data(kMany);
          std::vector<std::vector<std::int32_t>> in(3, std::vector<std::int32_t>(kMany));
          Status status;
          if (rank < 2) {
            status = group_calls([&] {
                       for (int peer = 0; peer < 3; ++peer) {
                         if (peer == rank) continue;
                         world.send(data.data(), kMany, kI32, Rank{peer});
                         world.recv(at(in, peer).data(), kMany, kI32, Rank{peer});
                       }
                     }).wait();
            ASSERT_FALSE(status);
            EXPECT_THAT(status.error().message,
                        testing::ContainsRegex("rank 2 at s. has not called it"));
          } else {
            status = world.recv(data.data(), 1, kI32, Rank{2}).wait();
            EXPECT_FALSE(status);
          }
        },
        [](int rank, CommunicatorOptions& options) {
          options.progress_timeout = Seconds{rank < 2 ? 0.5 : 5.0};
        });
  }
}

}  // namespace
}  // namespace regatta::comm
