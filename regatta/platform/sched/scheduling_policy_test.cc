#include "regatta/platform/sched/scheduling_policy.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/base/core/yaml_map.h"

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

TEST(SchedulingPolicyFile, ReadsSparesAndConsolidation) {
  const auto policy = parse_scheduling_policy(
      "spares: {share: 2%, gang: 512}\nconsolidation: {moves: 2, node: 5min, leaf: 1min, rest: "
      "2h}\n"
      "avoid_failing: false\nnode_repair: 6h\n",
      "p.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->spares.nodes, 0);
  EXPECT_DOUBLE_EQ(policy->spares.share, 0.02);
  EXPECT_EQ(policy->spares.gang_devices, 512);
  EXPECT_EQ(policy->consolidation.moves, 2);
  EXPECT_EQ(policy->consolidation.node, Seconds{300});
  EXPECT_EQ(policy->consolidation.leaf, Seconds{60});
  EXPECT_EQ(policy->consolidation.rest, Seconds{7200});
  EXPECT_FALSE(policy->avoids_failing);
  EXPECT_EQ(policy->node_repair, Seconds{21'600});
  EXPECT_FALSE(find_scheduling_policy("regatta")->spares.is_kept());
}

TEST(SchedulingPolicyFile, SaysHowDevicesAreShared) {
  const auto policy = parse_scheduling_policy(
      "base: fifo\nmix: true\nmix_first_below: 0.3\ntargets_per_device: 1\nleast_share: "
      "0.4\ninterference: 0.2\n"
      "host_memory: 64GiB\nbudget: {missed_share: 0.02, missed_price: 5, targets_first: true}\n",
      "p.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->mixes);
  EXPECT_EQ(policy->mix_first_below, 0.3);
  EXPECT_EQ(policy->targets_per_device, 1);
  EXPECT_EQ(policy->least_share, 0.4);
  EXPECT_EQ(policy->interference, 0.2);
  EXPECT_EQ(policy->host_memory_mib, 64 << 10);
  EXPECT_EQ(policy->budget.missed_share, 0.02);
  EXPECT_EQ(policy->budget.missed_price, 5);
  EXPECT_TRUE(policy->budget.targets_first);
  const auto wrong = parse_scheduling_policy("budget: {missed_share: 2}\n", "p.yaml");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("p.yaml:1: budget.missed_share: "))
      << wrong.error().message;
}

TEST(SchedulingPolicyFile, OfTheExamplesParsesAndHasDocumentedKeys) {
  const auto root = std::filesystem::path(REGATTA_TESTDATA "/../../../..").lexically_normal();
  const std::string text = read_test_file(root / "examples/sched_policy_mixed.yaml");
  const std::string page = read_test_file(root / "docs/formats/sched_policy.md");
  const auto policy = parse_scheduling_policy(text, "sched_policy_mixed.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->name, "mixed");
  EXPECT_TRUE(policy->mixes && policy->resizes && policy->budget.targets_first);
  EXPECT_EQ(policy->budget.missed_share, 0);
  EXPECT_FALSE(policy->is_fair);
  const auto document = YamlDocument::parse(text, "sched_policy_mixed.yaml");
  ASSERT_TRUE(document);
  for (const std::string& key : document->root().keys())
    EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key;
  for (const std::string& key : document->root().map("budget").keys())
    EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key;
}

TEST(SchedulingPolicyFile, TakesTheInterferenceOfTheClusterWhereItNamesNone) {
  EXPECT_EQ(parse_scheduling_policy("name: a\n", "p.yaml", 0.4)->interference, 0.4);
  EXPECT_EQ(parse_scheduling_policy("interference: 0.1\n", "p.yaml", 0.4)->interference, 0.1);
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
  EXPECT_EQ(message("spares: {gang: 64}\n"),
            "p.yaml:1: spares.nodes: no number of spare nodes; give nodes: 4, or share: 2%");
  EXPECT_NE(message("spares: {nodes: -1}\n").find("p.yaml:1: spares.nodes: '-1'"),
            std::string::npos);
  EXPECT_NE(message("consolidation: {moves: 65}\n").find("p.yaml:1: consolidation.moves: '65'"),
            std::string::npos);
  EXPECT_NE(message("consolidation: {rest: 0s}\n").find("p.yaml:1: consolidation.rest"),
            std::string::npos);
  EXPECT_NE(message("slices: tetris\n").find("p.yaml:1: slices: "), std::string::npos);
  EXPECT_EQ(message("services: {quantile: 1}\n"),
            "p.yaml:1: services.quantile: '1' is out of range; write a number from 0.5 to 0.9999");
  EXPECT_NE(message("services: {hold: 0s}\n").find("p.yaml:1: services.hold: "), std::string::npos);
  EXPECT_NE(message("preemption: true\n").find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace regatta::sched
