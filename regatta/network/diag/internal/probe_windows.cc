#include "regatta/network/diag/internal/probe_windows.h"

#include "regatta/base/core/result.h"

namespace regatta::diag {
namespace {

// A server that was busy in a window counts as busy in so many windows before and after it.
constexpr Window kNear = 3;

}  // namespace

ProbeWindows::ProbeWindows(const topo::Graph& graph, const fabric::Paths& paths,
                           const LocatorOptions& options)
    : options_(options) {
  REGATTA_CHECK(options_.memory <= static_cast<int>(kSlots) - 2);
  for (std::uint32_t path = 0; path < paths.size(); path += 2) {
    const auto links = paths.links(path);
    from_.push_back(graph.links[links.front() / 2].a);
    to_.push_back(graph.links[links.back() / 2].a);
  }
  cells_.resize(kSlots * from_.size());
  hosts_.resize(graph.nodes.size());
  for (Host& host : hosts_)
    host.window.fill(-1);
}

const HostState* ProbeWindows::state_of(NodeId server, Window window) const {
  const Host& host = hosts_[server.index()];
  if (window < 0 || host.window[slot(window)] != window) return nullptr;
  return &host.state[slot(window)];
}

bool ProbeWindows::has_losses() const {
  return std::ranges::any_of(lossy_, [](int count) { return count > 0; });
}

void ProbeWindows::advance(Window window) {
  if (window <= newest_) return;
  for (Window next = std::max(newest_ + 1, window - Window{kSlots} + 1); next <= window; ++next) {
    const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(slot(next) * from_.size());
    std::fill(first, first + static_cast<std::ptrdiff_t>(from_.size()), Cell());
    lossy_[slot(next)] = 0;
  }
  newest_ = window;
}

void ProbeWindows::add(const ProbeReport& report) {
  if (report.window < 0) return;
  if (is_empty()) first_ = report.window;
  if (!is_empty() && is_too_new(report.window)) return;
  advance(report.window);
  if (!is_in_memory(report.window)) return;
  const std::size_t at = slot(report.window);
  Host& host = hosts_[report.server.index()];
  host.newest = std::max(host.newest, report.window);
  host.window[at] = report.window;
  host.state[at] = report.host;
  const auto change = [&](std::uint32_t probe, auto&& set) {
    Cell& one = cells_[at * from_.size() + probe];
    const bool was_lossy = one.is_lossy();
    set(one);
    lossy_[at] += static_cast<int>(one.is_lossy()) - static_cast<int>(was_lossy);
  };
  for (const SentCount& count : report.sent)
    if (count.probe < from_.size() && from_[count.probe] == report.server)
      change(count.probe, [&](Cell& one) {
        one.sent = std::min<std::uint16_t>(count.sent, kUnknown - 1);
        one.answered = std::min(std::max(one.answered, count.answered), one.sent);
      });
  for (const ArrivedCount& count : report.arrived)
    if (count.probe < to_.size() && to_[count.probe] == report.server)
      change(count.probe, [&](Cell& one) { one.arrived = count.arrived; });
}

bool ProbeWindows::is_usable(std::uint32_t probe, Window window, Seconds now,
                             std::vector<NodeId>& noisy) const {
  const NodeId ends[] = {from_[probe], to_[probe]};
  Seconds gaps;
  for (const NodeId end : ends) {
    if (state_of(end, window) == nullptr) return false;
    Seconds worst;
    bool lost_to_itself = false;
    for (Window near = window - kNear; near <= window + kNear; ++near) {
      const HostState* const state = state_of(end, near);
      if (state == nullptr) continue;
      worst = std::max(worst, state->worst_gap);
      lost_to_itself = lost_to_itself || state->control_lost > 0 || state->overflows > 0;
    }
    if (lost_to_itself || worst > options_.worst_gap) noisy.push_back(end);
    gaps += worst;
  }
  if (!noisy.empty()) return false;
  // The next report, or the one after, has late packets; a sleeping prober reports nothing.
  const Window known = std::min(newest_of(ends[0]), newest_of(ends[1]));
  const Seconds late = gaps > options_.window / 6 ? 2 * gaps + 3 * options_.window : Seconds{};
  const Seconds until = static_cast<double>(known - window) * options_.window;
  return std::min(until,
                  now - static_cast<double>(window + 1) * options_.window - options_.grace) >= late;
}

bool ProbeWindows::is_awake(std::uint32_t probe, Window window) const {
  Seconds gaps;
  for (const NodeId end : {from_[probe], to_[probe]}) {
    const HostState* const own = state_of(end, window);
    if (own == nullptr) return false;
    for (const Window near : {window - 1, window, window + 1}) {
      const HostState* const state = state_of(end, near);
      if (state != nullptr && (state->control_lost > 0 || state->overflows > 0)) return false;
    }
    gaps += own->worst_gap;
  }
  // The last probe of a window still has the grace time to come back.
  return gaps <= options_.grace * (2.0 / 3);
}

}  // namespace regatta::diag
