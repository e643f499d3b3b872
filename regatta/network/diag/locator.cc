#include "regatta/network/diag/locator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "regatta/network/diag/internal/link_losses.h"
#include "regatta/network/diag/internal/path_crossing.h"
#include "regatta/network/diag/internal/silent_servers.h"

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

std::vector<std::uint32_t> links_of(const topo::Graph& graph,
                                    std::span<const FaultVerdict> verdicts) {
  std::vector<std::uint32_t> links;
  for (const FaultVerdict& verdict : verdicts)
    std::ranges::copy(links_to_avoid(graph, verdict.culprit), std::back_inserter(links));
  return links;
}

}  // namespace

Locator::Locator(const topo::Graph& graph, const fabric::Paths& paths,
                 const LocatorOptions& options)
    : graph_(graph),
      paths_(paths),
      options_(options),
      windows_(graph, paths, options),
      carriers_(graph),
      misconfigurations_(graph),
      counters_(graph),
      faults_(graph, options),
      ended_faults_(graph),
      diverted_(graph) {
  for (const Symptom symptom : {Symptom::kLargePackets, Symptom::kUserPackets})
    variants_.emplace_back(graph, paths, symptom, options_);
}

void Locator::add(const ProbeReport& report) {
  windows_.add(report);
}

void Locator::add(const VariantReport& report) {
  at(variants_, static_cast<int>(report.variant)).add(report);
}

void Locator::add(const CarrierEvent& event) {
  carriers_.add(event, settled());
}

Window Locator::settled() const {
  return windows_.newest() + static_cast<Window>(std::ceil(options_.routes_back / options_.window));
}

void Locator::add(const PassiveCount& count) {
  if (windows_.is_empty() || !windows_.is_in_memory(count.window) ||
      windows_.is_too_new(count.window))
    return;
  if (count.sent > 0 && count.sent < ProbeWindows::kUnknown && count.lost <= count.sent &&
      !count.links.empty() && count.background > 0)
    passive_counts_.push_back(count);
}

void Locator::count_probe(std::uint32_t probe, Seconds now, PathTally& tally) const {
  const std::uint32_t there = 2 * probe;
  const std::uint32_t back = there + 1;
  if (is_explained(paths_.links(there)) || is_explained(paths_.links(back))) return;
  const Window unsure =
      std::max(unsure_until(paths_.links(there)), unsure_until(paths_.links(back)));
  std::vector<NodeId> noisy;
  for (Window window = std::max(tally.first(), unsure + 1); window <= tally.last(); ++window) {
    const ProbeWindows::Cell& one = windows_.cell(probe, window);
    if (one.sent == ProbeWindows::kUnknown || one.sent == 0) continue;
    if (one.answered == one.sent) {
      if (counts(there)) tally.set(there, window, one.sent, 0);
      if (counts(back)) tally.set(back, window, one.sent, 0);
      continue;
    }
    noisy.clear();
    if (windows_.is_usable(probe, window, now, noisy) && one.arrived != ProbeWindows::kUnknown) {
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

void Locator::count_passive(PathTally& tally) const {
  // A router that answers itself says nothing about what goes through it; one that does not may be
  // what swallows it.
  struct Router {
    std::uint32_t sent = 0;
    std::uint32_t lost = 0;
  };
  std::map<NodeId, Router> routers;
  const auto is_near = [&](const PassiveCount& one) {
    return tally.covers(one.window) && !is_explained(one.links);
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

PathTally Locator::tally(Seconds now, Window last) const {
  PathTally tally(windows_.first_counted(last), last);
  for (std::uint32_t path = 0; path < paths_.size(); ++path)
    tally.add_path(paths_.links(path));
  for (std::uint32_t probe = 0; probe < windows_.probes(); ++probe)
    count_probe(probe, now, tally);
  count_passive(tally);
  return tally;
}

std::vector<FaultVerdict> Locator::evaluate(Seconds now, Window last) {
  std::vector<FaultVerdict> found = carriers_.verdicts();
  std::ranges::move(misconfigurations_.verdicts(), std::back_inserter(found));
  std::ranges::move(silent_servers(graph_, windows_, last, options_), std::back_inserter(found));
  lossy_paths_.clear();
  if (!windows_.has_losses()) return found;
  PathTally counted = tally(now, last);
  std::vector<FaultVerdict> active = faults_.verdicts();
  std::erase_if(active, [](const FaultVerdict& one) { return is_of_variant(one.symptom); });
  ended_faults_.trim(active, counted);
  for (std::uint32_t path = 0; path < paths_.size(); ++path)
    if (counted.has_lost(path)) lossy_paths_.push_back(path);
  std::vector<KnownFault> known = faults_.known();
  std::erase_if(known, [](const KnownFault& one) { return one.is_of_variant; });
  const std::vector<std::uint32_t> with_errors = counters_.links_with_errors(now);
  for (Explanation& one : explain(graph_, counted.counts(), known, options_.explain, with_errors)) {
    const Window onset = counted.first() + static_cast<Window>(one.onset);
    one.verdict.since = static_cast<double>(onset) * options_.window;
    found.push_back(std::move(one.verdict));
  }
  for (const auto& [server, evidence] : counted.noise)
    found.push_back(
        {.culprit = host_noise_culprit(server),
         .symptom = Symptom::kLate,
         .loss_share = static_cast<double>(evidence.lost) / static_cast<double>(evidence.sent),
         .evidence = evidence,
         .confidence = 1,
         .since = static_cast<double>(counted.first()) * options_.window,
         .at = {},
         .alternatives = {}});
  return found;
}

// Adds faults of packets that probes do not show: whatever shares a link with a fault that probes
// show says no more, and large packets are lost whose ever they are.
void Locator::add_variants(Window last, std::vector<FaultVerdict>& found) {
  for (VariantLocator& variant : variants_) {
    const bool is_user = variant.symptom() == Symptom::kUserPackets;
    const auto is_planned = [&](std::uint32_t path) {
      const auto links = paths_.links(path);
      return counts(path) && !is_explained(links) &&
             unsure_until(links) < last - 2 * kWindowsPerCycle &&
             !(is_user && options_.is_healed && diverted_.crosses(links));
    };
    std::vector<std::uint32_t> known = links_of(graph_, found);
    std::ranges::sort(known);
    for (const FaultVerdict& one : variant.evaluate(windows_, faults_.verdicts(), is_planned, last))
      if (!crosses_any(links_to_avoid(graph_, one.culprit), known)) found.push_back(one);
  }
}

// Whether both its servers have ever reported, and its packets take the planned paths.
bool Locator::can_count(std::uint32_t probe) const {
  const auto takes_its_path = [&](std::uint32_t path) {
    return counts(path) && !is_explained(paths_.links(path));
  };
  return windows_.newest_of(windows_.sender(probe)) >= 0 &&
         windows_.newest_of(windows_.receiver(probe)) >= 0 && takes_its_path(2 * probe) &&
         takes_its_path(2 * probe + 1);
}

// Whether the servers of most paths across the culprit have reported during the clean time.
bool Locator::is_observed(const FaultVerdict& verdict, Window last) const {
  if (verdict.symptom == Symptom::kNoCarrier || verdict.symptom == Symptom::kSilent ||
      !is_fault(verdict))
    return true;
  for (const VariantLocator& variant : variants_)
    if (variant.symptom() == verdict.symptom) return variant.is_observed(verdict);
  const auto links = sorted_links(graph_, verdict.culprit);
  const auto crosses = [&](std::uint32_t path) { return crosses_any(paths_.links(path), links); };
  const auto clean = static_cast<Window>(std::ceil(options_.clean_time / options_.window));
  const Window first = std::max(windows_.first_counted(last), last - clean);
  int crossing = 0;
  int observed = 0;
  for (std::uint32_t probe = 0; probe < windows_.probes(); ++probe) {
    if (!crosses(2 * probe) && !crosses(2 * probe + 1)) continue;
    if (!can_count(probe)) continue;
    ++crossing;
    for (Window window = first; window <= last; ++window) {
      const ProbeWindows::Cell& one = windows_.cell(probe, window);
      const bool is_known = one.sent != ProbeWindows::kUnknown && one.sent > 0 &&
                            (one.answered > 0 || one.arrived != ProbeWindows::kUnknown);
      if (!is_known) continue;
      ++observed;
      break;
    }
  }
  return 2 * observed >= crossing;
}

Window Locator::last_window(Seconds now) const {
  return static_cast<Window>(std::floor((now - options_.grace).value / options_.window.value)) - 1;
}

std::vector<LinkLoss> Locator::link_losses(Seconds now) const {
  if (windows_.is_empty() || last_window(now) < windows_.first()) return {};
  if (!windows_.has_losses() && faults_.verdicts().empty()) return {};
  const std::vector<std::uint32_t> broken = links_of(graph_, faults_.verdicts());
  return diag::link_losses({graph_, paths_, windows_, is_left_out_, broken}, last_window(now), now);
}

FaultChanges Locator::locate(Seconds now) {
  const Window last = last_window(now);
  if (windows_.is_empty() || last < windows_.first()) return {};
  windows_.advance(last);
  std::erase_if(passive_counts_,
                [&](const PassiveCount& one) { return !windows_.is_in_memory(one.window); });
  std::vector<FaultVerdict> found = evaluate(now, last);
  add_variants(last, found);
  FaultChanges changes = faults_.update(std::move(found), now, [&](const FaultVerdict& verdict) {
    return is_observed(verdict, last);
  });
  diverted_.update(changes, now);
  diverted_.expire(now);
  return changes;
}

FaultChanges Locator::reconsider(FaultChanges changes, Seconds now) {
  faults_.take_back(changes.begun);
  FaultChanges later = locate(now);
  std::ranges::move(later.over, std::back_inserter(changes.over));
  std::ranges::move(later.changed, std::back_inserter(changes.changed));
  changes.begun = std::move(later.begun);
  return changes;
}

}  // namespace regatta::diag
