#include "regatta/network/diag/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/diag/test_round_trips.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Six servers on three leaves, two spines; round trips between all over each spine.
class BaselinesTest : public testing::Test {
 protected:
  // Sends 100 probes and 100 answers on each pair; loses `lost` where either path crosses the
  // cable.
  std::vector<RoundTrip> trips(const std::string& name, std::uint32_t lost) const {
    std::vector<RoundTrip> all;
    for (std::uint32_t i = 0; i < trips_.paths.size(); i += 2) {
      const auto there = trips_.paths.links(i);
      const auto back = trips_.paths.links(i + 1);
      bool goes = false;
      for (const auto& path : {there, back})
        for (const std::uint32_t link : path)
          goes = goes || fabric_.graph.links[link / 2].name == name;
      all.push_back({there, back, 100, goes ? lost : 0});
    }
    return all;
  }
  std::vector<std::string> texts(const std::vector<Culprit>& culprits) const {
    std::vector<std::string> all;
    all.reserve(culprits.size());
    for (const Culprit& one : culprits)
      all.push_back(to_string(fabric_.graph, one));
    return all;
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  const TestRoundTrips trips_{fabric_};
};

TEST_F(BaselinesTest, TheVoteNamesTheCableThatMostLossesShare) {
  EXPECT_THAT(texts(vote_007(fabric_.graph, trips("leaf1-spine0", 5))),
              ElementsAre("link leaf1-spine0, both ways"));
  EXPECT_THAT(vote_007(fabric_.graph, trips("none", 5)), IsEmpty());
}

TEST_F(BaselinesTest, ThresholdsNameANicButNoLinkOfASpine) {
  EXPECT_THAT(texts(pingmesh_threshold(fabric_.graph, trips("s3.nic0-leaf1", 5))),
              ElementsAre("nic s3.nic0"));
  EXPECT_THAT(pingmesh_threshold(fabric_.graph, trips("leaf1-spine0", 5)), IsEmpty());
  EXPECT_THAT(pingmesh_threshold(fabric_.graph, trips("none", 5)), IsEmpty());
}

}  // namespace
}  // namespace regatta::diag
