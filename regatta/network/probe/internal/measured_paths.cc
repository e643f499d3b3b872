#include "regatta/network/probe/internal/measured_paths.h"

#include <algorithm>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::probe {

using fabric::head_of;
using fabric::tail_of;

namespace {

constexpr Seconds kNever{-1e9};
constexpr Seconds kAlways{-1e8};  // before anything was traced

}  // namespace

MeasuredPaths::MeasuredPaths(const topo::Graph& graph, const fabric::Routes& routes,
                             const Matrix& matrix)
    : graph_(graph),
      routes_(routes),
      matrix_(matrix),
      paths_(matrix.paths.size()),
      rehashed_(graph.nodes.size(), kNever) {}

// The link by which a packet came to the router that has this address; none where no cable has.
std::optional<std::uint32_t> MeasuredPaths::link_to(std::uint32_t router) const {
  const auto link = topo::link_of(router);
  if (!link || link->index() >= graph_.links.size()) return std::nullopt;
  return fabric::number_of({.link = *link, .forward = router == topo::address_of(*link, true)});
}

// As routers tell it, from NIC to NIC; empty where one has not answered or they do not hang
// together.
std::vector<std::uint32_t> MeasuredPaths::measure(const Trace& trace) const {
  std::vector<std::uint32_t> links;
  for (const TraceHop& hop : trace.hops) {
    const auto link = hop.router == 0 ? std::nullopt : link_to(hop.router);
    if (!link) return {};
    if (!links.empty() && head_of(graph_, links.back()) != tail_of(graph_, *link)) return {};
    links.push_back(*link);
  }
  const auto planned = matrix_.paths.links(trace.path);
  if (links.front() != planned.front() ||
      head_of(graph_, links.back()) != tail_of(graph_, planned.back()))
    return {};
  links.push_back(planned.back());
  return links;
}

// By the first router that says so.
std::optional<DivergentPath> MeasuredPaths::leads_elsewhere(const Trace& trace) const {
  const auto links = matrix_.paths.links(trace.path);
  for (std::size_t hop = 0; hop < trace.hops.size(); ++hop) {
    const std::uint32_t router = trace.hops[hop].router;
    const auto taken = router == 0 ? std::nullopt : link_to(router);
    // An address that no cable has may be another one of the same router; one of another cable is,
    // where that leads there from elsewhere than from the router before.
    if (!taken || *taken == links[hop]) continue;
    const bool is_the_router = head_of(graph_, *taken) == head_of(graph_, links[hop]);
    const bool is_from_before = tail_of(graph_, *taken) == tail_of(graph_, links[hop]);
    if (is_the_router && !is_from_before) continue;
    return DivergentPath{.path = trace.path, .planned = links[hop], .taken = *taken};
  }
  return std::nullopt;
}

void MeasuredPaths::keep_elsewhere(const DivergentPath& found, Seconds now) {
  Path& path = paths_[found.path];
  path.is_elsewhere = true;
  path.elsewhere_at = now;
  ++elsewhere_;
  fresh_.push_back(found);
  has_changed_ = true;
  // A switch that was seen to send it as planned has changed its hash since then.
  const auto links = matrix_.paths.links(found.path);
  const auto at = static_cast<std::size_t>(std::ranges::find(links, found.planned) - links.begin());
  Seconds& rehashed = rehashed_[tail_of(graph_, found.planned).index()];
  if (path.confirmed <= at) {
    rehashed = std::max(rehashed, kAlways);
  } else if (path.confirmed_at >= rehashed) {
    rehashed = now;
    has_rehashed_ = true;
  }
}

void MeasuredPaths::confirm(const Trace& trace, Seconds now) {
  Path& path = paths_[trace.path];
  std::size_t links = 0;
  // On the first link every path of the NIC is.
  for (std::size_t hop = trace.hops.size() == 1 ? 0 : 1; hop < trace.hops.size(); ++hop)
    if (trace.hops[hop].router != 0) links = hop + 1;
  path.measured.clear();
  if (std::exchange(path.is_elsewhere, false)) {
    --elsewhere_;
    has_changed_ = true;
  }
  if (links == 0) return;
  has_changed_ = has_changed_ || is_unknown(trace.path);
  path.confirmed = static_cast<std::uint32_t>(links);
  path.confirmed_at = now;
}

MeasuredPaths::PathMatch MeasuredPaths::accept(const Trace& trace, bool has_broken, Seconds now) {
  const auto elsewhere = leads_elsewhere(trace);
  if (!elsewhere) {
    confirm(trace, now);
    return PathMatch::kAsPlanned;
  }
  Path& path = paths_[trace.path];
  if (has_broken) return PathMatch::kElsewhereAsKnown;
  if (!path.is_elsewhere) {
    keep_elsewhere(*elsewhere, now);
    return PathMatch::kElsewhere;
  }
  if (now - path.elsewhere_at >= kCheckAfter) {
    path.measured = measure(trace);
    path.confirmed_at = now;
  }
  return PathMatch::kElsewhereAsKnown;
}

bool MeasuredPaths::is_unknown(std::uint32_t number) const {
  const Path& path = paths_[number];
  if (path.is_elsewhere) return true;
  const auto links = matrix_.paths.links(number);
  const NodeId last = tail_of(graph_, links.back());
  // The last router has no choice of path.
  for (std::size_t at = 0; at + 2 < links.size(); ++at) {
    const NodeId router = head_of(graph_, links[at]);
    const Seconds rehashed = rehashed_[router.index()];
    if (rehashed < kAlways || routes_.next_hops(router, last).size() < 2) continue;
    if (path.confirmed < at + 2 || path.confirmed_at < rehashed) return true;
  }
  return false;
}

std::size_t MeasuredPaths::confirmed() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      paths_, [](const Path& path) { return path.confirmed > 0 && !path.is_elsewhere; }));
}

std::optional<std::vector<bool>> MeasuredPaths::consume_unknown_paths() {
  if (!std::exchange(has_changed_, false)) return std::nullopt;
  std::vector<bool> unknown;
  unknown.reserve(paths_.size());
  for (std::uint32_t path = 0; path < paths_.size(); ++path)
    unknown.push_back(is_unknown(path));
  unknown_ = static_cast<std::size_t>(std::ranges::count(unknown, true));
  return unknown;
}

std::optional<fabric::Paths> MeasuredPaths::consume_measured_paths() {
  if (elsewhere_ == 0 ||
      std::ranges::none_of(paths_, [](const Path& path) { return !path.measured.empty(); }))
    return std::nullopt;
  is_hash_known_ = false;
  has_changed_ = true;
  fabric::Paths paths;
  for (std::uint32_t number = 0; number < paths_.size(); ++number) {
    Path& path = paths_[number];
    if (path.measured.empty()) {
      paths.add(matrix_.paths.links(number));
      continue;
    }
    path.confirmed = static_cast<std::uint32_t>(path.measured.size()) - 1;
    paths.add(std::exchange(path.measured, {}));
    path.is_elsewhere = false;
    --elsewhere_;
  }
  return paths;
}

}  // namespace regatta::probe
