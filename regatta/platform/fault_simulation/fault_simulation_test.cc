#include "regatta/platform/fault_simulation/fault_simulation.h"

#include <gmock/gmock.h>

#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::fault_simulation {
namespace {

FaultSimulationOptions small_cluster(std::uint64_t seed) {
  FaultSimulationOptions options;
  options.seed = seed;
  options.nodes = 6;
  options.devices = 4;
  options.jobs = 40;
  options.length = Seconds{1200};
  options.job_time = Seconds{60};
  options.short_lease = Seconds{3};
  return options;
}

FaultRates many_faults() {
  return {.controller_kills = 120,
          .controller_restarts = 120,
          .agent_kills = 240,
          .reboots = 20,
          .cut_connections = 240,
          .partitions = 120,
          .partition_time = Seconds{40},
          .double_sends = 0.2};
}

sched::SchedulingPolicy policy() {
  return *sched::find_scheduling_policy("regatta");
}

TEST(FaultSimulation, JobsSucceedWithoutFaults) {
  FaultSimulationOptions options = small_cluster(1);
  options.job_failures = 0;
  const auto result = simulate(options, policy());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->succeeded, options.jobs);
  EXPECT_GE(result->attempts, options.jobs);
}

TEST(FaultSimulation, NothingIsLostAndNothingStartsTwiceUnderFaults) {
  int kills = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FaultSimulationOptions options = small_cluster(seed);
    options.faults = many_faults();
    const auto result = simulate(options, policy());
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->succeeded + result->failed + result->cancelled, options.jobs);
    kills += result->controller_kills + result->agent_kills;
  }
  EXPECT_GT(kills, 500);
}

// The first rule that a planted error breaks, over some seeds; "" where none is broken.
std::string broken_rule(PlantedError planted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FaultSimulationOptions options = small_cluster(seed);
    options.faults = many_faults();
    options.planted = planted;
    options.commit_time = Seconds{0.2};
    const auto result = simulate(options, policy());
    if (!result) return result.error().message;
  }
  return "";
}

TEST(FaultSimulation, FindsErrorsThatArePlanted) {
  EXPECT_THAT(broken_rule(PlantedError::kJournalLost), testing::HasSubstr("seed"));
  EXPECT_THAT(broken_rule(PlantedError::kFenceTooEarly), testing::HasSubstr("at once"));
  EXPECT_THAT(broken_rule(PlantedError::kOrderTooEarly), testing::HasSubstr("seed"));
  EXPECT_THAT(broken_rule(PlantedError::kLeaseForgotten), testing::HasSubstr("at once"));
  EXPECT_THAT(broken_rule(PlantedError::kExtensionIgnored), testing::HasSubstr("at once"));
  EXPECT_THAT(broken_rule(PlantedError::kExtensionKept), testing::HasSubstr("at once"));
}

TEST(FaultSimulation, OneSeedGivesTheSameBytesTwice) {
  FaultSimulationOptions options = small_cluster(3);
  options.faults = many_faults();
  const auto first = simulate(options, policy());
  const auto second = simulate(options, policy());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->state_hash, second->state_hash);
  EXPECT_EQ(first->events, second->events);
  options.seed = 4;
  const auto other = simulate(options, policy());
  ASSERT_TRUE(other);
  EXPECT_NE(first->state_hash, other->state_hash);
}

}  // namespace
}  // namespace regatta::fault_simulation
