#include "regatta/network/probe/evidence_collector.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EvidenceCollectorTest : public testing::Test {
 protected:
  explicit EvidenceCollectorTest(const Shape& shape = {.servers = 8,
                                                       .servers_per_leaf = 2,
                                                       .spines = 2})
      : fabric_(shape),
        matrix_(plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds)),
        evidence_collector_(fabric_.graph, fabric_.routes, fabric_.seeds, matrix_) {}

  NodeId sender_of(std::uint32_t path) const {
    return fabric_.graph.links[matrix_.paths.links(path).front() / 2].a;
  }
  // The address by which a router answers for what came to it over the link.
  static std::uint32_t router_behind(std::uint32_t link) {
    const topo::DirectedLink into = fabric::directed_link(link);
    return topo::address_of(into.link, into.forward);
  }
  // Answers of the router at the end of each link but the last.
  Trace trace_of(std::uint32_t path, std::uint16_t tries = 4) const {
    Trace trace{.window = 7, .path = path, .hops = {}};
    const auto links = matrix_.paths.links(path);
    for (const std::uint32_t link : links.first(links.size() - 1))
      trace.hops.push_back({tries, tries, router_behind(link)});
    return trace;
  }
  // The leaf sends it over another of its uplinks.
  Trace elsewhere_trace(std::uint32_t path) const {
    Trace trace = trace_of(path);
    const std::uint32_t planned = matrix_.paths.links(path)[1];
    const NodeId leaf = fabric::tail_of(fabric_.graph, planned);
    for (const LinkId link : fabric_.graph.links_of[leaf.index()])
      if (fabric_.graph.links[link.index()].a == leaf && link.index() != planned / 2)
        trace.hops[1].router = topo::address_of(link, true);
    return trace;
  }
  // All paths, without losses.
  void path_discovery() {
    for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
      EXPECT_TRUE(evidence_collector_.accept(sender_of(path), trace_of(path), now_));
  }
  // One that goes from leaf to leaf, and its last link between switches.
  std::uint32_t long_path() const {
    for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
      if (matrix_.paths.links(path).size() >= 4) return path;
    ADD_FAILURE();
    return 0;
  }
  // Without losses: those of traces.
  std::vector<EvidenceRequest> due_requests(std::vector<std::uint32_t> lossy,
                                            const std::vector<diag::FaultVerdict>& standing = {}) {
    auto requests = evidence_collector_.due_requests(lossy, standing, {}, now_);
    if (lossy.empty())
      std::erase_if(requests, [](const EvidenceRequest& one) {
        return std::holds_alternative<FlowsOrder>(one.order);
      });
    return requests;
  }
  // How many paths it asks about; all is as planned.
  std::size_t requested_within(Seconds time) {
    std::set<std::uint32_t> asked;
    for (const Seconds until = now_ + time; now_ < until; now_ = now_ + Seconds{0.05})
      for (const EvidenceRequest& one : due_requests({})) {
        const std::uint32_t path = std::get<TraceOrder>(one.order).path;
        asked.insert(path);
        EXPECT_TRUE(evidence_collector_.accept(one.server, trace_of(path, 1), now_));
      }
    return asked.size();
  }
  static std::vector<TraceOrder> traces(const std::vector<EvidenceRequest>& questions) {
    std::vector<TraceOrder> all;
    for (const EvidenceRequest& one : questions)
      if (const auto* trace = std::get_if<TraceOrder>(&one.order)) all.push_back(*trace);
    return all;
  }

  // So that counts of connections are awaited.
  void request_flows(const std::vector<diag::FaultVerdict>& standing = {}) {
    now_ = now_ + Seconds{5};
    due_requests({0}, standing);
  }

  Fabric fabric_;
  Matrix matrix_;
  EvidenceCollector evidence_collector_;
  Seconds now_{1000};
};

TEST_F(EvidenceCollectorTest, RequestsEveryPathOnceAndSpreadsTheRequests) {
  std::map<std::uint32_t, int> asked;
  for (int i = 0; i < 2000; ++i) {
    std::map<NodeId, int> of_server;
    for (const EvidenceRequest& one : due_requests({})) {
      const auto& order = std::get<TraceOrder>(one.order);
      EXPECT_EQ(one.server, sender_of(order.path));
      EXPECT_EQ(order.tries, 1);
      EXPECT_EQ(order.hops, static_cast<int>(matrix_.paths.links(order.path).size()) - 1);
      ++asked[order.path];
      EXPECT_EQ(++of_server[one.server], 1);
      EXPECT_TRUE(evidence_collector_.accept(one.server, trace_of(order.path, 1), now_));
    }
    now_ = now_ + Seconds{0.01};
  }
  EXPECT_EQ(asked.size(), matrix_.paths.size());
  EXPECT_TRUE(std::ranges::all_of(asked, [](const auto& one) { return one.second == 1; }));
  EXPECT_TRUE(evidence_collector_.is_discovery_complete());
}

TEST_F(EvidenceCollectorTest, RequestsTheConnectionsOfEachServerWithoutALoss) {
  std::map<NodeId, int> asked;
  for (int i = 0; i < 400; ++i) {
    for (const EvidenceRequest& one : evidence_collector_.due_requests({}, {}, {}, now_))
      if (std::holds_alternative<FlowsOrder>(one.order)) ++asked[one.server];
    now_ = now_ + Seconds{0.01};
  }
  EXPECT_EQ(asked.size(), 8U);
  for (const auto& [server, count] : asked)
    EXPECT_NEAR(count, 2, 1) << server.value;
}

TEST_F(EvidenceCollectorTest, SuspectsALinkWhoseConnectionsRetransmitOnlyIfItIsSeenTwice) {
  // From server 0 to server 7 and others, from many ports; those to port 5000 get nothing over.
  const auto report = [&](bool is_broken) {
    for (int server = 0; server < 8; ++server) {
      FlowCounts counts{.window = 1, .flows = {}};
      for (int to = 0; to < 8; ++to)
        for (std::uint16_t port = 40000; port < 40016 && to / 2 != server / 2; ++port) {
          const auto nic = [&](int number) {
            return topo::address_of(topo::nic_link(fabric_.graph, ServerId{number}, 0));
          };
          const bool is_dropped = is_broken && server == 0 && port % 2 == 0;
          const auto to_port = static_cast<std::uint16_t>(5000 + port % 2);
          const std::uint32_t segments = is_dropped ? 3 : 100;
          counts.flows.push_back(
              {{nic(server), nic(to), port, to_port, kTcp}, segments, is_dropped ? segments : 0});
        }
      ASSERT_TRUE(evidence_collector_.accept(NodeId{server}, counts, now_));
    }
  };
  int found = 0;
  for (int i = 0; i < 1500; ++i) {
    static_cast<void>(evidence_collector_.due_requests({}, {}, {}, now_));
    if (i % 250 == 249) report(i >= 500);
    if (const auto one = evidence_collector_.consume_suspicion(now_)) {
      ++found;
      EXPECT_GE(i, 940) << "a single evaluation is not enough";
      EXPECT_EQ(one->side, diag::PortSide::kDestination);
      EXPECT_EQ(one->first_port, 5000);
      EXPECT_EQ(one->culprit.link, topo::nic_link(fabric_.graph, ServerId{0}, 0));
    }
    now_ = now_ + Seconds{0.01};
  }
  EXPECT_EQ(found, 1);
}

TEST_F(EvidenceCollectorTest, RequestsPathsWithoutAnswersAFewTimes) {
  std::map<std::uint32_t, int> asked;
  for (int i = 0; i < 10000; ++i) {
    for (const TraceOrder& order : traces(due_requests({})))
      ++asked[order.path];
    now_ = now_ + Seconds{0.01};
  }
  EXPECT_EQ(asked.size(), matrix_.paths.size());
  EXPECT_TRUE(std::ranges::all_of(asked, [](const auto& one) { return one.second == 3; }));
  EXPECT_TRUE(evidence_collector_.is_discovery_complete()) << "one that is silent holds up nobody";
}

TEST_F(EvidenceCollectorTest, RequestsPathsAgainOnceTheirServerReports) {
  const NodeId absent = sender_of(0);
  std::map<std::uint32_t, int> heard;
  const auto answer = [&](const EvidenceRequest& one) {
    const std::uint32_t path = std::get<TraceOrder>(one.order).path;
    ++heard[path];
    EXPECT_TRUE(evidence_collector_.accept(one.server, trace_of(path, 1), now_));
  };
  const auto go_on = [&](bool is_there) {
    for (int i = 0; i < 2000; ++i) {
      for (const EvidenceRequest& one : due_requests({})) {
        if (is_there || one.server != absent)
          answer(one);
        else
          evidence_collector_.postpone(one);
      }
      now_ = now_ + Seconds{0.01};
    }
  };
  go_on(false);
  EXPECT_TRUE(evidence_collector_.is_discovery_complete()) << "without that server";
  EXPECT_FALSE(heard.contains(0));
  evidence_collector_.add_reporter(absent);
  go_on(true);
  EXPECT_EQ(heard.size(), matrix_.paths.size());
}

TEST_F(EvidenceCollectorTest, ReportsOnceWhichPathLeadsElsewhereThanPlanned) {
  const std::uint32_t path = long_path();
  Trace trace = trace_of(path);
  EXPECT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  EXPECT_THAT(evidence_collector_.consume_divergent_paths(), IsEmpty());
  EXPECT_EQ(evidence_collector_.known().confirmed(), 1U);
  // The other uplink of the same leaf.
  const std::uint32_t planned = matrix_.paths.links(path)[1];
  const topo::Link& cable = fabric_.graph.links[planned / 2];
  std::uint32_t taken = planned;
  for (const LinkId link : fabric_.graph.links_of[cable.a.index()])
    if (fabric_.graph.links[link.index()].a == cable.a && link.index() != planned / 2)
      taken = fabric::number_of({link, true});
  ASSERT_NE(taken, planned);
  trace.hops[1].router = router_behind(taken);
  const auto counts = evidence_collector_.accept(sender_of(path), trace, now_);
  ASSERT_TRUE(counts);
  EXPECT_THAT(*counts, IsEmpty()) << "nobody knows which links it counts for";
  const auto elsewhere = evidence_collector_.consume_divergent_paths();
  ASSERT_THAT(elsewhere, SizeIs(1));
  EXPECT_EQ(elsewhere[0].path, path);
  EXPECT_EQ(elsewhere[0].planned, planned);
  EXPECT_EQ(elsewhere[0].taken, taken);
  EXPECT_EQ(evidence_collector_.known().elsewhere(), 1U);
  EXPECT_EQ(evidence_collector_.known().confirmed(), 0U);
  EXPECT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  EXPECT_THAT(evidence_collector_.consume_divergent_paths(), IsEmpty()) << "once";
}

TEST_F(EvidenceCollectorTest, ReplacesWholePathsByMeasuredOnes) {
  const std::uint32_t path = long_path();
  EXPECT_FALSE(evidence_collector_.consume_measured_paths());
  // Over the other spine.
  const auto planned = matrix_.paths.links(path);
  const auto other = [&](NodeId, std::size_t) {
    return fabric_.graph.links[planned[1] / 2].b ==
                   fabric_.graph
                       .links[fabric_.routes.next_hops(
                                  fabric_.graph.links[planned[0] / 2].b,
                                  fabric_.graph.links[planned.back() / 2].b)[0] /
                              2]
                       .b
               ? 1U
               : 0U;
  };
  const LinkId from{static_cast<int>(planned.front() / 2)};
  const LinkId to{static_cast<int>(planned.back() / 2)};
  const auto taken = *fabric_.routes.path(from, to, other);
  ASSERT_NE(taken[1], planned[1]);
  Trace trace = trace_of(path);
  for (std::size_t hop = 0; hop + 1 < taken.size(); ++hop)
    trace.hops[hop].router = router_behind(taken[hop]);
  Trace silent = trace;
  silent.hops[2] = {.sent = 1};
  path_discovery();
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  EXPECT_FALSE(evidence_collector_.consume_measured_paths()) << "it may be so for a moment only";
  EXPECT_TRUE(evidence_collector_.consume_unknown_paths()->at(path));
  const Seconds found = now_;
  const auto asked_again = [&] {
    for (int i = 0; i < 1000; ++i) {
      now_ = now_ + Seconds{0.05};
      for (const TraceOrder& order : traces(due_requests({})))
        if (order.path == path && order.tries > 1 && now_ - found >= Seconds{3}) return true;
    }
    return false;
  };
  EXPECT_TRUE(asked_again());
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), silent, now_));
  EXPECT_FALSE(evidence_collector_.consume_measured_paths()) << "one router has not answered";
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  auto paths = evidence_collector_.consume_measured_paths();
  ASSERT_TRUE(paths);
  matrix_.paths = std::move(*paths);
  EXPECT_TRUE(std::ranges::equal(matrix_.paths.links(path), taken));
  EXPECT_EQ(evidence_collector_.known().elsewhere(), 0U);
  EXPECT_FALSE(evidence_collector_.consume_unknown_paths()->at(path));
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  EXPECT_FALSE(evidence_collector_.consume_measured_paths()) << "it is as the matrix has it now";
  EXPECT_EQ(evidence_collector_.known().confirmed(), matrix_.paths.size());
  request_flows();
  const FlowCounts counts{
      .window = 9, .flows = {{{topo::address_of(from), topo::address_of(to), 1, 2, 6}, 50, 25}}};
  EXPECT_THAT(*evidence_collector_.accept(sender_of(path), counts, now_), IsEmpty())
      << "who hashes otherwise sends connections nobody knows where";
}

TEST_F(EvidenceCollectorTest, LearnsNoPathWhileAFaultLasts) {
  path_discovery();
  const std::uint32_t path = long_path();
  Trace detour = trace_of(path);
  const topo::Link& cable = fabric_.graph.links[matrix_.paths.links(path)[1] / 2];
  for (const LinkId link : fabric_.graph.links_of[cable.a.index()])
    if (fabric_.graph.links[link.index()].a == cable.a &&
        link.index() != matrix_.paths.links(path)[1] / 2)
      detour.hops[1].router = topo::address_of(link, true);
  diag::FaultVerdict broken;
  broken.culprit =
      diag::both_directions_culprit(LinkId{static_cast<int>(matrix_.paths.links(path)[1] / 2)});
  due_requests({}, {broken});
  for (int i = 0; i < 5; ++i) {
    now_ = now_ + Seconds{5};
    ASSERT_TRUE(evidence_collector_.accept(sender_of(path), detour, now_));
  }
  EXPECT_THAT(evidence_collector_.consume_divergent_paths(), IsEmpty());
  EXPECT_EQ(evidence_collector_.known().elsewhere(), 0U);
  EXPECT_FALSE(evidence_collector_.consume_measured_paths());
  // Once it is well again all paths are looked at.
  std::map<std::uint32_t, int> asked;
  for (int i = 0; i < 400; ++i) {
    now_ = now_ + Seconds{0.05};
    for (const TraceOrder& order : traces(due_requests({})))
      ++asked[order.path];
  }
  EXPECT_EQ(asked.size(), matrix_.paths.size());
}

TEST_F(EvidenceCollectorTest, RequestsTracesOfLosslessPathsThroughADoubtedSwitch) {
  requested_within(Seconds{30});
  const std::uint32_t lossy = long_path();
  const NodeId leaf = fabric::head_of(fabric_.graph, matrix_.paths.links(lossy).front());
  const std::vector<diag::Culprit> doubted = {diag::switch_culprit(leaf)};
  std::map<std::uint32_t, int> asked;
  for (int i = 0; i < 100; ++i) {
    for (const TraceOrder& order :
         traces(evidence_collector_.due_requests(std::vector{lossy}, {}, doubted, now_)))
      if (order.path != lossy) ++asked[order.path];
    now_ = now_ + Seconds{0.01};
  }
  EXPECT_FALSE(asked.empty());
  for (const auto& [path, times] : asked) {
    EXPECT_EQ(times, 1) << "a second is too short for another question";
    const auto links = matrix_.paths.links(path);
    EXPECT_TRUE(std::ranges::any_of(
        links, [&](auto link) { return fabric::tail_of(fabric_.graph, link) == leaf; }));
  }
}

TEST_F(EvidenceCollectorTest, RequestsEveryPathAgainOnceASwitchHashesOtherwise) {
  EXPECT_EQ(requested_within(Seconds{30}), matrix_.paths.size());
  EXPECT_EQ(requested_within(Seconds{30}), 0U);
  const std::uint32_t path = long_path();
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), elsewhere_trace(path), now_));
  EXPECT_EQ(requested_within(Seconds{30}), matrix_.paths.size());
}

TEST_F(EvidenceCollectorTest, RecognizesARouterByAnotherOfItsAddresses) {
  const std::uint32_t path = long_path();
  const auto links = matrix_.paths.links(path);
  Trace trace = trace_of(path);
  // The leaf behind the spine answers by its port to the other spine.
  const topo::Link& cable = fabric_.graph.links[links[2] / 2];
  for (const LinkId link : fabric_.graph.links_of[cable.a.index()])
    if (fabric_.graph.links[link.index()].a == cable.a && link.index() != links[2] / 2)
      trace.hops[2].router = topo::address_of(link);
  ASSERT_NE(trace.hops[2].router, trace_of(path).hops[2].router);
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  EXPECT_EQ(evidence_collector_.known().elsewhere(), 0U);
  EXPECT_EQ(evidence_collector_.known().confirmed(), 1U);
}

TEST_F(EvidenceCollectorTest, RequestsTracesOfLossyPathsMoreAndMoreRarely) {
  const std::uint32_t path = long_path();
  std::vector<double> asked_at;
  now_ = Seconds{0};
  for (int i = 0; i < 20000; ++i) {
    for (const TraceOrder& order : traces(due_requests({path})))
      if (order.tries > 1) {
        EXPECT_EQ(order.path, path);
        asked_at.push_back(now_.value);
      }
    now_ = now_ + Seconds{0.01};
  }
  ASSERT_GE(asked_at.size(), 6U);
  EXPECT_LT(asked_at[0], 0.02);
  EXPECT_LT(asked_at[1], 1.5);
  EXPECT_LE(asked_at.size(), 12U) << "in 200 s";
}

TEST_F(EvidenceCollectorTest, RequestsNoMoreThanRoutersAnswerWhereAllPathsLose) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
    all.push_back(path);
  std::size_t asked = 0;
  for (int i = 0; i < 100; ++i) {
    for (const TraceOrder& order : traces(due_requests(all)))
      asked += order.tries > 1 ? 1 : 0;
    now_ = now_ + Seconds{0.01};
  }
  EXPECT_GT(asked, 16U);
  EXPECT_LE(asked, 80U) << "in a second";
}

TEST_F(EvidenceCollectorTest, CountsAnswersOfRoutersWithOnePathBack) {
  path_discovery();
  const std::uint32_t path = long_path();
  due_requests({path});
  Trace trace = trace_of(path);
  trace.hops[1].answered = 1;
  const auto counts = evidence_collector_.accept(sender_of(path), trace, now_);
  ASSERT_TRUE(counts);
  ASSERT_THAT(*counts, SizeIs(2)) << "the leaf and the spine, not the leaf behind it";
  const auto links = matrix_.paths.links(path);
  EXPECT_THAT((*counts)[0].links, ElementsAre(links[0], links[0] ^ 1U));
  EXPECT_THAT((*counts)[1].links, ElementsAre(links[0], links[1], links[1] ^ 1U, links[0] ^ 1U));
  EXPECT_EQ((*counts)[0].lost, 0U);
  EXPECT_EQ((*counts)[1].sent, 4U);
  EXPECT_EQ((*counts)[1].lost, 3U);
}

TEST_F(EvidenceCollectorTest, CountsNoAnswersOfRoutersThatSeldomAnswer) {
  for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path) {
    Trace trace = trace_of(path);
    for (TraceHop& hop : trace.hops)
      hop.answered = 2;
    EXPECT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  }
  const std::uint32_t path = long_path();
  due_requests({path});
  const auto counts = evidence_collector_.accept(sender_of(path), trace_of(path), now_);
  ASSERT_TRUE(counts);
  EXPECT_THAT(*counts, IsEmpty());
}

TEST_F(EvidenceCollectorTest, ComputesThePathsOfConnections) {
  const LinkId from = matrix_.probes[0].from;
  const LinkId to = matrix_.probes[0].to;
  const NodeId server = fabric_.graph.links[from.index()].a;
  const fabric::FiveTuple flow{topo::address_of(from), topo::address_of(to), 40000, 5000, 6};
  FlowCounts counts{.window = 9, .flows = {{flow, 1000, 100}, {flow, 20, 0}, {flow, 20, 0}}};
  counts.flows[1].flow.to = 0xc0000201;  // nobody of this cluster
  EXPECT_THAT(*evidence_collector_.accept(server, counts, now_), IsEmpty()) << "nobody has asked";
  request_flows();
  const auto passed = evidence_collector_.accept(server, counts, now_);
  ASSERT_TRUE(passed);
  ASSERT_THAT(*passed, SizeIs(2));
  const auto there = fabric_.routes.path(from, to, fabric::EcmpNextHop{flow, fabric_.seeds});
  EXPECT_TRUE(std::ranges::equal(*there, std::span((*passed)[0].links).first(there->size())));
  EXPECT_EQ((*passed)[0].links.size(), 2 * there->size()) << "there and back";
  EXPECT_EQ((*passed)[0].sent, 50U) << "its losses are not as many draws as segments";
  EXPECT_EQ((*passed)[0].lost, 5U);
  EXPECT_EQ((*passed)[1].sent, 20U);

  diag::FaultVerdict broken;
  broken.culprit = diag::nic_culprit(fabric_.graph, from);
  request_flows({broken});
  const auto later = evidence_collector_.accept(server, counts, now_);
  ASSERT_TRUE(later);
  EXPECT_THAT(*later, IsEmpty()) << "a healer may have led them around it";
}

TEST_F(EvidenceCollectorTest, RejectsReportsAboutOtherServers) {
  const std::uint32_t path = long_path();
  const NodeId other{(sender_of(path).value + 1) % 8};
  EXPECT_FALSE(evidence_collector_.accept(other, trace_of(path), now_));
  Trace shorter = trace_of(path);
  shorter.hops.pop_back();
  EXPECT_FALSE(evidence_collector_.accept(sender_of(path), shorter, now_));
  shorter.path = 1'000'000;
  EXPECT_FALSE(evidence_collector_.accept(sender_of(path), shorter, now_));
  const std::uint32_t address = topo::address_of(matrix_.probes[0].from);
  const NodeId owner = fabric_.graph.links[matrix_.probes[0].from.index()].a;
  const auto event = evidence_collector_.accept(owner, NicCarrier{address, false});
  ASSERT_TRUE(event);
  EXPECT_EQ(event->link, matrix_.probes[0].from);
  EXPECT_FALSE(event->up);
  EXPECT_FALSE(
      evidence_collector_.accept(NodeId{(owner.value + 1) % 8}, NicCarrier{address, false}));
  EXPECT_FALSE(evidence_collector_.accept(owner, NicCarrier{address + 1, false}))
      << "that of the switch";
}

TEST_F(EvidenceCollectorTest, CountsAnswersBeforeAndBehindACulprit) {
  path_discovery();
  const Seconds broken_at = now_ = now_ + Seconds{1};
  const std::uint32_t path = long_path();
  const std::uint32_t bad = matrix_.paths.links(path)[2];
  Trace trace = trace_of(path);
  trace.hops[2].answered = 0;
  due_requests({path});
  ASSERT_TRUE(evidence_collector_.accept(sender_of(path), trace, now_));
  const CollectedEvidence link_says =
      evidence_collector_.about(diag::link_culprit(fabric::directed_link(bad)), broken_at);
  EXPECT_EQ(link_says.before_sent, 4U);
  EXPECT_EQ(link_says.before_answered, 4U);
  EXPECT_EQ(link_says.behind_sent, 4U);
  EXPECT_EQ(link_says.behind_answered, 0U);
  // A switch answers itself where what it should pass on is lost.
  const CollectedEvidence spine_says = evidence_collector_.about(
      diag::switch_culprit(fabric::tail_of(fabric_.graph, bad)), broken_at);
  EXPECT_EQ(spine_says.before_answered, 4U);
  EXPECT_EQ(spine_says.behind_sent, 4U);
  EXPECT_EQ(spine_says.behind_answered, 0U);
}

class ThreeTierEvidenceCollectorTest : public EvidenceCollectorTest {
 protected:
  ThreeTierEvidenceCollectorTest()
      : EvidenceCollectorTest({.servers = 16,
                               .servers_per_leaf = 2,
                               .spines = 2,
                               .leaves_per_group = 2,
                               .super_spines = 4}) {}
};

TEST_F(ThreeTierEvidenceCollectorTest, CountsAnswersUpToTheSuperSpine) {
  path_discovery();
  for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path) {
    const auto links = matrix_.paths.links(path);
    if (links.size() != 6) continue;
    due_requests({path});
    const auto counts = evidence_collector_.accept(sender_of(path), trace_of(path), now_);
    ASSERT_TRUE(counts);
    ASSERT_THAT(*counts, SizeIs(3));
    EXPECT_EQ(counts->back().links.size(), 6U);
    return;
  }
  ADD_FAILURE() << "no path over a super-spine";
}

}  // namespace
}  // namespace regatta::probe
