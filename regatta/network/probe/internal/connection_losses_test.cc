#include "regatta/network/probe/internal/connection_losses.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class ConnectionLossesTest : public testing::Test {
 protected:
  LinkId nic(int server) const { return topo::nic_link(fabric_.graph, ServerId{server}, 0); }
  NodeId node(int server) const { return fabric_.graph.links[nic(server).index()].a; }
  FlowCounts counts(std::uint32_t segments, std::uint32_t again) const {
    return {
        .window = 9,
        .flows = {
            {{topo::address_of(nic(0)), topo::address_of(nic(7)), 1, 2, kTcp}, segments, again}}};
  }

  Fabric fabric_{{.servers = 8, .servers_per_leaf = 2, .spines = 2}};
  ConnectionLosses connections_{fabric_.graph, fabric_.routes, fabric_.seeds};
  std::vector<bool> is_broken_ = std::vector<bool>(2 * fabric_.graph.links.size());
};

TEST_F(ConnectionLossesTest, RequestTheCountsOfSuspectsAndOfServersToCompareWith) {
  std::vector<EvidenceRequest> requests;
  connections_.request({node(0)}, Seconds{100}, requests);
  EXPECT_THAT(requests, SizeIs(8));
  EXPECT_EQ(connections_.consume_request(node(0)), ConnectionLosses::Purpose::kVerdict);
  EXPECT_EQ(connections_.consume_request(node(0)), ConnectionLosses::Purpose::kNone) << "answered";
  connections_.request({node(0)}, Seconds{100.5}, requests);
  EXPECT_THAT(requests, SizeIs(8)) << "within the pause";
}

TEST_F(ConnectionLossesTest, RequestTheCountsOfEachServerEveryTwoSeconds) {
  std::map<NodeId, int> requested;
  for (double now = 100; now < 110; now += 0.01) {
    std::vector<EvidenceRequest> requests;
    connections_.request_all(Seconds{now}, requests);
    for (const EvidenceRequest& one : requests)
      ++requested[one.server];
    EXPECT_LE(requests.size(), 1U) << "they are spread";
  }
  EXPECT_THAT(requested, SizeIs(8));
  for (const auto& [server, count] : requested)
    EXPECT_NEAR(count, 5, 1) << server.value;
  EXPECT_EQ(connections_.consume_request(node(0)), ConnectionLosses::Purpose::kSuspicion);
}

TEST_F(ConnectionLossesTest, LeaveOutCountsThatBeganBeforeTheLosses) {
  connections_.evaluate(node(0), counts(50, 0), is_broken_, Seconds{100});
  std::vector<EvidenceRequest> requests;
  connections_.request({node(0)}, Seconds{101}, requests);
  EXPECT_THAT(connections_.evaluate(node(0), counts(50, 3), is_broken_, Seconds{101.1}), IsEmpty());
  EXPECT_THAT(connections_.evaluate(node(0), counts(50, 5), is_broken_, Seconds{102}), SizeIs(1));
  CollectedEvidence sum;
  connections_.add_to(sum, is_broken_, Seconds{101});
  EXPECT_EQ(sum.other_segments, 50U);
  EXPECT_EQ(sum.other_again, 5U);
}

TEST_F(ConnectionLossesTest, LeaveOutWhatWasSentBeforeTheLossesAfterAnAnswerThatWasSkipped) {
  connections_.skip(node(0), Seconds{99});
  std::vector<EvidenceRequest> requests;
  connections_.request({node(0)}, Seconds{101}, requests);
  EXPECT_THAT(connections_.evaluate(node(0), counts(50, 0), is_broken_, Seconds{101.1}), IsEmpty());
  CollectedEvidence sum;
  connections_.add_to(sum, is_broken_, Seconds{101});
  EXPECT_EQ(sum.other_segments, 0U) << "sent since 99 s";
}

// A prober does not answer the first request: its first answer is about what was sent since.
TEST_F(ConnectionLossesTest, LeaveOutWhatWasSentBeforeTheLossesInAFirstAnswer) {
  std::vector<EvidenceRequest> requests;
  for (double now = 98; now < 100; now += 0.1)
    connections_.request_all(Seconds{now}, requests);
  connections_.request({node(0)}, Seconds{101}, requests);
  EXPECT_THAT(connections_.evaluate(node(0), counts(50, 0), is_broken_, Seconds{101.1}), IsEmpty());
  CollectedEvidence sum;
  connections_.add_to(sum, is_broken_, Seconds{101});
  EXPECT_EQ(sum.other_segments, 0U) << "sent since 98 s";
}

TEST_F(ConnectionLossesTest, SumWhatEachConnectionHasSent) {
  connections_.evaluate(node(0), counts(50, 5), is_broken_, Seconds{1});
  connections_.evaluate(node(0), counts(30, 1), is_broken_, Seconds{3});
  const auto all = connections_.totals(is_broken_, Seconds{0});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].segments, 80U);
  EXPECT_EQ(all[0].again, 6U);
  EXPECT_EQ(all[0].flow.to_port, 2);
  EXPECT_EQ(connections_.totals(is_broken_, Seconds{2})[0].segments, 30U);
  is_broken_[2 * nic(0).index()] = true;
  EXPECT_THAT(connections_.totals(is_broken_, Seconds{0}), IsEmpty());
}

TEST_F(ConnectionLossesTest, WeighALongConnectionLikeAShortOne) {
  const auto passed = connections_.evaluate(node(0), counts(5000, 500), is_broken_, Seconds{1});
  ASSERT_THAT(passed, SizeIs(1));
  EXPECT_EQ(passed[0].sent, 50U);
  EXPECT_EQ(passed[0].lost, 5U);
  EXPECT_EQ(passed[0].links.size(), 8U) << "there and back";
}

TEST_F(ConnectionLossesTest, IgnoreConnectionsOfOtherServersAndOverBrokenLinks) {
  EXPECT_THAT(connections_.evaluate(node(1), counts(50, 5), is_broken_, Seconds{1}), IsEmpty());
  is_broken_[2 * nic(0).index()] = is_broken_[2 * nic(0).index() + 1] = true;
  EXPECT_THAT(connections_.evaluate(node(0), counts(50, 5), is_broken_, Seconds{1}), IsEmpty());
}

TEST_F(ConnectionLossesTest, SumTheSegmentsOverTheLinksOfACulpritAndOfOthers) {
  connections_.evaluate(node(0), counts(50, 5), is_broken_, Seconds{1});
  std::vector<bool> is_its = is_broken_;
  is_its[2 * nic(0).index()] = true;
  CollectedEvidence sum;
  connections_.add_to(sum, is_its, Seconds{0});
  connections_.add_to(sum, is_broken_, Seconds{0});
  EXPECT_EQ(
      sum, (CollectedEvidence{.segments = 50, .again = 5, .other_segments = 50, .other_again = 5}));
  connections_.forget_before(Seconds{2});
  CollectedEvidence later;
  connections_.add_to(later, is_its, Seconds{0});
  EXPECT_EQ(later, CollectedEvidence());
}

}  // namespace
}  // namespace regatta::probe
