#include "regatta/network/probe/evidence_collector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::probe {

using fabric::head_of;
using fabric::tail_of;

namespace {

constexpr Seconds kPathDiscoveryAgain{600};
constexpr Seconds kUnknownAgain{60};         // the same while nobody knows where some paths lead
constexpr Seconds kPathDiscoveryStep{0.05};  // between two paths of each group of servers
constexpr std::size_t kPathDiscoveryGroups = 4;  // that are asked in turn
constexpr Seconds kAnswered{5};                  // after which nobody waits for an answer
constexpr int kSurveysMost = 3;                  // questions about a path in one survey
constexpr std::size_t kFlowsKept = 20000;
constexpr Seconds kSuspicionStep{0.25};  // between two questions about paths that lose
constexpr std::size_t kSuspectsAtOnce = 16;
constexpr Seconds kCheckAgain{2};  // a path through a switch that may hash otherwise
constexpr int kTries = 4;
constexpr Seconds kFlowsStep{1};
constexpr std::size_t kOthersAsked = 8;  // servers that lose nothing, to compare with
constexpr Seconds kPauseMost{60};        // between two questions about the same
constexpr Seconds kForgotten{10};        // paths that lost nothing for so long
constexpr Seconds kRecent{10};
constexpr std::uint32_t kSegmentsMost = 50;  // that a connection weighs: its losses are no draws
constexpr double kTraceBackground = 0.02;
constexpr double kAgainBackground = 0.01;
// A router that answers less where nothing is lost says nothing by its silence.
constexpr double kAnswersLeast = 0.9;
constexpr std::uint64_t kAskedLeast = 4;

}  // namespace

EvidenceCollector::EvidenceCollector(const topo::Graph& graph, const fabric::Routes& routes,
                                     std::span<const std::uint32_t> seeds, const Matrix& matrix)
    : graph_(graph),
      routes_(routes),
      seeds_(seeds),
      matrix_(matrix),
      known_(graph, routes, matrix),
      paths_(matrix.paths.size()),
      is_lossy_(matrix.paths.size()),
      is_broken_(2 * graph.links.size()),
      to_discover_(graph.nodes.size()),
      answers_(graph.nodes.size()),
      usually_again_(kAgainBackground),
      is_flows_asked_(graph.nodes.size()) {}

NodeId EvidenceCollector::server_of(std::uint32_t path) const {
  return graph_.links[matrix_.paths.links(path).front() / 2].a;
}

int EvidenceCollector::routers_on(std::uint32_t path) const {
  return static_cast<int>(matrix_.paths.links(path).size()) - 1;
}

// How many routers, from the first one on, have only one path back: over the same links.
std::size_t EvidenceCollector::hops_back_alike(std::uint32_t path) const {
  const auto links = matrix_.paths.links(path);
  const NodeId leaf = head_of(graph_, links.front());
  std::size_t count = 1;
  for (; count + 1 < links.size(); ++count) {
    const auto back = routes_.next_hops(head_of(graph_, links[count]), leaf);
    if (back.size() != 1 || back[0] != (links[count] ^ 1U)) break;
  }
  return count;
}

void EvidenceCollector::begin_path_discovery(Seconds now) {
  surveyed_at_ = now;
  surveyed_.clear();
  for (std::deque<std::uint32_t>& paths : to_discover_)
    paths.clear();
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    paths_[path].surveys = 0;
    if (routers_on(path) <= kHopsMost) to_discover_[server_of(path).index()].push_back(path);
  }
}

// About what nobody has answered, and what has led elsewhere.
void EvidenceCollector::ask_again(Seconds now) {
  const auto is_done = [&](const Asked& one) {
    return now - one.at > kAnswered || paths_[one.path].surveys == 0;
  };
  for (; !surveyed_.empty() && is_done(surveyed_.front()); surveyed_.pop_front()) {
    const std::uint32_t path = surveyed_.front().path;
    if (paths_[path].surveys > 0 && paths_[path].surveys < kSurveysMost)
      to_discover_[server_of(path).index()].push_back(path);
  }
  for (; !to_check_.empty() && now >= to_check_.front().at; to_check_.pop_front()) {
    const std::uint32_t path = to_check_.front().path;
    to_discover_[server_of(path).index()].push_front(path);
  }
}

void EvidenceCollector::path_discovery(Seconds now, std::vector<EvidenceRequest>& questions) {
  const bool is_due = now - surveyed_at_ >= kPathDiscoveryAgain;
  if (is_due || (now - surveyed_at_ >= kUnknownAgain && known_.unknown() > 0))
    begin_path_discovery(now);
  ask_again(now);
  if (now < next_path_discovery_) return;
  next_path_discovery_ = now + kPathDiscoveryStep;
  phase_ = (phase_ + 1) % kPathDiscoveryGroups;
  for (std::size_t server = phase_; server < to_discover_.size(); server += kPathDiscoveryGroups) {
    std::deque<std::uint32_t>& paths = to_discover_[server];
    if (paths.empty()) continue;
    const std::uint32_t path = paths.front();
    paths.pop_front();
    ++paths_[path].surveys;
    surveyed_.push_back({now, path});
    questions.push_back({NodeId{static_cast<int>(server)},
                         TraceOrder{.path = path,
                                    .hops = routers_on(path),
                                    .tries = known_.is_elsewhere(path) ? kTries : 1}});
  }
}

bool EvidenceCollector::has_surveyed() const {
  return surveyed_at_.value > 0 && surveyed_.empty() &&
         std::ranges::all_of(to_discover_, [](const auto& paths) { return paths.empty(); });
}

void EvidenceCollector::suspect(std::span<const std::uint32_t> lossy, Seconds now,
                                std::vector<EvidenceRequest>& questions) {
  if (now < next_suspicion_) return;
  std::vector<std::uint32_t> due;
  for (const std::uint32_t path : lossy)
    if (paths_[path].next <= now && routers_on(path) <= kHopsMost) due.push_back(path);
  if (due.empty()) return;
  next_suspicion_ = now + kSuspicionStep;
  // First the path queried longest ago, or never.
  std::ranges::stable_sort(due, {}, [&](std::uint32_t path) { return paths_[path].next; });
  if (due.size() > kSuspectsAtOnce) due.resize(kSuspectsAtOnce);
  for (const std::uint32_t path : due) {
    Path& its = paths_[path];
    // Long silence: a new suspicion. Else the same one, asked about more and more rarely.
    const bool is_new = now - its.next > kForgotten;
    its.pause = is_new ? Seconds{1} : std::min(2 * its.pause, kPauseMost);
    its.next = now + its.pause;
    questions.push_back(
        {server_of(path), TraceOrder{.path = path, .hops = routers_on(path), .tries = kTries}});
  }
}

// Paths through the switches that would choose them, and that lose nothing: all their routers tell
// where they lead.
void EvidenceCollector::check(std::span<const diag::Culprit> doubted, Seconds now,
                              std::vector<EvidenceRequest>& questions) {
  if (doubted.empty() || now < next_check_) return;
  next_check_ = now + kSuspicionStep;
  std::set<NodeId> choosers;
  for (const diag::Culprit& culprit : doubted) {
    if (culprit.kind == diag::CulpritKind::kSwitch) choosers.insert(culprit.node);
    if (culprit.kind != diag::CulpritKind::kLink) continue;
    for (const std::uint32_t link : links_to_avoid(graph_, culprit))
      choosers.insert(tail_of(graph_, link));
  }
  const std::size_t most = questions.size() + kSuspectsAtOnce;
  for (std::uint32_t path = 0; path < paths_.size() && questions.size() < most; ++path) {
    if (is_lossy_[path] || paths_[path].next > now || routers_on(path) > kHopsMost) continue;
    const auto links = matrix_.paths.links(path);
    if (std::ranges::none_of(links.subspan(1), [&](std::uint32_t link) {
          return choosers.contains(tail_of(graph_, link));
        }))
      continue;
    paths_[path].next = now + kCheckAgain;
    questions.push_back(
        {server_of(path), TraceOrder{.path = path, .hops = routers_on(path), .tries = 1}});
  }
}

void EvidenceCollector::ask_for_flows(std::span<const std::uint32_t> lossy, Seconds now,
                                      std::vector<EvidenceRequest>& questions) {
  if (now < next_flows_) return;
  // Two counts, soon one after the other, say what was sent in between.
  const bool is_new = now - next_flows_ > kForgotten;
  flows_pause_ = is_new ? kFlowsStep : std::min(1.25 * flows_pause_, Seconds{2.5});
  next_flows_ = now + flows_pause_;
  std::set<NodeId> asked;
  for (const std::uint32_t path : lossy) {
    asked.insert(server_of(path));
    asked.insert(server_of(path ^ 1U));
  }
  std::size_t others = 0;
  for (std::size_t node = 0; node < graph_.nodes.size() && others < kOthersAsked; ++node) {
    if (graph_.nodes[node].kind != topo::NodeKind::kServer) break;
    others += asked.insert(NodeId{static_cast<int>(node)}).second ? 1 : 0;
  }
  for (const NodeId server : asked) {
    is_flows_asked_[server.index()] = true;
    questions.push_back({server, FlowsOrder()});
  }
  find_usual();
}

std::vector<EvidenceRequest> EvidenceCollector::ask(std::span<const std::uint32_t> lossy,
                                                    std::span<const diag::FaultVerdict> standing,
                                                    std::span<const diag::Culprit> doubted,
                                                    Seconds now) {
  forget(now);
  is_lossy_.assign(is_lossy_.size(), false);
  for (const std::uint32_t path : lossy)
    is_lossy_[path] = true;
  // A healer may have routed paths around the fault meanwhile: all are checked again.
  if (std::exchange(has_broken_, !standing.empty()) && standing.empty()) begin_path_discovery(now);
  is_broken_.assign(is_broken_.size(), false);
  for (const diag::FaultVerdict& verdict : standing)
    for (const std::uint32_t link : links_to_avoid(graph_, verdict.culprit))
      is_broken_[link] = true;
  std::vector<EvidenceRequest> questions;
  path_discovery(now, questions);
  check(doubted, now, questions);
  if (!lossy.empty()) {
    suspect(lossy, now, questions);
    ask_for_flows(lossy, now, questions);
  }
  return questions;
}

void EvidenceCollector::heard(NodeId server) {
  std::deque<std::uint32_t>& queue = to_discover_[server.index()];
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    const bool is_its = server_of(path) == server && routers_on(path) <= kHopsMost;
    if (!is_its || known_.is_confirmed(path) || std::ranges::find(queue, path) != queue.end())
      continue;
    paths_[path].surveys = 0;
    queue.push_back(path);
  }
}

void EvidenceCollector::put_off(const EvidenceRequest& question) {
  const auto* const trace = std::get_if<TraceOrder>(&question.order);
  if (trace == nullptr || trace->tries != 1 || paths_[trace->path].surveys >= kSurveysMost) return;
  std::erase_if(surveyed_, [&](const Asked& one) { return one.path == trace->path; });
  to_discover_[question.server.index()].push_back(trace->path);
}

Result<std::vector<diag::PassiveCount>> EvidenceCollector::take(NodeId server, const Trace& trace,
                                                                Seconds now) {
  if (trace.path >= paths_.size() || server_of(trace.path) != server ||
      static_cast<int>(trace.hops.size()) != routers_on(trace.path))
    return Error{Code::kInvalidInput, "tells of a traceroute on a path that is not its own"};
  std::vector<diag::PassiveCount> counts;
  paths_[trace.path].surveys = 0;  // it has been answered
  const MeasuredPaths::Said said = known_.take(trace, has_broken_, now);
  if (said == MeasuredPaths::Said::kElsewhere) to_check_.push_back({now + kCheckAfter, trace.path});
  if (known_.take_rehashed()) begin_path_discovery(now);
  if (said != MeasuredPaths::Said::kAsPlanned) return counts;
  traces_.push_back({.at = now, .path = trace.path, .hops = trace.hops});
  const auto links = matrix_.paths.links(trace.path);
  const std::size_t alike = hops_back_alike(trace.path);
  for (std::size_t hop = 0; hop < trace.hops.size(); ++hop) {
    const TraceHop& its = trace.hops[hop];
    Answers& known = answers_[head_of(graph_, links[hop]).index()];
    if (!is_lossy_[trace.path]) {
      known.asked += its.sent;
      known.answered += its.answered;
      continue;
    }
    if (hop >= alike || its.sent == 0 || known.asked < kAskedLeast) continue;
    const double usual = static_cast<double>(known.answered) / static_cast<double>(known.asked);
    if (usual < kAnswersLeast) continue;
    diag::PassiveCount count{
        .window = trace.window,
        .links = {links.begin(), links.begin() + static_cast<std::ptrdiff_t>(hop) + 1},
        .sent = its.sent,
        .lost = static_cast<std::uint32_t>(its.sent - its.answered),
        .asked = head_of(graph_, links[hop]),
        .background = std::max(kTraceBackground, 1 - usual)};
    for (std::size_t back = hop + 1; back-- > 0;)
      count.links.push_back(links[back] ^ 1U);
    counts.push_back(std::move(count));
  }
  return counts;
}

// There and back; none where an end is no NIC of this server, or of the cluster.
std::optional<std::vector<std::uint32_t>> EvidenceCollector::round_trip(
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
  links->insert(links->end(), returns->begin(), returns->end());
  return links;
}

void EvidenceCollector::find_usual() {
  std::vector<double> shares;
  for (const RecentFlow& one : flows_)
    shares.push_back(static_cast<double>(one.again) / static_cast<double>(one.segments));
  usually_again_ = kAgainBackground;
  if (shares.empty()) return;
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  usually_again_ = std::max(kAgainBackground, *middle);
}

bool EvidenceCollector::crosses_broken(std::span<const std::uint32_t> links) const {
  return std::ranges::any_of(links, [&](std::uint32_t link) { return is_broken_[link]; });
}

Result<std::vector<diag::PassiveCount>> EvidenceCollector::take(NodeId server,
                                                                const FlowCounts& counts,
                                                                Seconds now) {
  // Ignores a server that reports without a request.
  const bool is_asked = is_flows_asked_[server.index()];
  is_flows_asked_[server.index()] = false;
  if (!is_asked || !known_.is_hash_known()) return std::vector<diag::PassiveCount>();
  std::vector<RecentFlow> fresh;
  for (const FlowCount& one : counts.flows) {
    auto links = round_trip(server, one.flow);
    if (!links || one.segments == 0) continue;
    fresh.push_back(
        {.at = now, .links = std::move(*links), .segments = one.segments, .again = one.again});
  }
  flows_.insert(flows_.end(), fresh.begin(), fresh.end());
  if (flows_.size() > kFlowsKept)
    flows_.erase(flows_.begin(), flows_.end() - static_cast<std::ptrdiff_t>(kFlowsKept));
  std::vector<diag::PassiveCount> passed;
  for (RecentFlow& one : fresh) {
    // Around what is broken a healer may have led it meanwhile.
    if (crosses_broken(one.links)) continue;
    const double weight = std::min(1.0, kSegmentsMost / static_cast<double>(one.segments));
    passed.push_back({.window = counts.window,
                      .links = std::move(one.links),
                      .sent = static_cast<std::uint32_t>(std::ceil(weight * one.segments)),
                      .lost = static_cast<std::uint32_t>(std::lround(weight * one.again)),
                      .background = usually_again_});
  }
  return passed;
}

Result<diag::CarrierEvent> EvidenceCollector::take(NodeId server, const NicCarrier& nic) const {
  const auto link = topo::link_of(nic.address);
  if (!link || link->index() >= graph_.links.size() || graph_.links[link->index()].a_nic < 0 ||
      graph_.links[link->index()].a != server || topo::address_of(*link) != nic.address)
    return Error{Code::kInvalidInput, "tells of the carrier of a NIC that is not its own"};
  return diag::CarrierEvent{.link = *link, .up = nic.up};
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
  for (const RecentFlow& one : flows_) {
    if (one.at < since) continue;
    const bool is_over =
        std::ranges::any_of(one.links, [&](std::uint32_t link) { return is_its[link]; });
    (is_over ? sum.segments : sum.other_segments) += one.segments;
    (is_over ? sum.again : sum.other_again) += one.again;
  }
  return sum;
}

std::optional<fabric::Paths> EvidenceCollector::take_measured() {
  if (!to_check_.empty()) return std::nullopt;
  auto measured = known_.take_measured();
  // These answers were evaluated against other paths.
  if (measured) traces_.clear();
  return measured;
}

void EvidenceCollector::forget(Seconds now) {
  while (!traces_.empty() && now - traces_.front().at > kRecent)
    traces_.pop_front();
  while (!flows_.empty() && now - flows_.front().at > kRecent)
    flows_.pop_front();
}

}  // namespace regatta::probe
