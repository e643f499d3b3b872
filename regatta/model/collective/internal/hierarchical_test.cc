#include "regatta/model/collective/internal/hierarchical.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

#include "regatta/model/collective/test_schedule_runner.h"

namespace regatta::collective {
namespace {

using cost::HierarchicalLayout;

struct TrialOutcome {
  std::vector<std::vector<std::int32_t>> in;
  std::vector<std::vector<std::int32_t>> out;
  bool ended = false;
};

// All ranks of the grid add their vectors; `sent` gets the bytes between each two.
TrialOutcome run(const HierarchicalLayout& grid, std::size_t count, bool in_place, unsigned seed,
                 std::vector<std::vector<std::size_t>>* sent = nullptr) {
  const int ranks = static_cast<int>(grid.servers.size()) * grid.ranks_per_server();
  const auto size = static_cast<std::size_t>(ranks);
  TrialOutcome result;
  std::vector<CollectiveSchedule> schedules(size);
  for (int rank = 0; rank < ranks; ++rank) {
    auto& in = result.in.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i)
      in[i] = static_cast<std::int32_t>(i % 977) * 13 + rank * 10007;
    result.out.push_back(in_place ? in : std::vector<std::int32_t>(count, -1));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    auto* out = reinterpret_cast<std::byte*>(result.out[index].data());
    const auto* in = reinterpret_cast<const std::byte*>(result.in[index].data());
    schedules[index].reduction = {DataType::kI32, ReduceOp::kSum, ranks};
    hierarchical_all_reduce(schedules[index], {rank, ranks}, {in_place ? out : in, out, count, 4},
                            grid);
  }
  ScheduleRunner runner(schedules, seed);
  result.ended = runner.run();
  if (sent == nullptr) return result;
  sent->assign(size, std::vector<std::size_t>(size));
  for (std::size_t from = 0; from < size; ++from)
    for (std::size_t to = 0; to < size; ++to)
      (*sent)[from][to] = runner.sent(static_cast<int>(from), static_cast<int>(to));
  return result;
}

HierarchicalLayout random_grid(std::mt19937& random) {
  HierarchicalLayout grid;
  const std::size_t servers = 2 + random() % 4;
  const std::size_t locals = 1 + random() % 3;
  std::vector<int> ranks(servers * locals);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  for (std::size_t s = 0; s < servers; ++s)
    grid.servers.emplace_back(ranks.begin() + static_cast<std::ptrdiff_t>(s * locals),
                              ranks.begin() + static_cast<std::ptrdiff_t>((s + 1) * locals));
  grid.is_ring = random() % 2 == 0;
  double sum = 0;
  for (std::size_t s = 0; s < servers; ++s)
    sum += grid.weights.emplace_back(grid.is_ring ? 1.0 : static_cast<double>(random() % 4));
  if (sum == 0) sum += grid.weights[0] = 1;
  for (double& weight : grid.weights)
    weight /= sum;
  return grid;
}

TEST(HierarchicalAllReduce, GivesEveryRankTheSumInAnyOrderOfSteps) {
  std::mt19937 random(11);
  for (unsigned round = 0; round < 60; ++round) {
    const HierarchicalLayout grid = random_grid(random);
    const std::size_t count = round % 5 == 0 ? 1 + random() % 9 : 1 + random() % 700000;
    const TrialOutcome result = run(grid, count, round % 2 == 0, round);
    ASSERT_TRUE(result.ended) << "round " << round;
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t sum = 0;
      for (const auto& in : result.in)
        sum += in[i];
      for (const auto& out : result.out)
        ASSERT_EQ(out[i], sum) << "round " << round << ", element " << i;
    }
  }
}

TEST(HierarchicalAllReduce, SendsWhatItsHeaderSays) {
  constexpr std::size_t kCount = 1 << 20;
  constexpr std::size_t kBytes = kCount * 4;
  std::vector<std::vector<std::size_t>> sent;
  const HierarchicalLayout two_by_two{{{0, 1}, {2, 3}}, {0.5, 0.5}, true};
  ASSERT_TRUE(run(two_by_two, kCount, false, 1, &sent).ended);
  EXPECT_EQ(sent[0][2] + sent[1][3] + sent[0][3] + sent[1][2], kBytes);  // of a server
  EXPECT_EQ(sent[0][3] + sent[1][2], 0U);
  EXPECT_EQ(sent[0][1], kBytes);  // 2 (P-1)/P S
  const HierarchicalLayout slow{{{0}, {1}, {2}, {3}}, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0}, false};
  ASSERT_TRUE(run(slow, kCount, false, 2, &sent).ended);
  EXPECT_NEAR(static_cast<double>(sent[3][0] + sent[3][1] + sent[3][2]), kBytes, 64);
  EXPECT_NEAR(static_cast<double>(sent[0][3] + sent[1][3] + sent[2][3]), kBytes, 64);
}

}  // namespace
}  // namespace regatta::collective
