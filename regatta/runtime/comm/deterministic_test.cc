// The deterministic mode between real ranks: no bit of a result depends on anything but the inputs.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/collective/data_type.h"
#include "regatta/model/collective/test_reduction_tree.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

constexpr std::size_t kCount = 300007;  // several chunks, and no multiple of anything

// The server of a rank; ranks with the same number share memory.
struct Placement {
  std::string name;
  std::function<int(int rank, int ranks)> server;
};

const std::vector<Placement>& placements() {
  static const std::vector<Placement> all{
      {"shm", [](int, int) { return 0; }},
      {"tcp", [](int rank, int) { return rank; }},
      {"halves", [](int rank, int ranks) { return rank < ranks / 2 ? 0 : 1; }},
      {"alternating", [](int rank, int) { return rank % 2; }},
      {"uneven", [](int rank, int) { return rank == 0 ? 0 : 1; }}};
  return all;
}

void run(const Placement& placement, int ranks, const std::function<void(Communicator&)>& body,
         bool sums_in_f64 = false) {
  run_all(TestLayout::kShm, ranks, body, [&](int rank, CommunicatorOptions& options) {
    options.deterministic = true;
    options.sums_in_f64 = sums_in_f64;
    options.server = "s" + std::to_string(placement.server(rank, ranks));
  });
}

std::vector<ReductionInput> inputs_of(DataType type, int ranks) {
  std::vector<ReductionInput> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(adversarial(type, kCount, rank));
  return all;
}

// all_reduce of the vector in calls of `piece` elements.
ReductionInput reduce_in_pieces(Communicator& world, const ReductionInput& in, DataType type,
                                std::size_t piece) {
  ReductionInput out(in.size());
  for (std::size_t at = 0; at < kCount; at += piece) {
    const std::size_t from = at * size_of(type);
    expect_ok(world
                  .all_reduce(in.data() + from, out.data() + from, std::min(piece, kCount - at),
                              type, ReduceOp::kSum)
                  .wait());
  }
  return out;
}

class DeterministicMode : public testing::TestWithParam<std::tuple<int, DataType>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  DataType type() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Worlds, DeterministicMode,
                         testing::Combine(testing::Values(2, 4, 8),
                                          testing::Values(DataType::kF32, DataType::kBf16,
                                                          DataType::kF16)));

TEST_P(DeterministicMode, GivesTheSameBitsInEveryPlacementAndCut) {
  const auto inputs = inputs_of(type(), ranks());
  const ReductionInput expected = reduce_by_tree({.type = type(), .op = ReduceOp::kSum}, inputs);
  for (const Placement& placement : placements())
    run(placement, ranks(), [&](Communicator& world) {
      const ReductionInput& in = inputs[world.rank().index()];
      // Whole: the long forms; pieces: doubling's sizes, the exchange's, and the slots'.
      for (const std::size_t piece : {kCount, std::size_t{70001}, std::size_t{4000}})
        EXPECT_TRUE(reduce_in_pieces(world, in, type(), piece) == expected)
            << placement.name << ", in pieces of " << piece;
    });
}

TEST_P(DeterministicMode, ReducesToARootAndToPartsByTheSameTree) {
  const auto inputs = inputs_of(type(), ranks());
  const ReductionInput expected = reduce_by_tree({.type = type(), .op = ReduceOp::kSum}, inputs);
  const std::size_t part = kCount / static_cast<std::size_t>(ranks());
  for (const Placement& placement : placements())
    run(placement, ranks(), [&](Communicator& world) {
      const ReductionInput& in = inputs[world.rank().index()];
      ReductionInput out(in.size());
      expect_ok(
          world.reduce(in.data(), out.data(), kCount, type(), ReduceOp::kSum, Rank{1}).wait());
      EXPECT_TRUE(world.rank().value != 1 || out == expected) << placement.name;
      out.resize(part * size_of(type()));
      expect_ok(world.reduce_scatter(in.data(), out.data(), part, type(), ReduceOp::kSum).wait());
      const auto first = static_cast<std::ptrdiff_t>(out.size() * world.rank().index());
      EXPECT_TRUE(std::equal(out.begin(), out.end(), expected.begin() + first)) << placement.name;
    });
}

TEST_P(DeterministicMode, HoldsForPartsOfAnyLength) {
  const auto inputs = inputs_of(type(), ranks());
  const ReductionInput expected = reduce_by_tree({.type = type(), .op = ReduceOp::kSum}, inputs);
  // Rank 0 gets nothing, the last one most.
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks()), 1001);
  counts.front() = 0;
  counts.back() = kCount - 1001 * static_cast<std::size_t>(ranks() - 2);
  for (const Placement& placement : placements())
    run(placement, ranks(), [&](Communicator& world) {
      const ReductionInput& in = inputs[world.rank().index()];
      const std::size_t from =
          world.rank().value == 0 ? 0 : 1001 * (world.rank().index() - 1) * size_of(type());
      ReductionInput out(counts[world.rank().index()] * size_of(type()));
      expect_ok(
          world.reduce_scatter_v(in.data(), {.counts = counts}, out.data(), type(), ReduceOp::kSum)
              .wait());
      EXPECT_TRUE(
          std::equal(out.begin(), out.end(), expected.begin() + static_cast<std::ptrdiff_t>(from)))
          << placement.name;
    });
}

TEST_P(DeterministicMode, HoldsBetweenBuffersOfTheServer) {
  const auto inputs = inputs_of(type(), ranks());
  const ReductionInput expected = reduce_by_tree({.type = type(), .op = ReduceOp::kSum}, inputs);
  run(placements()[0], ranks(), [&](Communicator& world) {
    const auto data = world.allocate(expected.size());
    ASSERT_TRUE(data);
    std::copy_n(inputs[world.rank().index()].data(), expected.size(), data->get());
    expect_ok(world.all_reduce(data->get(), data->get(), kCount, type(), ReduceOp::kSum).wait());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data->get()));
  });
}

// Without the mode the tree is not kept by the ring: the test data would show it.
TEST(NormalMode, GivesOtherBitsSomewhere) {
  const auto inputs = inputs_of(DataType::kF32, 4);
  const ReductionInput expected =
      reduce_by_tree({.type = DataType::kF32, .op = ReduceOp::kSum}, inputs);
  run_all(TestLayout::kTcp, 4, [&](Communicator& world) {
    EXPECT_FALSE(reduce_in_pieces(world, inputs[world.rank().index()], DataType::kF32, kCount) ==
                 expected);
  });
}

TEST(DeterministicOption, KeptByTheChildrenOfASplit) {
  const auto inputs = inputs_of(DataType::kF32, 4);
  const ReductionInput expected =
      reduce_by_tree({.type = DataType::kF32, .op = ReduceOp::kSum}, inputs);
  run(placements()[1], 5, [&](Communicator& world) {
    auto child = world.split(world.rank().value == 4 ? 1 : 0);
    ASSERT_TRUE(child);
    if (world.rank().value == 4) return;
    EXPECT_TRUE(reduce_in_pieces(*child, inputs[child->rank().index()], DataType::kF32, kCount) ==
                expected);
  });
}

// 1 + 2^-30 - 1 and the like: f32 loses what f64 keeps.
TEST(SumsInF64, LoseNothingOnTheWay) {
  for (const Placement& placement : placements())
    run(
        placement, 4,
        [&](Communicator& world) {
          constexpr float kValues[] = {1e8F, 1.5F, -1e8F, 0.25F};
          std::vector<float> data(kCount, kValues[world.rank().index()]);
          expect_ok(
              world.all_reduce(data.data(), data.data(), kCount, DataType::kF32, ReduceOp::kSum)
                  .wait());
          EXPECT_EQ(std::count(data.begin(), data.end(), 1.75F),
                    static_cast<std::ptrdiff_t>(kCount))
              << placement.name;
          std::vector<Bf16> halves(10, round_to_bf16(world.rank().value == 0 ? 256.0F : 1.0F));
          expect_ok(world
                        .all_reduce(halves.data(), halves.data(), halves.size(), DataType::kBf16,
                                    ReduceOp::kAverage)
                        .wait());
          EXPECT_EQ(halves[9].bits, round_to_bf16(259.0F / 4).bits) << placement.name;
        },
        true);
}

TEST(SumsInF64, BelongToTheDeterministicMode) {
  const auto errors = run_ranks(
      TestLayout::kShm, 1, [](Communicator&) {},
      [](int, CommunicatorOptions& options) { options.sums_in_f64 = true; });
  ASSERT_TRUE(errors[0]);
  EXPECT_THAT(errors[0]->message, testing::HasSubstr("set deterministic too"));
}

// Ranks that do not agree on the mode are told so.
TEST(DeterministicOption, OfSomeRanksOnlyIsAnError) {
  run_all(
      TestLayout::kShm, 2,
      [](Communicator& world) {
        std::vector<float> data(8);
        const Status status =
            world.all_reduce(data.data(), data.data(), 8, DataType::kF32, ReduceOp::kSum).wait();
        ASSERT_FALSE(status);
        EXPECT_THAT(status.error().message, testing::HasSubstr("deterministic"));
      },
      [](int rank, CommunicatorOptions& options) { options.deterministic = rank == 1; });
}

}  // namespace
}  // namespace regatta::comm
