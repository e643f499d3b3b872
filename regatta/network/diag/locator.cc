#include "regatta/network/diag/locator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "regatta/base/core/result.h"

namespace regatta::diag {

LocatorOptions options_for(Seconds period, Seconds confirmation_delay) {
  LocatorOptions options{.confirmation_delay = confirmation_delay};
  const double times = std::max(1.0, period.value / 0.01);
  options.window = options.window * times;
  options.grace = options.window;
  options.longest_pause = std::max(options.longest_pause, 4 * options.window);
  options.clean_time = options.clean_time * times;
  options.routes_back = std::max(options.routes_back, 4 * options.window);
  options.changes = options.changes * times;
  return options;
}

namespace {

constexpr double kSilentShare = 0.5;  // of unanswered questions: the router itself may be dead
constexpr Window kNear = 3;  // windows in which a server that was busy in one may have been it too

}  // namespace

// Counts of each path, over the windows that count.
struct Locator::Tally {
  Window first = 0;
  Window last = 0;
  std::size_t windows = 0;
  std::vector<std::uint16_t> sent;  // path * windows + window
  std::vector<std::uint16_t> lost;
  std::vector<std::span<const std::uint32_t>> links;  // per path
  std::vector<double> background;                     // the same
  std::vector<NodeId> answered_by;                    // the same
  std::map<NodeId, Evidence> noise;  // losses that do not count, by the server that was busy

  std::size_t add_path(std::span<const std::uint32_t> its_links, double its_background = 0,
                       NodeId its_router = {}) {
    links.push_back(its_links);
    background.push_back(its_background);
    answered_by.push_back(its_router);
    sent.resize(links.size() * windows);
    lost.resize(links.size() * windows);
    return links.size() - 1;
  }
  void set(std::size_t path, Window window, std::uint32_t its_sent, std::uint32_t its_lost) {
    const std::size_t at = path * windows + static_cast<std::size_t>(window - first);
    sent[at] = static_cast<std::uint16_t>(its_sent);
    lost[at] = static_cast<std::uint16_t>(its_lost);
  }
  bool has_lost(std::size_t path) const {
    const auto its = std::span(lost).subspan(path * windows, windows);
    return std::ranges::any_of(its, [](std::uint16_t count) { return count > 0; });
  }
  std::vector<PathCounts> paths() const {
    std::vector<PathCounts> all;
    for (std::size_t path = 0; path < links.size(); ++path)
      all.push_back({links[path], std::span(sent).subspan(path * windows, windows),
                     std::span(lost).subspan(path * windows, windows), background[path],
                     answered_by[path]});
    return all;
  }
};

Locator::Locator(const topo::Graph& graph, const fabric::Paths& paths,
                 const LocatorOptions& options)
    : graph_(graph), paths_(paths), options_(options) {
  REGATTA_CHECK(options_.memory <= static_cast<int>(kSlots) - 2);
  for (std::uint32_t path = 0; path < paths.size(); path += 2) {
    const auto links = paths.links(path);
    from_.push_back(graph.links[links.front() / 2].a);
    to_.push_back(graph.links[links.back() / 2].a);
  }
  cells_.resize(kSlots * from_.size());
  hosts_.resize(graph.nodes.size());
  for (Host& host : hosts_) {
    host.window.assign(kSlots, -1);
    host.state.resize(kSlots);
  }
  has_no_carrier_.resize(graph.links.size());
  unsure_link_.assign(graph.links.size(), -1);
  unsure_switch_.assign(graph.nodes.size(), -1);
}

std::size_t Locator::slot(Window window) {
  return static_cast<std::size_t>(window) % kSlots;
}

Locator::Cell& Locator::cell(std::uint32_t probe, Window window) {
  return cells_[slot(window) * from_.size() + probe];
}

const Locator::Cell& Locator::cell(std::uint32_t probe, Window window) const {
  return cells_[slot(window) * from_.size() + probe];
}

const HostState* Locator::state_of(NodeId server, Window window) const {
  const Host& host = hosts_[server.index()];
  if (window < 0 || host.window[slot(window)] != window) return nullptr;
  return &host.state[slot(window)];
}

void Locator::advance(Window window) {
  if (window <= newest_) return;
  for (Window next = std::max(newest_ + 1, window - Window{kSlots} + 1); next <= window; ++next) {
    const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(slot(next) * from_.size());
    std::fill(first, first + static_cast<std::ptrdiff_t>(from_.size()), Cell());
    lossy_[slot(next)] = 0;
  }
  newest_ = window;
  std::erase_if(passive_counts_,
                [&](const PassiveCount& one) { return !is_in_memory(one.window); });
}

void Locator::add(const ProbeReport& report) {
  if (report.window < 0) return;
  if (newest_ < 0) first_ = report.window;
  if (newest_ >= 0 && report.window > newest_ + Window{kSlots}) return;
  advance(report.window);
  if (!is_in_memory(report.window)) return;
  Host& host = hosts_[report.server.index()];
  host.newest = std::max(host.newest, report.window);
  host.window[slot(report.window)] = report.window;
  host.state[slot(report.window)] = report.host;
  const auto change = [&](std::uint32_t probe, auto&& set) {
    Cell& one = cell(probe, report.window);
    const auto is_lossy = [&] { return one.sent != kUnknown && one.answered < one.sent; };
    const bool was_lossy = is_lossy();
    set(one);
    lossy_[slot(report.window)] += static_cast<int>(is_lossy()) - static_cast<int>(was_lossy);
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

void Locator::add(const CarrierEvent& event) {
  const bool is_back = event.up && has_no_carrier_[event.link.index()];
  has_no_carrier_[event.link.index()] = !event.up;
  if (!is_back) return;
  const Window until =
      newest_ + static_cast<Window>(std::ceil(options_.routes_back / options_.window));
  unsure_link_[event.link.index()] = until;
  const topo::Link& cable = graph_.links[event.link.index()];
  if (cable.a_nic < 0) unsure_switch_[cable.a.index()] = unsure_switch_[cable.b.index()] = until;
}

void Locator::add(const PassiveCount& count) {
  if (newest_ < 0 || !is_in_memory(count.window) || count.window > newest_ + Window{kSlots}) return;
  if (count.sent > 0 && count.sent < kUnknown && count.lost <= count.sent && !count.links.empty() &&
      count.background > 0)
    passive_counts_.push_back(count);
}

// Whether losses of this probe in this window say something about the network by now; else which
// server was too busy.
bool Locator::is_usable(std::uint32_t probe, Window window, Seconds now,
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
  const Window known = std::min(hosts_[ends[0].index()].newest, hosts_[ends[1].index()].newest);
  const Seconds late = gaps > options_.window / 6 ? 2 * gaps + 3 * options_.window : Seconds{};
  const Seconds until = static_cast<double>(known - window) * options_.window;
  return std::min(until,
                  now - static_cast<double>(window + 1) * options_.window - options_.grace) >= late;
}

bool Locator::is_rerouted(std::span<const std::uint32_t> links) const {
  return std::ranges::any_of(links, [&](std::uint32_t link) {
    const topo::Link& cable = graph_.links[link / 2];
    return has_no_carrier_[link / 2] || lacks_a_link_[cable.a.index()] ||
           lacks_a_link_[cable.b.index()];
  });
}

// Last window whose losses may be on paths that were not restored yet.
Window Locator::unsure_until(std::span<const std::uint32_t> links) const {
  Window until = -1;
  for (const std::uint32_t link : links) {
    const topo::Link& cable = graph_.links[link / 2];
    until = std::max({until, unsure_link_[link / 2], unsure_switch_[cable.a.index()],
                      unsure_switch_[cable.b.index()]});
  }
  return until;
}

void Locator::count(Seconds now, Tally& tally) const {
  tally.windows = static_cast<std::size_t>(tally.last - tally.first + 1);
  tally.links.reserve(paths_.size() + passive_counts_.size());
  for (std::uint32_t path = 0; path < paths_.size(); ++path)
    tally.add_path(paths_.links(path));
  std::vector<NodeId> noisy;
  for (std::uint32_t probe = 0; probe < from_.size(); ++probe) {
    const std::uint32_t there = 2 * probe;
    const std::uint32_t back = there + 1;
    if (is_rerouted(paths_.links(there)) || is_rerouted(paths_.links(back))) continue;
    const Window unsure =
        std::max(unsure_until(paths_.links(there)), unsure_until(paths_.links(back)));
    for (Window window = std::max(tally.first, unsure + 1); window <= tally.last; ++window) {
      const Cell& one = cell(probe, window);
      if (one.sent == kUnknown || one.sent == 0) continue;
      if (one.answered == one.sent) {
        if (counts(there)) tally.set(there, window, one.sent, 0);
        if (counts(back)) tally.set(back, window, one.sent, 0);
        continue;
      }
      noisy.clear();
      if (is_usable(probe, window, now, noisy) && one.arrived != kUnknown) {
        const auto arrived = std::clamp(one.arrived, one.answered, one.sent);
        if (counts(there)) tally.set(there, window, one.sent, one.sent - arrived);
        if (counts(back)) tally.set(back, window, arrived, arrived - one.answered);
      }
      for (const NodeId busy : noisy) {
        Evidence& evidence = tally.noise[busy];
        evidence.sent += one.sent;
        evidence.lost += one.sent - one.answered;
      }
    }
  }
  count_passive(tally);
}

void Locator::count_passive(Tally& tally) const {
  // A router that answers itself says nothing about what goes through it; one that does not may be
  // what swallows it.
  struct Router {
    std::uint32_t sent = 0;
    std::uint32_t lost = 0;
  };
  std::map<NodeId, Router> routers;
  const auto is_near = [&](const PassiveCount& one) {
    return one.window >= tally.first && one.window <= tally.last && !is_rerouted(one.links);
  };
  for (const PassiveCount& one : passive_counts_)
    if (one.asked.is_valid() && is_near(one)) {
      Router& its = routers[one.asked];
      its.sent += one.sent;
      its.lost += one.lost;
    }
  for (const PassiveCount& one : passive_counts_) {
    if (!is_near(one)) continue;
    const auto router = routers.find(one.asked);
    const bool answers =
        router != routers.end() && router->second.lost < kSilentShare * router->second.sent;
    tally.set(tally.add_path(one.links, one.background, answers ? one.asked : NodeId{}), one.window,
              one.sent, one.lost);
  }
}

// Servers that say nothing and answer nobody.
void Locator::find_silent(Window last, std::vector<FaultVerdict>& found) const {
  std::map<NodeId, Evidence> silent;
  std::size_t known = 0;
  std::size_t fresh = 0;
  for (std::size_t node = 0; node < hosts_.size(); ++node) {
    if (graph_.nodes[node].kind != topo::NodeKind::kServer) continue;
    ++known;
    const Window newest = std::max(hosts_[node].newest, first_);
    const Seconds silence = static_cast<double>(last - newest) * options_.window;
    if (silence >= options_.longest_pause) silent[NodeId{static_cast<int>(node)}];
    if (silence < options_.longest_pause / 4) ++fresh;
  }
  // When most are silent, it is the reports that do not come.
  if (silent.empty() || 2 * fresh < known) return;
  for (std::uint32_t probe = 0; probe < from_.size(); ++probe) {
    const auto at = silent.find(to_[probe]);
    if (at == silent.end() || silent.contains(from_[probe])) continue;
    Evidence& evidence = at->second;
    ++evidence.paths;
    bool hit = false;
    // It may still have answered in the first windows that it did not report on.
    for (Window window = std::max(hosts_[to_[probe].index()].newest + 4, first_window(last));
         window <= last; ++window) {
      const Cell& one = cell(probe, window);
      if (one.sent == kUnknown) continue;
      evidence.sent += one.sent;
      evidence.lost += one.sent - one.answered;
      hit = hit || one.answered < one.sent;
    }
    evidence.paths_hit += hit ? 1 : 0;
  }
  for (const auto& [server, evidence] : silent) {
    if (evidence.sent == 0 || evidence.lost < evidence.sent) continue;
    const Window newest = std::max(hosts_[server.index()].newest, first_);
    found.push_back({.culprit = server_culprit(server),
                     .symptom = Symptom::kSilent,
                     .loss_share = 1,
                     .evidence = evidence,
                     // As if each of them were left unanswered by every second server that lives.
                     .confidence = 1 - std::exp2(-static_cast<double>(evidence.lost)),
                     .since = static_cast<double>(newest + 1) * options_.window,
                     .at = {},
                     .alternatives = {}});
  }
}

void Locator::find_carriers(std::vector<FaultVerdict>& found) {
  lacks_a_link_.assign(graph_.nodes.size(), false);
  for (std::size_t i = 0; i < has_no_carrier_.size(); ++i) {
    if (!has_no_carrier_[i]) continue;
    const LinkId link{static_cast<int>(i)};
    const topo::Link& cable = graph_.links[i];
    found.push_back({.culprit = cable_culprit(graph_, link),
                     .symptom = Symptom::kNoCarrier,
                     .loss_share = 1,
                     .evidence = {},
                     .confidence = 1,
                     .since = {},
                     .at = {},
                     .alternatives = {}});
    // Its switches spread flows over what is left: nobody knows which path they go now.
    if (cable.a_nic >= 0) continue;
    lacks_a_link_[cable.a.index()] = true;
    lacks_a_link_[cable.b.index()] = true;
  }
}

std::vector<FaultVerdict> Locator::find(Seconds now, Window last) {
  std::vector<FaultVerdict> found;
  find_carriers(found);
  find_silent(last, found);
  lossy_paths_.clear();
  if (std::ranges::none_of(lossy_, [](int count) { return count > 0; })) return found;
  Tally tally;
  tally.first = first_window(last);
  tally.last = last;
  count(now, tally);
  for (std::uint32_t path = 0; path < paths_.size(); ++path)
    if (tally.has_lost(path)) lossy_paths_.push_back(path);
  std::vector<KnownFault> known_faults;
  for (std::size_t i = 0; i < active_faults_.size(); ++i)
    known_faults.push_back({active_faults_[i].culprit, fault_states_[i].is_settled});
  for (Explanation& one : explain(graph_, tally.paths(), known_faults, options_.explain)) {
    const Window onset = tally.first + static_cast<Window>(one.onset);
    one.verdict.since = static_cast<double>(onset) * options_.window;
    found.push_back(std::move(one.verdict));
  }
  for (const auto& [server, evidence] : tally.noise)
    found.push_back(
        {.culprit = host_noise_culprit(server),
         .symptom = Symptom::kLate,
         .loss_share = static_cast<double>(evidence.lost) / static_cast<double>(evidence.sent),
         .evidence = evidence,
         .confidence = 1,
         .since = static_cast<double>(tally.first) * options_.window,
         .at = {},
         .alternatives = {}});
  return found;
}

std::vector<Culprit> Locator::unconfirmed() const {
  std::vector<Culprit> culprits;
  for (const UnconfirmedFault& one : unconfirmed_)
    culprits.push_back(one.culprit);
  return culprits;
}

bool Locator::is_unconfirmed(const FaultVerdict& verdict, Seconds now) {
  if (verdict.symptom != Symptom::kSomeFlows || options_.confirmation_delay.value <= 0)
    return false;
  const auto at = std::ranges::find(unconfirmed_, verdict.culprit, &UnconfirmedFault::culprit);
  if (at == unconfirmed_.end()) {
    unconfirmed_.push_back({.culprit = verdict.culprit, .since = now, .held_at = now});
    return true;
  }
  at->held_at = now;
  return now - at->since < options_.confirmation_delay;
}

// Splits `found` into new, lasting and ended faults.
FaultChanges Locator::compare(std::vector<FaultVerdict> found, Seconds now) {
  FaultChanges changes;
  const auto meets = [&](const Culprit& one, const Culprit& other) {
    const auto links = links_to_avoid(graph_, one);
    return std::ranges::any_of(links_to_avoid(graph_, other), [&](std::uint32_t link) {
      return std::ranges::find(links, link) != links.end();
    });
  };
  for (FaultVerdict& verdict : found) {
    verdict.at = now;
    const auto at = std::ranges::find(active_faults_, verdict.culprit, &FaultVerdict::culprit);
    if (at != active_faults_.end()) {
      ActiveFaultState& course =
          fault_states_[static_cast<std::size_t>(at - active_faults_.begin())];
      course.held_at = now;
      if (!at->alternatives.empty() && verdict.alternatives.empty()) course.is_settled = true;
      verdict.since = at->since;
      verdict.at = at->at;
      if (verdict.symptom == course.told) course.told_at = now;
      if (now - course.told_at >= options_.changes) {
        course.told = verdict.symptom;
        course.told_at = now;
        changes.changed.push_back(verdict);
      }
      *at = std::move(verdict);
    } else if (verdict.confidence >= options_.confidence && !is_unconfirmed(verdict, now)) {
      if (verdict.symptom == Symptom::kNoCarrier) verdict.since = now;
      changes.begun.push_back(verdict);
      fault_states_.push_back({.held_at = now, .told = verdict.symptom, .told_at = now});
      active_faults_.push_back(std::move(verdict));
    }
  }
  for (std::size_t i = 0; i < active_faults_.size();) {
    const FaultVerdict& old = active_faults_[i];
    const bool replaced = fault_states_[i].held_at < now &&
                          std::ranges::any_of(changes.begun, [&](const FaultVerdict& verdict) {
                            // A server that was silent and reports again was only busy.
                            return meets(verdict.culprit, old.culprit) ||
                                   (old.symptom == Symptom::kSilent &&
                                    verdict.culprit == host_noise_culprit(old.culprit.node));
                          });
    if (!replaced && now - fault_states_[i].held_at <= options_.clean_time) {
      ++i;
      continue;
    }
    changes.over.push_back(std::move(active_faults_[i]));
    active_faults_.erase(active_faults_.begin() + static_cast<std::ptrdiff_t>(i));
    fault_states_.erase(fault_states_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::erase_if(unconfirmed_,
                [&](const UnconfirmedFault& one) { return now - one.held_at > options_.changes; });
  return changes;
}

FaultChanges Locator::locate(Seconds now) {
  const auto last =
      static_cast<Window>(std::floor((now - options_.grace).value / options_.window.value)) - 1;
  if (newest_ < 0 || last < first_) return {};
  advance(last);
  return compare(find(now, last), now);
}

}  // namespace regatta::diag
