#include "regatta/network/probe/internal/trace_schedule.h"

#include <algorithm>
#include <set>

#include "regatta/network/fabric/routes.h"

namespace regatta::probe {
namespace {

using fabric::tail_of;

constexpr Seconds kDiscoveryAgain{600};
constexpr Seconds kUnknownAgain{60};         // the same while some paths are unknown
constexpr Seconds kDiscoveryStep{0.05};      // between two paths of each group of servers
constexpr std::size_t kDiscoveryGroups = 4;  // that get requests in turn
constexpr Seconds kAnswered{5};              // after which a request counts as unanswered
constexpr int kRequestsMost = 3;             // about a path in one discovery
constexpr Seconds kSuspicionStep{0.25};      // between two requests about paths that lose
constexpr std::size_t kSuspectsAtOnce = 16;
constexpr Seconds kCheckAgain{2};  // a path through a switch that may hash otherwise
constexpr int kTries = 4;
constexpr Seconds kPauseMost{60};           // between two requests about the same path
constexpr Seconds kSuspicionForgotten{10};  // paths that lost nothing for so long

}  // namespace

TraceSchedule::TraceSchedule(const topo::Graph& graph, const Matrix& matrix)
    : graph_(graph),
      matrix_(matrix),
      paths_(matrix.paths.size()),
      to_discover_(graph.nodes.size()) {}

NodeId TraceSchedule::server_of(std::uint32_t path) const {
  return graph_.links[matrix_.paths.links(path).front() / 2].a;
}

int TraceSchedule::routers_on(std::uint32_t path) const {
  return static_cast<int>(matrix_.paths.links(path).size()) - 1;
}

EvidenceRequest TraceSchedule::request_for(std::uint32_t path, int tries) const {
  return {server_of(path), TraceOrder{.path = path, .hops = routers_on(path), .tries = tries}};
}

void TraceSchedule::restart_discovery(Seconds now) {
  discovery_began_ = now;
  unanswered_.clear();
  for (std::deque<std::uint32_t>& paths : to_discover_)
    paths.clear();
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    paths_[path].requests = 0;
    if (is_traceable(path)) to_discover_[server_of(path).index()].push_back(path);
  }
}

// Requests without an answer, and paths that have led elsewhere.
void TraceSchedule::repeat_requests(Seconds now) {
  const auto is_done = [&](const Due& one) {
    return now - one.at > kAnswered || paths_[one.path].requests == 0;
  };
  for (; !unanswered_.empty() && is_done(unanswered_.front()); unanswered_.pop_front()) {
    const std::uint32_t path = unanswered_.front().path;
    if (paths_[path].requests > 0 && paths_[path].requests < kRequestsMost)
      to_discover_[server_of(path).index()].push_back(path);
  }
  for (; !to_recheck_.empty() && now >= to_recheck_.front().at; to_recheck_.pop_front()) {
    const std::uint32_t path = to_recheck_.front().path;
    to_discover_[server_of(path).index()].push_front(path);
  }
}

void TraceSchedule::discover(const MeasuredPaths& known, Seconds now,
                             std::vector<EvidenceRequest>& requests) {
  const bool is_due = now - discovery_began_ >= kDiscoveryAgain;
  if (is_due || (now - discovery_began_ >= kUnknownAgain && known.unknown() > 0))
    restart_discovery(now);
  repeat_requests(now);
  if (now < next_discovery_) return;
  next_discovery_ = now + kDiscoveryStep;
  phase_ = (phase_ + 1) % kDiscoveryGroups;
  for (std::size_t server = phase_; server < to_discover_.size(); server += kDiscoveryGroups) {
    std::deque<std::uint32_t>& paths = to_discover_[server];
    if (paths.empty()) continue;
    const std::uint32_t path = paths.front();
    paths.pop_front();
    ++paths_[path].requests;
    unanswered_.push_back({now, path});
    requests.push_back(request_for(path, known.is_elsewhere(path) ? kTries : 1));
  }
}

bool TraceSchedule::is_discovery_complete() const {
  return discovery_began_.value > 0 && unanswered_.empty() &&
         std::ranges::all_of(to_discover_, [](const auto& paths) { return paths.empty(); });
}

void TraceSchedule::trace_lossy(std::span<const std::uint32_t> lossy, Seconds now,
                                std::vector<EvidenceRequest>& requests) {
  if (now < next_lossy_) return;
  std::vector<std::uint32_t> due;
  for (const std::uint32_t path : lossy)
    if (paths_[path].next <= now && is_traceable(path)) due.push_back(path);
  if (due.empty()) return;
  next_lossy_ = now + kSuspicionStep;
  std::ranges::stable_sort(due, {}, [&](std::uint32_t path) { return paths_[path].next; });
  if (due.size() > kSuspectsAtOnce) due.resize(kSuspectsAtOnce);
  for (const std::uint32_t path : due) {
    Path& its = paths_[path];
    // After a long silence the suspicion is new; else the pauses between requests grow.
    const bool is_new = now - its.next > kSuspicionForgotten;
    its.pause = is_new ? Seconds{1} : std::min(2 * its.pause, kPauseMost);
    its.next = now + its.pause;
    requests.push_back(request_for(path, kTries));
  }
}

void TraceSchedule::trace_doubted(std::span<const diag::Culprit> doubted,
                                  const std::vector<bool>& is_lossy, Seconds now,
                                  std::vector<EvidenceRequest>& requests) {
  if (doubted.empty() || now < next_doubted_) return;
  next_doubted_ = now + kSuspicionStep;
  std::set<NodeId> choosers;
  for (const diag::Culprit& culprit : doubted) {
    if (culprit.kind == diag::CulpritKind::kSwitch) choosers.insert(culprit.node);
    if (culprit.kind != diag::CulpritKind::kLink) continue;
    for (const std::uint32_t link : links_to_avoid(graph_, culprit))
      choosers.insert(tail_of(graph_, link));
  }
  const std::size_t most = requests.size() + kSuspectsAtOnce;
  for (std::uint32_t path = 0; path < paths_.size() && requests.size() < most; ++path) {
    if (is_lossy[path] || paths_[path].next > now || !is_traceable(path)) continue;
    const auto links = matrix_.paths.links(path);
    if (std::ranges::none_of(links.subspan(1), [&](std::uint32_t link) {
          return choosers.contains(tail_of(graph_, link));
        }))
      continue;
    paths_[path].next = now + kCheckAgain;
    requests.push_back(request_for(path, 1));
  }
}

void TraceSchedule::recheck(std::uint32_t path, Seconds now) {
  to_recheck_.push_back({now + kCheckAfter, path});
}

void TraceSchedule::add_reporter(NodeId server, const MeasuredPaths& known) {
  std::deque<std::uint32_t>& queue = to_discover_[server.index()];
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    const bool is_its = server_of(path) == server && is_traceable(path);
    if (!is_its || known.is_confirmed(path) || std::ranges::find(queue, path) != queue.end())
      continue;
    paths_[path].requests = 0;
    queue.push_back(path);
  }
}

void TraceSchedule::postpone(const EvidenceRequest& request) {
  const auto* const trace = std::get_if<TraceOrder>(&request.order);
  if (trace == nullptr || trace->tries != 1 || paths_[trace->path].requests >= kRequestsMost)
    return;
  std::erase_if(unanswered_, [&](const Due& one) { return one.path == trace->path; });
  to_discover_[request.server.index()].push_back(trace->path);
}

}  // namespace regatta::probe
