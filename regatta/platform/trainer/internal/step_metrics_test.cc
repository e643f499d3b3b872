#include "regatta/platform/trainer/internal/step_metrics.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta::trainer {
namespace {

nlohmann::json step_event(int step, double time_s) {
  return {{"event", "step"}, {"step", step}, {"loss", 2.5}, {"time_s", time_s}, {"tokens", 100}};
}

TEST(StepMetrics, CompletesAStepWhenAllRanksHaveDoneIt) {
  StepMetrics metrics(2);
  EXPECT_FALSE(*metrics.add(0, step_event(0, 0.5)));
  EXPECT_FALSE(*metrics.add(0, step_event(1, 0.5)));
  const auto step = *metrics.add(1, step_event(0, 0.25));
  ASSERT_TRUE(step);
  EXPECT_EQ(step->time_s, 0.5) << "the slowest rank counts";
  EXPECT_EQ(step->tokens_per_s, 200);
  EXPECT_FALSE(metrics.add(1, {{"event", "step"}, {"step", "x"}}));
  EXPECT_TRUE(metrics.add(1, {{"event", "memory"}, {"bytes", 7e6}}));
  EXPECT_EQ(metrics.resident_bytes(), 7e6);
}

TEST(MetricLines, HaveNameStepAndValue) {
  const std::string lines =
      metric_lines({.step = 3, .loss = 2.5, .time_s = 0.5, .tokens_per_s = 9}, 0, 7);
  const auto line = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(line,
            nlohmann::json(
                {{"name", "loss"}, {"step", 3}, {"value", 2.5}, {"unit", "nat"}, {"time_ms", 7}}));
}

}  // namespace
}  // namespace regatta::trainer
