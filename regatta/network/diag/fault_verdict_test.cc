#include "regatta/network/diag/fault_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Two servers on each of two leaves, two spines.
class FaultVerdictTest : public testing::Test {
 protected:
  LinkId link(const std::string& name) const { return topo::find_link(graph_, name).value(); }
  NodeId node(const std::string& name) const { return topo::find_node(graph_, name).value(); }

  const topo::Graph graph_ = fabric::TestFabric(4, 2, {1e9}).graph;
};

TEST_F(FaultVerdictTest, NameTheDirectionOfALink) {
  const LinkId up = link("leaf0-spine1");
  EXPECT_EQ(to_string(graph_, link_culprit({up, true})), "link leaf0-spine1 from leaf0 to spine1");
  EXPECT_EQ(to_string(graph_, link_culprit({up, false})), "link leaf0-spine1 from spine1 to leaf0");
  EXPECT_EQ(to_string(graph_, both_directions_culprit(up)), "link leaf0-spine1, both ways");
}

TEST_F(FaultVerdictTest, NameNicsSwitchesAndServers) {
  EXPECT_EQ(to_string(graph_, nic_culprit(graph_, link("s3.nic0-leaf1"))), "nic s3.nic0");
  EXPECT_EQ(to_string(graph_, switch_culprit(node("spine0"))), "switch spine0");
  EXPECT_EQ(to_string(graph_, server_culprit(node("s2"))), "server s2");
  EXPECT_EQ(to_string(graph_, host_noise_culprit(node("s2"))), "host noise on s2");
}

TEST_F(FaultVerdictTest, SayWhatSpeaksForThem) {
  const FaultVerdict verdict = {.culprit = switch_culprit(node("spine0")),
                                .symptom = Symptom::kLoss,
                                .loss_share = 0.048,
                                .evidence = {.paths = 40, .paths_hit = 12, .sent = 771, .lost = 37},
                                .confidence = 0.999,
                                .since = {},
                                .at = {},
                                .alternatives = {}};
  EXPECT_EQ(to_string(graph_, verdict),
            "switch spine0: loss 4.8 %, 37 of 771 probes on 12 of 40 paths, confidence 0.999");
}

TEST_F(FaultVerdictTest, SayNothingOfProbesWhereACarrierIsEnough) {
  const FaultVerdict verdict = {.culprit = both_directions_culprit(link("leaf0-spine1")),
                                .symptom = Symptom::kNoCarrier,
                                .loss_share = 1,
                                .evidence = {},
                                .confidence = 1,
                                .since = {},
                                .at = {},
                                .alternatives = {}};
  EXPECT_EQ(to_string(graph_, verdict),
            "link leaf0-spine1, both ways: no carrier, confidence 1.000");
}

TEST_F(FaultVerdictTest, SayWhichLinksToAvoid) {
  const LinkId up = link("leaf0-spine1");
  const auto number = static_cast<std::uint32_t>(2 * up.value);
  EXPECT_THAT(links_to_avoid(graph_, link_culprit({up, true})), ElementsAre(number));
  EXPECT_THAT(links_to_avoid(graph_, link_culprit({up, false})), ElementsAre(number + 1));
  EXPECT_THAT(links_to_avoid(graph_, both_directions_culprit(up)), ElementsAre(number, number + 1));
  EXPECT_THAT(links_to_avoid(graph_, switch_culprit(node("spine1"))), SizeIs(4));
  EXPECT_THAT(links_to_avoid(graph_, nic_culprit(graph_, link("s0.nic0-leaf0"))), SizeIs(2));
}

TEST_F(FaultVerdictTest, NeverBlameHostNoise) {
  EXPECT_FALSE(is_fault({}));
  EXPECT_FALSE(
      is_fault({.culprit = host_noise_culprit(node("s1")), .evidence = {}, .alternatives = {}}));
  EXPECT_TRUE(
      is_fault({.culprit = server_culprit(node("s1")), .evidence = {}, .alternatives = {}}));
  EXPECT_THAT(links_to_avoid(graph_, host_noise_culprit(node("s1"))), IsEmpty());
}

TEST_F(FaultVerdictTest, SayWhatTellsTheCulpritFromAnAlternative) {
  const auto check = [&](const Culprit& one, const Culprit& other) {
    return distinguishing_check(graph_, one, other);
  };
  const auto cable = [&](const char* name) { return both_directions_culprit(link(name)); };
  const Culprit spine = switch_culprit(node("spine0"));
  EXPECT_EQ(check(cable("leaf0-spine0"), cable("leaf1-spine0")),
            "trace the lossy paths to spine0, where leaf0-spine0 and leaf1-spine0 meet: what gets "
            "that far has crossed only the first of them");
  EXPECT_THAT(check(cable("leaf0-spine0"), spine), testing::HasSubstr("counters of leaf0-spine0"));
  EXPECT_EQ(check(spine, cable("leaf0-spine0")), check(cable("leaf0-spine0"), spine));
  EXPECT_EQ(check(cable("leaf0-spine0"), cable("leaf1-spine1")),
            "read the error and drop counters of leaf0-spine0 and leaf1-spine1 at both ends");
  EXPECT_EQ(check(spine, spine), "");
}

}  // namespace
}  // namespace regatta::diag
