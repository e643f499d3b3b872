#include "regatta/model/collective/internal/ring.h"

#include <gtest/gtest.h>

#include "regatta/model/collective/internal/rooted.h"
#include "regatta/model/collective/test_collective_check.h"

namespace regatta::collective {
namespace {

TEST(Ring, WorksWithPiecesOfAnySize) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 20}) {
    const RingOptions options{.piece_bytes = bytes};
    expect_all_reduce(
        [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
          ring_all_reduce(schedule, self, buffers, options);
        });
    expect_reduce_scatter(
        [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
          ring_reduce_scatter(schedule, self, buffers, options);
        });
    expect_all_gather(
        [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
          ring_all_gather(schedule, self, buffers, options);
        });
    expect_broadcast([&](CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers,
                         int root) { chain_broadcast(schedule, self, buffers, root, options); });
    expect_reduce([&](CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers,
                      int root) { chain_reduce(schedule, self, buffers, root, options); });
  }
}

TEST(Ring, CutsARangeAsItIsTold) {
  EXPECT_EQ(split_into_pieces(1 << 20, {.piece_bytes = 64 << 10}).pieces, 16U);
  EXPECT_EQ(split_into_pieces(1 << 20, {.piece_bytes = 1}).piece_bytes, 4096U);
  EXPECT_EQ(split_into_pieces(100, {.piece_bytes = 64 << 10}).pieces, 1U);
  EXPECT_EQ(split_into_pieces(0, {.piece_bytes = 64 << 10}).pieces, 0U);
}

}  // namespace
}  // namespace regatta::collective
