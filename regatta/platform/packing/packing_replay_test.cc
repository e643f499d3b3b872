#include "regatta/platform/packing/packing_replay.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/platform/packing/cluster_tables.h"
#include "regatta/platform/packing/test_random_cluster.h"

namespace regatta::packing {
namespace {

const std::filesystem::path kTrace =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster/openb")
        .lexically_normal();

double mean_allocated_percent(const std::string& workload, const std::string& policy, int seeds) {
  const auto nodes = read_nodes(read_test_file(kTrace / "openb_node_list_gpu_node.csv"), "nodes");
  const std::string file =
      "openb_pod_list_" + workload + (workload == "default" ? ".csv" : ".compact.csv");
  const auto pods = read_pods(read_test_file(kTrace / file), file);
  EXPECT_TRUE(nodes && pods);
  double sum = 0;
  for (int seed = 42; seed < 42 + seeds; ++seed)
    sum += replay_packing(*nodes, *pods, *find_placement_policy(policy),
                          static_cast<std::uint64_t>(seed))
               ->allocated_share;
  return 100 * sum / seeds;
}

TEST(PackingReplay, ArrivalsRequestTheLoadAndAreMadeOfTheGivenPods) {
  const std::vector<GpuNode> nodes = {{"n0", 64000, 65536, 2, {1000, 1000}, "T4"}};
  const std::vector<Pod> pods = {{1000, 1, 1, 100, {}}, {2000, 1, 0, 0, {}}};
  for (const double load : {0.05, 1.0, 4.0}) {
    int requested = 0;
    for (const Pod& pod : resample_pods(nodes, pods, load, 1)) {
      requested += pod.gpu_request_milli();
      EXPECT_TRUE(pod.cpu_milli == 1000 || pod.cpu_milli == 2000);
    }
    EXPECT_NEAR(requested, load * 2000, 100);
  }
  EXPECT_TRUE(resample_pods(nodes, {pods[1]}, 1, 1).empty());
}

TEST(PackingReplay, PodsThatAllFitAreAllPlaced) {
  const std::vector<GpuNode> nodes(10, {"n", 64000, 65536, 2, {1000, 1000}, "T4"});
  const std::vector<Pod> pods = {{1000, 1, 1, 500, {}}};
  for (const std::string& name : placement_policy_names()) {
    const auto result = replay_packing(nodes, pods, *find_placement_policy(name), 1);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->allocated_share, 1) << name;
    EXPECT_EQ(result->placed, 40);
    EXPECT_EQ(result->decisions, 52);
  }
}

TEST(PackingReplay, TwoReplaysOfASeedAreEqualAndSeedsDiffer) {
  RandomSequence random(1);
  const std::vector<GpuNode> nodes = random_nodes(random, 60);
  const std::vector<Pod> pods = random_pods(random, 100);
  const PlacementPolicy policy = *find_placement_policy("regatta");
  const auto first = replay_packing(nodes, pods, policy, 1);
  EXPECT_EQ(first->allocated_share, replay_packing(nodes, pods, policy, 1)->allocated_share);
  EXPECT_EQ(first->placed, replay_packing(nodes, pods, policy, 1)->placed);
  EXPECT_NE(first->allocated_share_end,
            replay_packing(nodes, pods, policy, 2)->allocated_share_end);
}

TEST(PackingReplay, KnownPoliciesReachTheirPublishedMeansOnOpenb) {
  if (!std::filesystem::exists(kTrace))
    GTEST_SKIP() << "the trace openb is not beside the checkout";
  EXPECT_NEAR(mean_allocated_percent("default", "random", 10), 86.303, 0.5);
  EXPECT_NEAR(mean_allocated_percent("default", "best_fit", 10), 92.862, 0.5);
  EXPECT_NEAR(mean_allocated_percent("default", "fgd", 10), 95.227, 0.5);
}

TEST(PackingReplay, RegattaFillsNinetySixPercentOfOpenb) {
  if (!std::filesystem::exists(kTrace))
    GTEST_SKIP() << "the trace openb is not beside the checkout";
  EXPECT_GE(mean_allocated_percent("default", "regatta", 10), 96.0);
}

TEST(PackingReplay, RegattaFillsEveryVariantMoreThanThePublishedFgd) {
  if (!std::filesystem::exists(kTrace))
    GTEST_SKIP() << "the trace openb is not beside the checkout";
  const std::vector<std::pair<std::string, double>> published = {
      {"cpu050", 94.996},     {"cpu100", 95.208},      {"cpu200", 94.824},
      {"cpu250", 93.196},     {"gpushare40", 93.961},  {"gpushare60", 91.255},
      {"gpushare80", 89.083}, {"gpushare100", 86.640}, {"gpuspec10", 94.663},
      {"gpuspec20", 94.662},  {"gpuspec25", 93.907},   {"gpuspec33", 90.0},
      {"multigpu20", 95.528}, {"multigpu30", 96.357},  {"multigpu40", 96.906},
      {"multigpu50", 97.094}};
  for (const auto& [workload, percent] : published)  // gpuspec33: the bar is above FGD's 87.836
    EXPECT_GE(mean_allocated_percent(workload, "regatta", 3), percent) << workload;
}

}  // namespace
}  // namespace regatta::packing
