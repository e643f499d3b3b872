#include "regatta/network/diag/internal/explain.h"

#include <deque>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kWindows = 40;

// Three servers on each of three leaves, three spines; paths between all servers over all spines.
class ExplainTest : public testing::Test {
 protected:
  ExplainTest() {
    for (std::uint32_t from = 0; from < 9; ++from)
      for (std::uint32_t to = 0; to < 9; ++to)
        for (std::size_t spine = 0; spine < 3; ++spine) {
          if (from / 3 == to / 3) continue;
          const auto path = fabric_.routes.path(fabric_.nics[from], fabric_.nics[to],
                                                [&](NodeId, std::size_t) { return spine; });
          paths_.push_back(*path);
          sent_.emplace_back(kWindows, std::uint16_t{3});
          lost_.emplace_back(kWindows, std::uint16_t{0});
        }
  }

  std::uint32_t link(const std::string& name, bool forward) const {
    return fabric::number_of({topo::find_link(fabric_.graph, name).value(), forward});
  }
  bool goes_over(std::size_t path, std::uint32_t one) const {
    return std::ranges::find(paths_[path], one) != paths_[path].end();
  }

  // Every `nth` packet over the link, from the window `onset` on.
  void lose(std::uint32_t one, int nth, std::size_t onset = 5) {
    int count = 0;
    for (std::size_t window = onset; window < kWindows; ++window)
      for (std::size_t path = 0; path < paths_.size(); ++path)
        for (int packet = 0; packet < sent_[path][window] && goes_over(path, one); ++packet)
          if (++count % nth == 0 && lost_[path][window] < sent_[path][window])
            ++lost_[path][window];
  }

  std::vector<std::string> told(std::vector<KnownFault> known_faults = {}) {
    std::vector<PathCounts> counts;
    for (std::size_t path = 0; path < paths_.size(); ++path)
      counts.push_back({paths_[path], sent_[path], lost_[path]});
    std::vector<std::string> texts;
    explanations_ = explain(fabric_.graph, counts, known_faults);
    for (const Explanation& one : explanations_)
      if (one.verdict.confidence > 0.99)
        texts.push_back(to_string(fabric_.graph, one.verdict.culprit));
    return texts;
  }

  fabric::TestFabric fabric_{9, 3, {1e9}};
  std::deque<std::vector<std::uint32_t>> paths_;
  std::deque<std::vector<std::uint16_t>> sent_;
  std::deque<std::vector<std::uint16_t>> lost_;
  std::vector<Explanation> explanations_;
};

TEST_F(ExplainTest, NothingWhereNothingIsLost) {
  EXPECT_THAT(told(), IsEmpty());
  EXPECT_THAT(explanations_, IsEmpty());
}

TEST_F(ExplainTest, ALinkThatLosesOneOfAHundred) {
  lose(link("leaf1-spine2", false), 100);
  EXPECT_THAT(told(), ElementsAre("link leaf1-spine2 from spine2 to leaf1"));
  EXPECT_EQ(explanations_[0].verdict.symptom, Symptom::kLoss);
  EXPECT_NEAR(explanations_[0].verdict.loss_share, 0.01, 0.004);
}

TEST_F(ExplainTest, ABlackHoleByItsFirstWindows) {
  lose(link("leaf1-spine2", true), 1, kWindows - 2);
  EXPECT_THAT(told(), ElementsAre("link leaf1-spine2 from leaf1 to spine2"));
  EXPECT_EQ(explanations_[0].verdict.symptom, Symptom::kBlackHole);
  EXPECT_EQ(explanations_[0].onset, kWindows - 2);
}

TEST_F(ExplainTest, ASwitchWhenAllItsLinksSuffer) {
  for (const char* name : {"leaf0-spine1", "leaf1-spine1", "leaf2-spine1"})
    lose(link(name, true), 20);
  EXPECT_THAT(told(), ElementsAre("switch spine1"));
}

TEST_F(ExplainTest, ANicWhenBothItsDirectionsSuffer) {
  lose(link("s4.nic0-leaf1", true), 20);
  lose(link("s4.nic0-leaf1", false), 20);
  EXPECT_THAT(told(), ElementsAre("nic s4.nic0"));
  EXPECT_THAT(explanations_[0].verdict.alternatives, SizeIs(1)) << "the server has no other";
}

TEST_F(ExplainTest, ANicAlsoWhenOneDirectionDiesALittleLater) {
  lose(link("s4.nic0-leaf1", true), 1, kWindows - 8);
  lose(link("s4.nic0-leaf1", false), 1, kWindows - 7);
  EXPECT_THAT(told(), ElementsAre("nic s4.nic0"));
  EXPECT_EQ(explanations_[0].verdict.symptom, Symptom::kBlackHole);
}

TEST_F(ExplainTest, TwoFaultsAtOnce) {
  lose(link("leaf0-spine0", true), 1);
  lose(link("s8.nic0-leaf2", false), 20);
  EXPECT_THAT(told(), testing::UnorderedElementsAre("link leaf0-spine0 from leaf0 to spine0",
                                                    "link s8.nic0-leaf2 from leaf2 to s8"));
}

TEST_F(ExplainTest, ALinkThatDropsSomeFlowsWhole) {
  const std::uint32_t one = link("leaf0-spine0", true);
  int count = 0;
  for (std::size_t path = 0; path < paths_.size(); ++path)
    if (goes_over(path, one) && ++count % 2 == 0)
      for (std::size_t window = 10; window < kWindows; ++window)
        lost_[path][window] = sent_[path][window];
  EXPECT_THAT(told(), ElementsAre("link leaf0-spine0 from leaf0 to spine0"));
  EXPECT_EQ(explanations_[0].verdict.symptom, Symptom::kSomeFlows);
}

TEST_F(ExplainTest, ABlackHoleAndSomeFlowsOfAnotherLinkAtTheSameSpine) {
  const std::uint32_t some = link("leaf1-spine0", false);
  lose(link("leaf0-spine0", true), 1, 20);
  int count = 0;
  for (std::size_t path = 0; path < paths_.size(); ++path)
    if (goes_over(path, some) && ++count % 2 == 0)
      for (std::size_t window = 20; window < kWindows; ++window)
        lost_[path][window] = sent_[path][window];
  // Which link loses the flows from leaf2 is not clear: from leaf2 on, or to leaf1 on.
  EXPECT_THAT(told(), ElementsAre("link leaf0-spine0 from leaf0 to spine0"))
      << "not the spine, which would drop some flows of both";
  ASSERT_THAT(explanations_, SizeIs(2));
  EXPECT_THAT(explanations_[1].verdict.alternatives, testing::Not(IsEmpty()));
}

// The arrivals of that flow before would speak against a fault that takes all of its flows.
TEST_F(ExplainTest, SomeFlowsOfALinkWhereAnotherFaultTakesTheLastPacketOfAnotherFlow) {
  const std::uint32_t bad = link("leaf0-spine0", true);
  const std::uint32_t lossy = link("s4.nic0-leaf1", false);
  int crossing = 0;
  for (std::size_t path = 0; path < paths_.size(); ++path) {
    if (!goes_over(path, bad)) continue;
    if (++crossing % 3 == 0) {
      for (std::size_t window = 5; window < kWindows; ++window)
        lost_[path][window] = sent_[path][window];
    } else if (goes_over(path, lossy)) {
      sent_[path].back() = lost_[path].back() = 1;
      lost_[path][20] = 2;
    }
  }
  lose(lossy, 20);
  EXPECT_THAT(told(), testing::UnorderedElementsAre("link leaf0-spine0 from leaf0 to spine0",
                                                    "link s4.nic0-leaf1 from leaf1 to s4"));
}

// Late answers of a stalled server count as lost on a cable that died meanwhile.
TEST_F(ExplainTest, ANicThatDiesAlthoughSomeSeemsToBeLostBefore) {
  lose(link("s4.nic0-leaf1", true), 1, 20);
  lose(link("s4.nic0-leaf1", false), 1, 20);
  const std::uint32_t from = link("s0.nic0-leaf0", true);
  for (std::size_t path = 0; path < paths_.size(); ++path)
    for (std::size_t window = 12; window < 20; ++window)
      if (goes_over(path, from) && goes_over(path, link("s4.nic0-leaf1", false)))
        lost_[path][window] = sent_[path][window];
  EXPECT_THAT(told(), testing::Contains("nic s4.nic0"));
}

TEST_F(ExplainTest, NobodyForAFewLossesHereAndThere) {
  for (const std::size_t path : {3U, 40U, 77U, 120U})
    lost_[path][path % kWindows] = 1;
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(ExplainTest, NobodyForAShortBurst) {
  const std::uint32_t one = link("s4.nic0-leaf1", false);
  for (std::size_t path = 0; path < paths_.size(); ++path)
    for (std::size_t window = 10; window < 14; ++window)
      if (goes_over(path, one)) lost_[path][window] = 1;
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(ExplainTest, WhatIsKnownToBeBrokenByFewerLosses) {
  const std::uint32_t one = link("leaf1-spine2", true);
  lose(one, 160);
  const std::size_t unsure = told().size();
  const Culprit culprit = link_culprit({LinkId{static_cast<int>(one / 2)}, true});
  EXPECT_THAT(told({{.culprit = culprit}}), ElementsAre("link leaf1-spine2 from leaf1 to spine2"));
  EXPECT_LE(unsure, 1U);
}

TEST_F(ExplainTest, NobodyElseWhereWhatIsBrokenGetsWorse) {
  for (const char* name : {"leaf0-spine1", "leaf2-spine0"}) {
    for (std::vector<std::uint16_t>& lost : lost_)
      std::ranges::fill(lost, std::uint16_t{0});
    const std::uint32_t one = link(name, true);
    lose(one, 20, 2);
    for (std::size_t window = 25; window < kWindows; ++window)
      for (std::size_t path = 0; path < paths_.size(); ++path)
        if (goes_over(path, one)) lost_[path][window] = sent_[path][window];
    const Culprit culprit = link_culprit({LinkId{static_cast<int>(one / 2)}, true});
    static_cast<void>(told({{.culprit = culprit}}));
    ASSERT_THAT(explanations_, SizeIs(1)) << name;
    EXPECT_EQ(explanations_[0].verdict.culprit, culprit);
    EXPECT_EQ(explanations_[0].verdict.symptom, Symptom::kBlackHole);
    EXPECT_GT(explanations_[0].verdict.loss_share, 0.95);
  }
}

// Two leaves with two servers each and two spines: each path over an uplink goes on over one other,
// so probes alone cannot tell which of the two it is, or whether it is the spine.
class ExplainTwoLeavesTest : public testing::Test {
 protected:
  ExplainTwoLeavesTest() {
    for (std::uint32_t from = 0; from < 4; ++from)
      for (std::uint32_t to = 0; to < 4; ++to)
        for (std::size_t spine = 0; spine < 2 && from / 2 != to / 2; ++spine)
          add(*fabric_.routes.path(fabric_.nics[from], fabric_.nics[to],
                                   [&](NodeId, std::size_t) { return spine; }),
              {});
  }
  struct Path {
    std::vector<std::uint32_t> links;
    std::vector<std::uint16_t> sent = std::vector<std::uint16_t>(kWindows);
    std::vector<std::uint16_t> lost = std::vector<std::uint16_t>(kWindows);
    NodeId answered_by;
    bool is_probe = true;
  };
  Path& add(std::vector<std::uint32_t> links, NodeId answered_by) {
    paths_.push_back({.links = std::move(links), .answered_by = answered_by});
    return paths_.back();
  }
  // Traceroutes on each path to its spine and back; from windows on in which probes are lost too.
  void ask_spines() {
    const std::size_t probes = paths_.size();
    for (std::size_t i = 0; i < probes; ++i) {
      const auto& links = paths_[i].links;
      const NodeId spine = fabric_.graph.links[links[1] / 2].b;
      Path& path = add({links[0], links[1], links[1] ^ 1U, links[0] ^ 1U}, spine);
      path.is_probe = false;
      path.sent[kWindows - 5] = path.sent[kWindows - 3] = 4;
    }
  }
  // Share 1 / nth of what crosses the cable in either direction.
  void lose(const std::string& cable, int nth) {
    int count = 0;
    for (std::size_t window = 5; window < kWindows; ++window)
      for (Path& path : paths_) {
        if (path.is_probe) path.sent[window] = 3;
        int crossed = 0;
        for (const std::uint32_t link : path.links)
          crossed += fabric_.graph.links[link / 2].name == cable ? 1 : 0;
        for (int packet = 0; packet < path.sent[window] && crossed > 0; ++packet) {
          count += crossed;
          if (count < nth) continue;
          count -= nth;
          if (path.lost[window] < path.sent[window]) ++path.lost[window];
        }
      }
  }
  std::vector<Explanation> explanations(std::vector<KnownFault> known_faults = {}) const {
    std::vector<PathCounts> counts;
    for (const Path& path : paths_)
      counts.push_back(
          {path.links, path.sent, path.lost, path.is_probe ? 0 : 0.02, path.answered_by});
    return explain(fabric_.graph, counts, known_faults, {}, with_errors_);
  }
  std::string name(const Explanation& one) const {
    return to_string(fabric_.graph, one.verdict.culprit);
  }
  LinkId link(const std::string& name) const {
    return topo::find_link(fabric_.graph, name).value();
  }

  fabric::TestFabric fabric_{4, 2, {1e9}};
  std::deque<Path> paths_;
  std::vector<std::uint32_t> with_errors_;
};

TEST_F(ExplainTwoLeavesTest, ByProbesAloneAllThatLooksTheSame) {
  lose("leaf1-spine0", 10);
  const auto all = explanations();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_GT(all[0].verdict.confidence, 0.99);
  EXPECT_THAT(all[0].verdict.alternatives, SizeIs(2));
}

TEST_F(ExplainTwoLeavesTest, ByTraceroutesTheOneThatItIs) {
  for (const char* bad : {"leaf0-spine0", "leaf1-spine0", "leaf1-spine1"})
    for (const int nth : {1, 5, 10}) {
      paths_.resize(16);
      for (Path& path : paths_)
        std::ranges::fill(path.lost, std::uint16_t{0});
      ask_spines();
      lose(bad, nth);
      const auto all = explanations();
      ASSERT_THAT(all, SizeIs(1)) << bad << ", one of " << nth;
      EXPECT_EQ(name(all[0]), "link " + std::string(bad) + ", both ways") << "one of " << nth;
      EXPECT_THAT(all[0].verdict.alternatives, IsEmpty()) << bad << ", one of " << nth;
    }
}

TEST_F(ExplainTwoLeavesTest, ByTraceroutesTheRightOneThoughAnotherWasBlamedBefore) {
  ask_spines();
  lose("leaf1-spine0", 5);
  const auto all = explanations({{.culprit = both_directions_culprit(link("leaf0-spine0"))}});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(name(all[0]), "link leaf1-spine0, both ways");
}

TEST_F(ExplainTwoLeavesTest, NoOtherForAFewPacketsOnceTheyWereToldApart) {
  lose("leaf1-spine0", 5);
  // One traceroute too many is lost beside the culprit.
  Path& odd = add(
      {paths_[0].links[0], paths_[0].links[1], paths_[0].links[1] ^ 1U, paths_[0].links[0] ^ 1U},
      {});
  odd.is_probe = false;
  odd.sent[kWindows - 3] = 4;
  odd.lost[kWindows - 3] = 3;
  const Culprit right = both_directions_culprit(link("leaf1-spine0"));
  const auto settled = explanations({{.culprit = right, .is_settled = true}});
  ASSERT_THAT(settled, SizeIs(1));
  EXPECT_EQ(settled[0].verdict.culprit, right);
  const auto open = explanations({{.culprit = right}});
  ASSERT_THAT(open, SizeIs(1));
  EXPECT_NE(open[0].verdict.culprit, right) << "else this test shows nothing";
}

TEST_F(ExplainTwoLeavesTest, ASwitchThatPassesNothingOnThoughItAnswersItself) {
  ask_spines();
  for (std::size_t window = 5; window < kWindows; ++window)
    for (Path& path : paths_) {
      if (!path.is_probe) continue;
      path.sent[window] = 3;
      if (fabric_.graph.nodes[fabric_.graph.links[path.links[1] / 2].b.index()].name == "spine0")
        path.lost[window] = 3;
    }
  const auto all = explanations();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(name(all[0]), "switch spine0");
}

TEST_F(ExplainTwoLeavesTest, ByCountersTheCableWhoseEndHasErrors) {
  lose("leaf1-spine0", 10);
  for (const std::string bad : {"leaf0-spine0", "leaf1-spine0"}) {
    with_errors_ = {fabric::number_of({link(bad), true})};
    const auto all = explanations();
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_EQ(name(all[0]), "link " + bad + ", both ways");
    EXPECT_GT(all[0].verdict.confidence, 0.99);
    EXPECT_THAT(all[0].verdict.alternatives, SizeIs(2)) << "to probes they look the same";
  }
}

TEST_F(ExplainTwoLeavesTest, ByCountersAnotherThanWasBlamedBefore) {
  lose("leaf1-spine0", 10);
  const Culprit blamed = both_directions_culprit(link("leaf0-spine0"));
  with_errors_ = {fabric::number_of({link("leaf1-spine0"), false})};
  const auto moved = explanations({{.culprit = blamed}});
  ASSERT_THAT(moved, SizeIs(1));
  EXPECT_EQ(name(moved[0]), "link leaf1-spine0, both ways");
  EXPECT_GT(moved[0].verdict.confidence, 0.99);
  // It stays there when the counters say no more, and errors elsewhere do not matter.
  for (const std::vector<std::uint32_t>& later :
       {std::vector<std::uint32_t>(), {fabric::number_of({link("leaf0-spine1"), true})}}) {
    with_errors_ = later;
    const auto after = explanations({{.culprit = moved[0].verdict.culprit}});
    ASSERT_THAT(after, SizeIs(1));
    EXPECT_EQ(name(after[0]), "link leaf1-spine0, both ways");
  }
}

TEST_F(ExplainTwoLeavesTest, ByTraceroutesTheRightOneThoughAnotherCountsErrors) {
  ask_spines();
  lose("leaf1-spine0", 5);
  with_errors_ = {fabric::number_of({link("leaf0-spine0"), true})};
  const auto all = explanations();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(name(all[0]), "link leaf1-spine0, both ways");
}

}  // namespace
}  // namespace regatta::diag
