#include "regatta/model/collective/internal/ring.h"

#include <gtest/gtest.h>

#include "regatta/model/collective/internal/rooted.h"
#include "regatta/model/collective/test_collective_check.h"

namespace regatta::collective {
namespace {

TEST(Ring, WorksWithPiecesOfAnySize) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 20}) {
    const RingOptions options{.piece_bytes = bytes};
    expect_all_reduce([&](Schedule& schedule, const Place& place, const Buffers& buffers) {
      ring_all_reduce(schedule, place, buffers, options);
    });
    expect_reduce_scatter([&](Schedule& schedule, const Place& place, const Buffers& buffers) {
      ring_reduce_scatter(schedule, place, buffers, options);
    });
    expect_all_gather([&](Schedule& schedule, const Place& place, const Buffers& buffers) {
      ring_all_gather(schedule, place, buffers, options);
    });
    expect_broadcast([&](Schedule& schedule, const Place& place, const Buffers& buffers, int root) {
      chain_broadcast(schedule, place, buffers, root, options);
    });
    expect_reduce([&](Schedule& schedule, const Place& place, const Buffers& buffers, int root) {
      chain_reduce(schedule, place, buffers, root, options);
    });
  }
}

TEST(Ring, CutsARangeAsItIsTold) {
  EXPECT_EQ(cut_range(1 << 20, {.piece_bytes = 64 << 10}).pieces, 16U);
  EXPECT_EQ(cut_range(1 << 20, {.piece_bytes = 1}).piece_bytes, 4096U);
  EXPECT_EQ(cut_range(100, {.piece_bytes = 64 << 10}).pieces, 1U);
  EXPECT_EQ(cut_range(0, {.piece_bytes = 64 << 10}).pieces, 0U);
}

}  // namespace
}  // namespace regatta::collective
