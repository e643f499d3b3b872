#include "regatta/app/report/internal/link_rows.h"

#include <gtest/gtest.h>

#include "regatta/app/report/internal/sample_run.h"

namespace regatta::report {
namespace {

PlanRun run_with(std::vector<plan::LinkTraffic> predicted,
                 std::vector<plan::LinkTraffic> measured) {
  PlanRun run;
  run.plan.prediction.step_time = {2};
  run.plan.prediction.traffic = std::move(predicted);
  run.measured.step_time = {4};
  run.measured.traffic = std::move(measured);
  return run;
}

TEST(LinkRows, JoinPredictionAndMeasurementOfADirection) {
  const topo::Graph graph = topo::build_graph(sample_cluster());
  const auto rows =
      link_rows(graph, run_with({{{{0}, false}, {25'000'000}}}, {{{{0}, false}, {20'000'000}}}));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].name, graph.links[0].name);
  EXPECT_EQ(rows[0].to, "s0");  // backward: from the leaf to the server
  // 200 Mbit/s carry 25 MB a second: 50 MB in the predicted 2 s, 100 MB in the measured 4 s.
  EXPECT_DOUBLE_EQ(rows[0].predicted_share, 0.5);
  EXPECT_DOUBLE_EQ(rows[0].measured_share, 0.2);
}

TEST(LinkRows, KeepLinkOrderForwardFirst) {
  const topo::Graph graph = topo::build_graph(sample_cluster());
  const auto rows = link_rows(
      graph, run_with({{{{1}, false}, {1}}, {{{0}, false}, {1}}, {{{0}, true}, {1}}}, {}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[0].link.forward);
  EXPECT_EQ(rows[0].link.link, LinkId{0});
  EXPECT_FALSE(rows[1].link.forward);
  EXPECT_EQ(rows[2].link.link, LinkId{1});
}

TEST(LinkRows, LeaveOutUnknownLinksAndEmptyOnes) {
  const topo::Graph graph = topo::build_graph(sample_cluster());
  EXPECT_TRUE(
      link_rows(graph,
                run_with({{{{999}, true}, {5}}, {{{-1}, true}, {5}}, {{{0}, true}, {0}}}, {}))
          .empty());
}

}  // namespace
}  // namespace regatta::report
