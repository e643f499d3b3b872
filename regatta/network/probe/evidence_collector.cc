#include "regatta/network/probe/evidence_collector.h"

#include <algorithm>
#include <array>
#include <utility>

#include "regatta/model/topo/addresses.h"

namespace regatta::probe {
namespace {

constexpr Seconds kRecent{10};
constexpr Seconds kSuspicionStep{2};
// Segments that a connection sent before hide at first what it loses; one that gets nothing through
// sends rarely later.
constexpr std::array kSuspicionSpans = {Seconds{4}, Seconds{10}};
constexpr Seconds kSuspicionAgain{60};

}  // namespace

EvidenceCollector::EvidenceCollector(const topo::Graph& graph, const fabric::Routes& routes,
                                     std::span<const std::uint32_t> seeds, const Matrix& matrix)
    : graph_(graph),
      matrix_(matrix),
      known_(graph, routes, matrix),
      schedule_(graph, matrix),
      routers_(graph, routes, matrix),
      connections_(graph, routes, seeds),
      is_lossy_(matrix.paths.size()),
      is_broken_(2 * graph.links.size()) {}

// The servers at both ends.
std::set<NodeId> EvidenceCollector::ends_of(std::span<const std::uint32_t> paths) const {
  std::set<NodeId> ends;
  for (const std::uint32_t path : paths)
    ends.insert({server_of(path), server_of(path ^ 1U)});
  return ends;
}

std::vector<EvidenceRequest> EvidenceCollector::due_requests(
    std::span<const std::uint32_t> lossy, std::span<const diag::FaultVerdict> standing,
    std::span<const diag::Culprit> doubted, Seconds now) {
  forget(now);
  is_lossy_.assign(is_lossy_.size(), false);
  for (const std::uint32_t path : lossy)
    is_lossy_[path] = true;
  // A healer may have routed paths around the fault meanwhile: all are checked again.
  if (std::exchange(has_broken_, !standing.empty()) && standing.empty())
    schedule_.restart_discovery(now);
  is_broken_.assign(is_broken_.size(), false);
  for (const diag::FaultVerdict& verdict : standing)
    for (const std::uint32_t link : links_to_avoid(graph_, verdict.culprit))
      is_broken_[link] = true;
  std::vector<EvidenceRequest> requests;
  connections_.request_all(now, requests);
  schedule_.discover(known_, now, requests);
  schedule_.trace_doubted(doubted, is_lossy_, now, requests);
  if (!lossy.empty()) {
    schedule_.trace_lossy(lossy, now, requests);
    connections_.request(ends_of(lossy), now, requests);
  }
  return requests;
}

Result<std::vector<diag::PassiveCount>> EvidenceCollector::accept(NodeId server, const Trace& trace,
                                                                  Seconds now) {
  if (trace.path >= is_lossy_.size() || server_of(trace.path) != server ||
      static_cast<int>(trace.hops.size()) != schedule_.routers_on(trace.path))
    return Error{Code::kInvalidInput, "tells of a traceroute on a path that is not its own"};
  schedule_.accept_answer(trace.path);
  const MeasuredPaths::PathMatch match = known_.accept(trace, has_broken_, now);
  if (match == MeasuredPaths::PathMatch::kElsewhere) schedule_.recheck(trace.path, now);
  if (known_.consume_rehash()) schedule_.restart_discovery(now);
  if (match != MeasuredPaths::PathMatch::kAsPlanned) return std::vector<diag::PassiveCount>();
  traces_.push_back({.at = now, .path = trace.path, .hops = trace.hops});
  return routers_.evaluate(trace, is_lossy_[trace.path]);
}

Result<std::vector<diag::PassiveCount>> EvidenceCollector::accept(NodeId server,
                                                                  const FlowCounts& counts,
                                                                  Seconds now) {
  // Ignores a server that reports without a request.
  const ConnectionLosses::Purpose purpose = connections_.consume_request(server);
  if (purpose == ConnectionLosses::Purpose::kNone) return std::vector<diag::PassiveCount>();
  if (!known_.is_hash_known()) {
    connections_.skip(server, now);
    return std::vector<diag::PassiveCount>();
  }
  auto passed = connections_.evaluate(server, counts, is_broken_, now);
  if (purpose == ConnectionLosses::Purpose::kSuspicion) passed.clear();
  return passed;
}

Result<diag::CarrierEvent> EvidenceCollector::accept(NodeId server, const NicCarrier& nic) const {
  const auto link = topo::link_of(nic.address);
  if (!link || link->index() >= graph_.links.size() || graph_.links[link->index()].a_nic < 0 ||
      graph_.links[link->index()].a != server || topo::address_of(*link) != nic.address)
    return Error{Code::kInvalidInput, "tells of the carrier of a NIC that is not its own"};
  return diag::CarrierEvent{.link = *link, .up = nic.up, .source = diag::CarrierSource::kServer};
}

std::optional<diag::LossSuspicion> EvidenceCollector::consume_suspicion(Seconds now) {
  if (now < next_suspicion_) return std::nullopt;
  next_suspicion_ = now + kSuspicionStep;
  if (has_broken_ || !known_.is_hash_known()) {
    suspicion_.reset();
    return std::nullopt;
  }
  const auto before = std::exchange(suspicion_, std::nullopt);
  for (const Seconds span : kSuspicionSpans)
    if (!suspicion_)
      suspicion_ = diag::suspect(graph_, connections_.totals(is_broken_, now - span), span);
  // A single evaluation may have caught a burst.
  if (!suspicion_ || !before || before->culprit != suspicion_->culprit) return std::nullopt;
  const auto [told, is_new] = told_suspected_.try_emplace(suspicion_->culprit, now);
  if (!is_new && now - told->second < kSuspicionAgain) return std::nullopt;
  told->second = now;
  return suspicion_;
}

CollectedEvidence EvidenceCollector::about(const diag::Culprit& culprit, Seconds since) const {
  std::vector<bool> is_its(is_broken_.size());
  for (const std::uint32_t link : links_to_avoid(graph_, culprit))
    is_its[link] = true;
  CollectedEvidence sum;
  for (const RecentTrace& one : traces_) {
    if (one.at < since) continue;
    const auto links = matrix_.paths.links(one.path);
    const auto first =
        std::ranges::find_if(links, [&](std::uint32_t link) { return is_its[link]; });
    if (first == links.end()) continue;
    auto last_before = static_cast<std::size_t>(first - links.begin());
    // The link into a blamed switch is well: the switch is the first router that may not answer.
    if (culprit.kind == diag::CulpritKind::kSwitch) ++last_before;
    for (std::size_t hop = 0; hop < one.hops.size(); ++hop) {
      if (hop + 1 == last_before) {
        sum.before_sent += one.hops[hop].sent;
        sum.before_answered += one.hops[hop].answered;
      }
      if (hop < last_before) continue;
      sum.behind_sent += one.hops[hop].sent;
      sum.behind_answered += one.hops[hop].answered;
    }
  }
  connections_.add_to(sum, is_its, since);
  return sum;
}

std::optional<fabric::Paths> EvidenceCollector::consume_measured_paths() {
  if (schedule_.has_rechecks()) return std::nullopt;
  auto measured = known_.consume_measured_paths();
  // These answers were evaluated against other paths.
  if (measured) traces_.clear();
  return measured;
}

void EvidenceCollector::forget(Seconds now) {
  while (!traces_.empty() && now - traces_.front().at > kRecent)
    traces_.pop_front();
  connections_.forget_before(now - kRecent);
}

}  // namespace regatta::probe
