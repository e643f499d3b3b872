#include "regatta/network/probe/internal/connection_losses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "regatta/model/topo/addresses.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kFlowsKept = 20000;
constexpr Seconds kFlowsStep{1};
constexpr Seconds kFlowsPauseMost{2.5};
constexpr Seconds kFlowsForgotten{10};  // without losses for so long
constexpr std::size_t kOthersMost = 8;  // servers that lose nothing, to compare with
// The most segments that a connection counts for: its losses are not independent.
constexpr std::uint32_t kSegmentsMost = 50;
constexpr double kAgainBackground = 0.01;
constexpr std::size_t kTurns = 20;  // that all servers have had one
constexpr Seconds kTurn{0.1};
constexpr Seconds kLongAgo{-1e9};
constexpr Seconds kFlowsApart{3};  // two counts, for their difference to be reported

}  // namespace

ConnectionLosses::ConnectionLosses(const topo::Graph& graph, const fabric::Routes& routes,
                                   std::span<const std::uint32_t> seeds)
    : graph_(graph),
      routes_(routes),
      seeds_(seeds),
      usual_share_(kAgainBackground),
      servers_(graph.nodes.size()) {}

void ConnectionLosses::request(std::set<NodeId> suspects, Seconds now,
                               std::vector<EvidenceRequest>& requests) {
  if (now < next_request_) return;
  // The difference of two counts, soon one after the other, is what was sent in between.
  const bool is_new = now - next_request_ > kFlowsForgotten;
  pause_ = is_new ? kFlowsStep : std::min(1.25 * pause_, kFlowsPauseMost);
  next_request_ = now + pause_;
  std::size_t others = 0;
  for (std::size_t node = 0; node < graph_.nodes.size() && others < kOthersMost; ++node) {
    if (graph_.nodes[node].kind != topo::NodeKind::kServer) break;
    others += suspects.insert(NodeId{static_cast<int>(node)}).second ? 1 : 0;
  }
  for (const NodeId server : suspects) {
    Server& its = servers_[server.index()];
    if (now - its.suspected_at > kFlowsApart) its.suspected_since = now;
    its.suspected_at = now;
    its.requested = Purpose::kVerdict;
    if (its.counted_at.value <= 0) its.counted_at = now;
    requests.push_back({server, FlowsOrder()});
  }
  usual_share_ = usual_share();
}

void ConnectionLosses::request_all(Seconds now, std::vector<EvidenceRequest>& requests) {
  if (now < next_turn_) return;
  next_turn_ = now + kTurn;
  turn_ = (turn_ + 1) % kTurns;
  for (std::size_t node = turn_; node < graph_.nodes.size(); node += kTurns) {
    if (graph_.nodes[node].kind != topo::NodeKind::kServer) break;
    Server& its = servers_[node];
    // Its counts for verdicts are as far apart as request() has them.
    if (now - its.suspected_at <= kFlowsApart) continue;
    if (its.requested == Purpose::kNone) its.requested = Purpose::kSuspicion;
    if (its.counted_at.value <= 0) its.counted_at = now;
    requests.push_back({NodeId{static_cast<int>(node)}, FlowsOrder()});
  }
}

ConnectionLosses::Purpose ConnectionLosses::consume_request(NodeId server) {
  return std::exchange(servers_[server.index()].requested, Purpose::kNone);
}

// There and back; none where an end is no NIC of this server, or of the cluster.
std::optional<ConnectionLosses::RoundTripPath> ConnectionLosses::round_trip(
    NodeId server, const fabric::FiveTuple& flow) const {
  const auto nic = [&](std::uint32_t address) -> std::optional<LinkId> {
    const auto link = topo::link_of(address);
    if (!link || link->index() >= graph_.links.size() || graph_.links[link->index()].a_nic < 0 ||
        topo::address_of(*link) != address)
      return std::nullopt;
    return link;
  };
  const auto from = nic(flow.from);
  const auto to = nic(flow.to);
  if (!from || !to || graph_.links[from->index()].a != server) return std::nullopt;
  const fabric::FiveTuple back{flow.to, flow.from, flow.to_port, flow.from_port, flow.protocol};
  auto links = routes_.path(*from, *to, fabric::EcmpNextHop{flow, seeds_});
  const auto returns = routes_.path(*to, *from, fabric::EcmpNextHop{back, seeds_});
  if (!links || !returns) return std::nullopt;
  const std::size_t there = links->size();
  links->insert(links->end(), returns->begin(), returns->end());
  return RoundTripPath{.links = std::move(*links), .there = there};
}

double ConnectionLosses::usual_share() const {
  std::vector<double> shares;
  for (const RecentFlow& one : flows_)
    shares.push_back(static_cast<double>(one.again) / static_cast<double>(one.segments));
  if (shares.empty()) return kAgainBackground;
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  return std::max(kAgainBackground, *middle);
}

std::vector<diag::PassiveCount> ConnectionLosses::evaluate(NodeId server, const FlowCounts& counts,
                                                           const std::vector<bool>& is_broken,
                                                           Seconds now) {
  std::vector<diag::PassiveCount> passed;
  Server& its = servers_[server.index()];
  const Seconds from = its.counted_at.value > 0 ? its.counted_at : now;
  its.counted_at = now;
  for (const FlowCount& one : counts.flows) {
    auto path = round_trip(server, one.flow);
    if (!path || one.segments == 0) continue;
    std::vector<std::uint32_t>& links = path->links;
    flows_.push_back({.from = from < its.suspected_since ? kLongAgo : from,
                      .at = now,
                      .flow = one.flow,
                      .links = links,
                      .there = path->there,
                      .segments = one.segments,
                      .again = one.again});
    if (from < its.suspected_since) continue;
    if (std::ranges::any_of(links, [&](std::uint32_t link) { return is_broken[link]; })) continue;
    const double weight = std::min(1.0, kSegmentsMost / static_cast<double>(one.segments));
    passed.push_back({.window = counts.window,
                      .links = std::move(links),
                      .sent = static_cast<std::uint32_t>(std::ceil(weight * one.segments)),
                      .lost = static_cast<std::uint32_t>(std::lround(weight * one.again)),
                      .background = usual_share_});
  }
  if (flows_.size() > kFlowsKept)
    flows_.erase(flows_.begin(), flows_.end() - static_cast<std::ptrdiff_t>(kFlowsKept));
  return passed;
}

std::vector<diag::ConnectionLoss> ConnectionLosses::totals(const std::vector<bool>& is_broken,
                                                           Seconds since) const {
  std::map<fabric::FiveTuple, diag::ConnectionLoss> by_flow;
  for (const RecentFlow& one : flows_) {
    if (one.at < since) continue;
    if (std::ranges::any_of(one.links, [&](std::uint32_t link) { return is_broken[link]; }))
      continue;
    diag::ConnectionLoss& sum = by_flow[one.flow];
    sum.flow = one.flow;
    if (sum.links.empty()) {
      sum.links = one.links;
      sum.there = one.there;
    }
    sum.segments += one.segments;
    sum.again += one.again;
  }
  std::vector<diag::ConnectionLoss> all;
  for (auto& [flow, sum] : by_flow)
    all.push_back(std::move(sum));
  return all;
}

void ConnectionLosses::forget_before(Seconds oldest) {
  while (!flows_.empty() && flows_.front().at < oldest)
    flows_.pop_front();
}

void ConnectionLosses::add_to(CollectedEvidence& sum, const std::vector<bool>& is_its,
                              Seconds since) const {
  for (const RecentFlow& one : flows_) {
    if (one.from < since) continue;
    const bool is_over =
        std::ranges::any_of(one.links, [&](std::uint32_t link) { return is_its[link]; });
    (is_over ? sum.segments : sum.other_segments) += one.segments;
    (is_over ? sum.again : sum.other_again) += one.again;
  }
}

}  // namespace regatta::probe
