#include "regatta/model/collective/internal/ordered.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/test_reduction_tree.h"
#include "regatta/model/collective/test_schedule_runner.h"

namespace regatta::collective {
namespace {

using cost::HierarchicalLayout;

struct TunedCall {
  DataType type = DataType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int ranks = 4;
  std::size_t count = 0;  // of the whole vector
  bool in_place = false;
  unsigned seed = 0;

  Reduction reduction() const {
    return {.type = type, .op = op, .divisor = ranks, .is_ordered = true};
  }
  Buffers buffers(const ReductionInput& in, ReductionInput& out, int parts) const {
    return {in.data(), out.data(), count / static_cast<std::size_t>(parts), size_of(type)};
  }
  std::vector<ReductionInput> inputs() const {
    std::vector<ReductionInput> all;
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back(adversarial(type, count, rank));
    return all;
  }
};

HierarchicalLayout grid_of(const std::vector<std::vector<int>>& servers) {
  return {servers, std::vector<double>(servers.size(), 1.0 / static_cast<double>(servers.size())),
          true};
}

// The result of every rank, and how many bytes each pair exchanged. `build` writes the schedule of
// a rank from (schedule, self, buffers); `parts` of the input are one output.
struct TrialOutcome {
  bool ended = false;
  std::vector<ReductionInput> out;
  std::vector<std::vector<std::size_t>> sent;
};
template <typename Build>
TrialOutcome run(const TunedCall& given, int parts, const Build& build) {
  TrialOutcome outcome;
  std::vector<ReductionInput> in = given.inputs();
  std::vector<CollectiveSchedule> schedules(in.size());
  outcome.out.assign(in.size(), ReductionInput(in[0].size() / static_cast<std::size_t>(parts)));
  for (std::size_t rank = 0; rank < in.size(); ++rank) {
    if (given.in_place) outcome.out[rank] = in[rank];
    const ReductionInput& from = given.in_place ? outcome.out[rank] : in[rank];
    schedules[rank].reduction = given.reduction();
    build(schedules[rank], GroupPosition{static_cast<int>(rank), given.ranks},
          given.buffers(from, outcome.out[rank], parts));
  }
  ScheduleRunner runner(schedules, given.seed);
  outcome.ended = runner.run();
  for (int from = 0; from < given.ranks; ++from) {
    auto& row = outcome.sent.emplace_back();
    for (int to = 0; to < given.ranks; ++to)
      row.push_back(runner.sent(from, to));
  }
  return outcome;
}

TrialOutcome run_all_reduce(const TunedCall& given, const HierarchicalLayout* grid) {
  return run(given, 1,
             [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
               ordered_all_reduce(schedule, self, buffers, grid);
             });
}

TunedCall random_case(std::mt19937& random, int ranks) {
  constexpr DataType kTypes[] = {DataType::kF32, DataType::kF16, DataType::kBf16};
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax,
                               ReduceOp::kProduct};
  return {.type = kTypes[random() % 3],
          .op = kOps[random() % 4],
          .ranks = ranks,
          .count = random() % 3 == 0 ? 1 + random() % 20 : 1 + random() % 900000,
          .in_place = random() % 2 == 0,
          .seed = static_cast<unsigned>(random())};
}

TEST(OrderedAllReduce, GivesTheBitsOfTheTreeInAnyOrderOfSteps) {
  std::mt19937 random(21);
  const std::vector<HierarchicalLayout> grids{grid_of({{0, 1}, {2, 3}}),
                                              grid_of({{2, 3}, {0, 1}}),
                                              grid_of({{0, 2}, {1, 3}}),
                                              grid_of({{0, 1}, {2, 3}, {4, 5}}),
                                              grid_of({{0, 1, 2, 3}, {4, 5, 6, 7}}),
                                              grid_of({{0, 1, 2}, {3, 4, 5}})};
  for (int round = 0; round < 40; ++round) {
    const HierarchicalLayout* grid = round % 3 == 0 ? nullptr : &grids[random() % grids.size()];
    int ranks = 2 + static_cast<int>(random() % 7);
    if (grid != nullptr) ranks = static_cast<int>(grid->servers.size()) * grid->ranks_per_server();
    const TunedCall given = random_case(random, ranks);
    const TrialOutcome result = run_all_reduce(given, grid);
    ASSERT_TRUE(result.ended) << "round " << round;
    const ReductionInput expected = reduce_by_tree(given.reduction(), given.inputs());
    for (const ReductionInput& out : result.out)
      ASSERT_TRUE(out == expected) << "round " << round << ", " << ranks << " ranks";
  }
}

TEST(OrderedAllReduce, SendsWhatItsHeaderSays) {
  const TunedCall given{.ranks = 4, .count = 1 << 20};
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const TrialOutcome flat = run_all_reduce(given, nullptr);
  EXPECT_EQ(flat.sent[0][1] + flat.sent[0][2] + flat.sent[0][3], 2 * 3 * kBytes / 4);
  const HierarchicalLayout grid = grid_of({{0, 1}, {2, 3}});
  const TrialOutcome nested = run_all_reduce(given, &grid);
  EXPECT_EQ(nested.sent[0][2] + nested.sent[0][3] + nested.sent[1][2] + nested.sent[1][3], kBytes);
}

TEST(OrderedAllReduce, CutsALargeVectorIntoShortChunks) {
  constexpr std::size_t kCount = std::size_t{1} << 28;
  const std::unique_ptr<float[]> data(new float[kCount]);  // never touched
  auto* const bytes = reinterpret_cast<std::byte*>(data.get());
  CollectiveSchedule schedule;
  ordered_all_reduce(schedule, {0, 2}, {bytes, bytes, kCount, sizeof(float)}, nullptr);
  for (const Step& step : schedule.steps())
    ASSERT_LE(step.bytes, std::size_t{4} << 20);
}

TEST(OrderedReduce, GivesTheRootTheBitsOfTheTree) {
  std::mt19937 random(22);
  for (int round = 0; round < 20; ++round) {
    const TunedCall given = random_case(random, 2 + static_cast<int>(random() % 7));
    const int root = static_cast<int>(random() % static_cast<unsigned>(given.ranks));
    const TrialOutcome result =
        run(given, 1,
            [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
              ordered_reduce(schedule, self, buffers, root);
            });
    ASSERT_TRUE(result.ended) << "round " << round;
    ASSERT_TRUE(at(result.out, root) == reduce_by_tree(given.reduction(), given.inputs()))
        << "round " << round;
  }
}

TEST(OrderedReduceScatter, GivesEachRankItsPartOfTheTree) {
  std::mt19937 random(23);
  for (int round = 0; round < 20; ++round) {
    TunedCall given = random_case(random, 2 + static_cast<int>(random() % 7));
    given.count = (given.count / 8 + 1) * static_cast<std::size_t>(given.ranks);
    const TrialOutcome result = run(given, given.ranks, ordered_reduce_scatter);
    ASSERT_TRUE(result.ended) << "round " << round;
    const ReductionInput expected = reduce_by_tree(given.reduction(), given.inputs());
    const std::size_t part = expected.size() / static_cast<std::size_t>(given.ranks);
    for (std::size_t rank = 0; rank < result.out.size(); ++rank)
      ASSERT_TRUE(std::equal(result.out[rank].begin(),
                             result.out[rank].begin() + static_cast<std::ptrdiff_t>(part),
                             expected.begin() + static_cast<std::ptrdiff_t>(part * rank)))
          << "round " << round << ", rank " << rank;
  }
}

}  // namespace
}  // namespace regatta::collective
