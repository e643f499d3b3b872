#include "regatta/model/collective/internal/double_tree.h"

#include <cstddef>

#include <gtest/gtest.h>

#include "regatta/model/collective/test_collective_check.h"

namespace regatta::collective {
namespace {

// Many chunks, and one of them.
constexpr std::size_t kChunkBytes[] = {64, 1 << 20};

TEST(DoubleTree, GivesTheSumOnEveryRank) {
  for (const std::size_t bytes : kChunkBytes)
    expect_all_reduce(
        [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
          double_tree_all_reduce(schedule, self, buffers, {.chunk_bytes = bytes});
        });
}

TEST(DoubleTree, BroadcastsFromAnyRoot) {
  for (const std::size_t bytes : kChunkBytes)
    expect_broadcast([&](CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers, int root) {
      double_tree_broadcast(schedule, self, buffers, root, {.chunk_bytes = bytes});
    });
}

TEST(DoubleTree, ReducesToAnyRoot) {
  for (const std::size_t bytes : kChunkBytes)
    expect_reduce([&](CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers, int root) {
      double_tree_reduce(schedule, self, buffers, root, {.chunk_bytes = bytes});
    });
}

TEST(DoubleTree, SendsNoMoreThanItsHeaderSays) {
  constexpr std::size_t kCount = 2048;
  constexpr std::size_t kBytes = kCount * 4;
  for (const int ranks : {2, 3, 4, 5, 8, 9, 16, 31, 32, 33}) {
    const TrialOutcome reduced =
        measure(ranks, kCount, kCount, kCount, [](auto& schedule, auto& self, auto& buffers) {
          double_tree_all_reduce(schedule, self, buffers, {.chunk_bytes = 256});
        });
    const TrialOutcome spread =
        measure(ranks, kCount, kCount, kCount, [](auto& schedule, auto& self, auto& buffers) {
          double_tree_broadcast(schedule, self, buffers, 1, {.chunk_bytes = 256});
        });
    const TrialOutcome collected =
        measure(ranks, kCount, kCount, kCount, [](auto& schedule, auto& self, auto& buffers) {
          double_tree_reduce(schedule, self, buffers, 1, {.chunk_bytes = 256});
        });
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_LE(reduced.sent_by(rank), 2 * kBytes) << ranks;
      EXPECT_LE(spread.sent_by(rank), kBytes) << ranks;
      EXPECT_EQ(collected.sent_by(rank), rank == 1 ? 0 : kBytes) << ranks;
    }
    EXPECT_EQ(spread.sent_by(1), kBytes) << ranks;
  }
}

TEST(DoubleTree, IsAsDeepAsALogarithm) {
  for (const int ranks : {2, 3, 8, 9, 16, 64, 100}) {
    int depth = 1;
    while (1 << (depth - 1) < ranks)
      ++depth;
    const TrialOutcome reduced =
        measure(ranks, 2, 2, 2, [](auto& schedule, auto& self, auto& buffers) {
          double_tree_all_reduce(schedule, self, buffers);
        });
    // A sum waits for both children, whose messages may come at the same time.
    EXPECT_LE(reduced.rounds, 2 * depth) << ranks;
  }
}

}  // namespace
}  // namespace regatta::collective
