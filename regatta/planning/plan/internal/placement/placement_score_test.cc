#include <algorithm>
#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/model/cost/rates.h"
#include "regatta/planning/plan/internal/placement/placement_candidates.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

// Eight servers of one device: two below a leaf, two leaves in a group.
topo::Cluster three_tiers() {
  topo::Cluster cluster = example_cluster(8);
  for (auto& [name, type] : cluster.server_types)
    type.device_count = 1;
  cluster.fabric.tiers = 3;
  cluster.fabric.servers_per_leaf = 2;
  cluster.fabric.leaves_per_group = 2;
  cluster.fabric.super_spines = 2;
  cluster.fabric.super_uplink = cluster.fabric.uplink;
  return cluster;
}

const workload::Strategy kTwoByFour{.pp = 2, .dp = 4};

TEST(ScorePlacement, SaysHowTheGroupsLie) {
  const topo::Cluster cluster = three_tiers();
  // Ranks in order: each stage in a group of its own.
  const auto score =
      score_placement(cluster, {.tied_embeddings = false}, kTwoByFour, topo::all_devices(cluster));
  ASSERT_EQ(score.sets.size(), 2U);
  EXPECT_EQ(score.sets[0].name, "data-parallel rings");
  EXPECT_EQ(score.sets[0].hops.hops, 8);
  EXPECT_EQ(score.sets[0].hops.near(), 8);
  EXPECT_EQ(score.sets[0].hops.in_leaf, 4);
  EXPECT_EQ(score.sets[1].name, "pipeline neighbours");
  EXPECT_EQ(score.sets[1].hops.across, 8);
  EXPECT_EQ(score.all.hops, 16);
  EXPECT_DOUBLE_EQ(score.all.links, (4 * 2 + 4 * 4 + 8 * 6) / 16.0);
  const std::string text = score_text(cluster, score);
  EXPECT_THAT(text,
              HasSubstr("data-parallel rings: 8 hops, 100 % within an aggregation group, 50 % "
                        "below one leaf or within servers"));
  EXPECT_THAT(text, HasSubstr("pipeline neighbours: 8 hops, 0 % within an aggregation group"));
  const auto json = score_json(score);
  EXPECT_EQ(json["sets"][0]["name"], "data-parallel rings");
  EXPECT_EQ(json["sets"][1]["across"], 8);
  EXPECT_EQ(json["all"]["hops"], 16);
}

TEST(ScorePlacement, PrefersGroupsThatStayTogether) {
  const topo::Cluster cluster = three_tiers();
  Placement in_turn = topo::all_devices(cluster);
  // Neighbours of the data-parallel rings in different groups, those of the pipeline too.
  std::ranges::sort(in_turn, {}, [](topo::DeviceRef device) {
    return std::pair{device.server.value % 4, device.server.value / 4};
  });
  const workload::Strategy rings{.dp = 8};
  const auto far = score_placement(cluster, {}, rings, in_turn);
  const auto near = score_placement(cluster, {}, rings, topo::all_devices(cluster));
  EXPECT_TRUE(fabric::is_better(near.all, far.all));
  EXPECT_FALSE(fabric::is_better(far.all, near.all));
  EXPECT_GT(far.all.collisions, near.all.collisions);
}

// On a fabric where the path does not matter for the time.
TEST(ScorePlacement, DecidesBetweenPlacementsThatAreEquallyFast) {
  topo::Cluster cluster = three_tiers();
  cluster.fabric.hop_latency = {0};
  cluster.fabric.uplink = {1e12};
  cluster.fabric.super_uplink = {1e12};
  workload::Job job = example_job();
  job.strategy = {.tp = 1, .pp = 2, .dp = 4};
  const auto rates = cost::described_rates(cluster);
  const auto result = search_simulated_plans(job, cluster, rates);
  ASSERT_TRUE(result) << result.error().message;
  const SimulatedPlan& best = result->ranked.front();
  const double chosen =
      score_placement(cluster, job.model, best.strategy, best.placement).all.links;
  double nearest = 6;
  double farthest = 0;
  for (const Placement& placement :
       candidate_placements(cluster, topo::all_devices(cluster), best.strategy)) {
    const auto predicted = predict(job, cluster, rates, best.strategy, placement);
    ASSERT_TRUE(predicted);
    if (std::abs(predicted->step_time / best.prediction.step_time - 1) > 1e-9) continue;
    const double links = score_placement(cluster, job.model, best.strategy, placement).all.links;
    nearest = std::min(nearest, links);
    farthest = std::max(farthest, links);
  }
  EXPECT_LT(nearest, farthest) << "there has to be a choice";
  EXPECT_EQ(chosen, nearest);
}

TEST(ScorePlacement, CountsRanksThatShareSequencesAsDataParallel) {
  const topo::Cluster cluster = three_tiers();
  const auto placement = topo::all_devices(cluster);
  const auto shared = score_placement(cluster, {}, {.dp = 4, .cp = 2}, placement);
  EXPECT_EQ(shared.all.links, score_placement(cluster, {}, {.dp = 8}, placement).all.links);
}

TEST(ScorePlacement, HasNothingToSayOfOneRank) {
  const topo::Cluster cluster = three_tiers();
  EXPECT_EQ(score_text(cluster, score_placement(cluster, {}, {}, {topo::all_devices(cluster)[0]})),
            "");
}

}  // namespace
}  // namespace regatta::plan
