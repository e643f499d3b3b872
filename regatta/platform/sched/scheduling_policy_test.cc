#include "regatta/platform/sched/scheduling_policy.h"

#include <gtest/gtest.h>

namespace regatta::sched {
namespace {

TEST(SchedulingPolicy, ComesByNameAndNamesTheKnownOnesOtherwise) {
  for (const std::string& name : scheduling_policy_names())
    EXPECT_EQ(find_scheduling_policy(name)->name, name);
  const auto unknown = find_scheduling_policy("fair");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "no scheduling policy is called 'fair'; choose one of fifo, backfill, regatta, "
            "attained_service, or give a file");
}

TEST(SchedulingPolicyFile, ChangesTheKeysThatItNames) {
  const auto policy = parse_scheduling_policy(
      "base: fifo\nname: mine\nbackfill: greedy\nageing: 2h\nweights: {risk: 3}\n", "p.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->name, "mine");
  EXPECT_EQ(policy->backfill, BackfillRule::kGreedy);
  EXPECT_EQ(policy->ageing, Seconds{7200});
  EXPECT_EQ(policy->risk_weight, 3);
  EXPECT_EQ(policy->order, JobOrder::kSubmitted);
  EXPECT_FALSE(policy->preempts);
}

TEST(SchedulingPolicyFile, SaysHowServicesFollowTheirDemand) {
  EXPECT_FALSE(find_scheduling_policy("backfill")->sizes_services);
  const auto policy = parse_scheduling_policy(
      "base: backfill\nservices: {follow_demand: true, lead: 5min, quantile: 0.9, hold: 1h}\n",
      "p.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->sizes_services);
  EXPECT_EQ(policy->budget.reclaim_lead, Seconds{300});
  EXPECT_EQ(policy->service_quantile, 0.9);
  EXPECT_EQ(policy->service_hold, Seconds{3600});
}

TEST(SchedulingPolicyFile, NamesFileLineKeyAndRemedyOfWhatIsWrong) {
  const auto message = [](const char* text) {
    const auto policy = parse_scheduling_policy(text, "p.yaml");
    return policy ? std::string() : policy.error().message;
  };
  EXPECT_EQ(
      message("base: fifo\norder: longest\n"),
      "p.yaml:2: order: 'longest' is not one of submitted, shortest, least_service, deadline");
  EXPECT_EQ(message("moves: -1\n"),
            "p.yaml:1: moves: '-1' is out of range; write a whole number from 0 to 64");
  EXPECT_NE(message("slices: tetris\n").find("p.yaml:1: slices: "), std::string::npos);
  EXPECT_EQ(message("services: {quantile: 1}\n"),
            "p.yaml:1: services.quantile: '1' is out of range; write a number from 0.5 to 0.9999");
  EXPECT_NE(message("services: {hold: 0s}\n").find("p.yaml:1: services.hold: "), std::string::npos);
  EXPECT_NE(message("preemption: true\n").find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace regatta::sched
