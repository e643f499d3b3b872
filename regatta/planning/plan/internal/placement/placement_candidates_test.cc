#include "regatta/planning/plan/internal/placement/placement_candidates.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "regatta/planning/plan/test_plans.h"

namespace regatta::plan {
namespace {

TEST(CandidatePlacements, AreDistinctPermutationsOfTheDevices) {
  const topo::Cluster cluster = example_cluster();
  const Placement all = topo::all_devices(cluster);
  for (const auto& strategy :
       {make_strategy(2, 2, 2, 1), make_strategy(1, 1, 8, 1), make_strategy(4, 2, 1, 1)}) {
    const auto placements = candidate_placements(cluster, all, strategy);
    EXPECT_EQ(placements.front(), all);
    EXPECT_EQ(std::set<Placement>(placements.begin(), placements.end()).size(), placements.size());
    for (Placement placement : placements) {
      std::sort(placement.begin(), placement.end());
      EXPECT_EQ(placement, all);
    }
  }
}

TEST(NamePlacement, SaysWhereEachAxisLies) {
  const topo::Cluster cluster = example_cluster();
  const Placement all = topo::all_devices(cluster);
  EXPECT_EQ(name_placement(cluster, make_strategy(2, 2, 2, 1), all),
            "tp within servers, dp within leaves, pp across leaves");
  EXPECT_EQ(name_placement(cluster, make_strategy(1, 8, 1, 1), all),
            "1 of 7 stage boundaries crosses a leaf");
  EXPECT_EQ(name_placement(cluster, make_strategy(1, 1, 8, 1), all),
            "2 of 8 dp ring hops cross a leaf");
  EXPECT_EQ(name_placement(cluster, make_strategy(1, 1, 1, 1), {all.front()}), "one device");
}

TEST(ParsePlacement, NamesTheDeviceThatIsWrong) {
  const topo::Cluster cluster = example_cluster();
  EXPECT_EQ(parse_placement({"s0/1", "s3/0"}, cluster)->back(), (topo::DeviceRef{ServerId{3}, 0}));
  EXPECT_EQ(parse_placement({"s9/0"}, cluster).error().message,
            "placement: cluster lab has no device s9/0; its devices are s0/0 to s3/1");
  EXPECT_EQ(parse_placement({"s0/1", "s0/1"}, cluster).error().message,
            "placement: device s0/1 comes twice; give each rank its own");
}

}  // namespace
}  // namespace regatta::plan
