// Long random sequences of collectives inside a server: kinds, sizes, buffers, groups and the
// moment of waiting all vary, the same on all ranks.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

std::int64_t value_of(int rank, int call, std::size_t i) {
  return rank * 1000003 + call * 101 + static_cast<std::int64_t>(i % 977);
}

// A call under way and what its result must be.
struct Pending {
  Handle handle;
  std::vector<std::int64_t> own;
  std::shared_ptr<std::byte> shared;
  std::int64_t* data = nullptr;
  std::size_t count = 0;
  int call = 0;
  int ranks = 0;
  int root = -1;  // of a broadcast
};

void expect_result(Pending& pending) {
  expect_ok(pending.handle.wait());
  for (std::size_t i = 0; i < pending.count; ++i) {
    std::int64_t expected = 0;
    if (pending.root >= 0)
      expected = value_of(pending.root, pending.call, i);
    else
      for (int rank = 0; rank < pending.ranks; ++rank)
        expected += value_of(rank, pending.call, i);
    ASSERT_EQ(pending.data[i], expected) << "call " << pending.call << " element " << i;
  }
}

Pending start(Communicator& group, std::mt19937& random, int call) {
  // Around the sizes where the way changes: a slot, a round, several rounds.
  static constexpr std::size_t kCounts[] = {0, 1, 1023, 1024, 1025, 5000, 65536, 70001, 300000};
  Pending pending{.call = call, .ranks = group.world_size()};
  pending.count = kCounts[random() % std::size(kCounts)];
  if (random() % 2 == 0) {
    pending.shared = *group.allocate(pending.count * sizeof(std::int64_t));
    pending.data = reinterpret_cast<std::int64_t*>(pending.shared.get());
  } else {
    pending.own.resize(pending.count);
    pending.data = pending.own.data();
  }
  if (random() % 3 == 0) pending.root = static_cast<int>(random() % 1000) % pending.ranks;
  for (std::size_t i = 0; i < pending.count; ++i)
    pending.data[i] = value_of(group.rank().value, call, i);
  const auto i64 = DataType::kI64;
  pending.handle =
      pending.root >= 0
          ? group.broadcast(pending.data, pending.count, i64, Rank{pending.root})
          : group.all_reduce(pending.data, pending.data, pending.count, i64, ReduceOp::kSum);
  return pending;
}

class RandomCalls : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RandomCalls, testing::Values(2, 3, 4));

TEST_P(RandomCalls, GiveTheRightResults) {
  constexpr int kCalls = 300;
  run_all(TestLayout::kShm, GetParam(), [](Communicator& world) {
    auto row = world.split(world.rank().value / 2);
    auto column = world.split(world.rank().value % 2);
    ASSERT_TRUE(row && column);
    std::mt19937 random(4711);  // the same on all ranks
    std::deque<Pending> pending;
    for (int call = 0; call < kCalls; ++call) {
      Communicator* const groups[] = {&world, &*row, &*column};
      pending.push_back(start(*groups[random() % 3], random, call));
      while (pending.size() > random() % 6) {
        expect_result(pending.front());
        pending.pop_front();
      }
    }
    for (Pending& one : pending)
      expect_result(one);
  });
}

}  // namespace
}  // namespace regatta::comm
