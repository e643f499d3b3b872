#include "regatta/network/diag/traffic_analysis.h"

#include <gtest/gtest.h>

namespace regatta::diag {
namespace {

constexpr Seconds kInterval{0.01};
constexpr std::size_t kStep = 100;  // intervals

// Two ranks that send each other bytes in `bursts` of each step, by its intervals, and know by
// their own records when steps began, for 20 s.
TrafficRecord record_of(std::size_t intervals, const std::vector<std::size_t>& bursts) {
  TrafficRecord record{.start = {100}, .interval = kInterval, .intervals = intervals};
  for (int rank = 0; rank < 2; ++rank) {
    WatchedRank one{.job = "tiny", .world = 7, .rank = rank, .server = "s" + std::to_string(rank)};
    for (std::uint64_t step = 0; step < 20; ++step) {
      const Seconds begin{90 + static_cast<double>(step)};
      one.operations.push_back({.number = step, .sequence = step, .call = 1, .bytes = 1000});
      one.operations.back().started = begin;
      one.operations.back().ended = begin + Seconds{0.1};
    }
    record.ranks.push_back(one);
    WatchedFlow flow{.from = one.server, .to = "s" + std::to_string(1 - rank)};
    flow.from_rank = rank;
    flow.to_rank = 1 - rank;
    flow.bytes.assign(intervals, 0.0);
    for (std::size_t i = 0; i < intervals; ++i)
      for (const std::size_t burst : bursts)
        if (i % kStep >= burst && i % kStep < burst + 4) flow.bytes[i] = 1e6;
    record.flows.push_back(flow);
  }
  return record;
}

TEST(AnalyzeTraffic, StatesTheStepsOfALongRecord) {
  const TrafficAnalysis view = analyze_traffic(record_of(1400, {20, 40, 48}));
  ASSERT_EQ(view.jobs.size(), 1U);
  ASSERT_TRUE(view.jobs[0].steps);
  EXPECT_NEAR(view.jobs[0].steps->mean.value, 1.0, 0.01);
  ASSERT_TRUE(view.jobs[0].step_by_ranks);
  EXPECT_NEAR(view.jobs[0].step_by_ranks->value, 1.0, 1e-6);
  EXPECT_TRUE(view.jobs[0].is_clear);
}

TEST(AnalyzeTraffic, StatesNoPartOfAStep) {
  // The repeating pattern in this record is eight bursts of one step.
  const TrafficAnalysis view = analyze_traffic(record_of(100, {2, 14, 26, 38, 50, 62, 74, 86}));
  ASSERT_EQ(view.jobs.size(), 1U);
  EXPECT_FALSE(view.jobs[0].is_clear);
  ASSERT_TRUE(view.jobs[0].step_by_ranks);
  EXPECT_NEAR(view.jobs[0].step_by_ranks->value, 1.0, 1e-6);
}

TEST(AnalyzeTraffic, StatesNothingOfFewSteps) {
  TrafficRecord record = record_of(400, {20, 40, 48});
  for (WatchedRank& rank : record.ranks)
    rank.operations.clear();
  const TrafficAnalysis view = analyze_traffic(record);
  ASSERT_EQ(view.jobs.size(), 1U);
  EXPECT_FALSE(view.jobs[0].is_clear);
  ASSERT_FALSE(view.inferred.empty());
  EXPECT_FALSE(view.inferred[0].is_clear);
}

TEST(AnalyzeTraffic, StatesNoStepThatTheRecordsOfTheRanksContradict) {
  // Each step of the ranks has two like halves: the flows repeat every half.
  const TrafficAnalysis view = analyze_traffic(record_of(1400, {20, 31, 70, 81}));
  ASSERT_EQ(view.jobs.size(), 1U);
  ASSERT_TRUE(view.jobs[0].steps);
  EXPECT_TRUE(view.jobs[0].steps->is_clear());
  EXPECT_NEAR(view.jobs[0].steps->mean.value, 0.5, 0.01);
  EXPECT_FALSE(view.jobs[0].is_clear);
  ASSERT_FALSE(view.inferred.empty());
  EXPECT_FALSE(view.inferred[0].is_clear);
}

}  // namespace
}  // namespace regatta::diag
