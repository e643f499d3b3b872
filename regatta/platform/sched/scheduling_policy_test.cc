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

TEST(SchedulingPolicyFile, SaysHowDevicesAreShared) {
  const auto policy = parse_scheduling_policy(
      "base: fifo\nmix: true\nmix_first_below: 0.3\nleast_share: 0.4\ninterference: 0.2\n"
      "host_memory: 64GiB\nbudget: {missed_share: 0.02, missed_price: 5, reclaim_lead: 1min}\n",
      "p.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->mixes);
  EXPECT_EQ(policy->mix_first_below, 0.3);
  EXPECT_EQ(policy->least_share, 0.4);
  EXPECT_EQ(policy->interference, 0.2);
  EXPECT_EQ(policy->host_memory_mib, 64 << 10);
  EXPECT_EQ(policy->budget.missed_share, 0.02);
  EXPECT_EQ(policy->budget.missed_price, 5);
  EXPECT_EQ(policy->budget.reclaim_lead, Seconds{60});
  const auto wrong = parse_scheduling_policy("budget: {missed_share: 2}\n", "p.yaml");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("p.yaml:1: budget.missed_share: "))
      << wrong.error().message;
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
  EXPECT_NE(message("preemption: true\n").find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace regatta::sched
