#include "regatta/network/fabric/internal/packet/pfc_storm_monitor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "regatta/network/fabric/internal/packet/pause_dependencies.h"

namespace regatta::fabric::packet {

PfcStormMonitor::PfcStormMonitor(const PacketNetwork& network, const PacketOptions& options)
    : network_(network), watch_(options.storms ? options.storms->rule : PfcWatchdogOptions{}) {
  if (!options.storms || !options.pauses) return;
  period_ = std::max<Picoseconds>(picoseconds(options.storms->period.value), 1);
  next_ = period_;
  const PfcWatchdogOptions& rule = options.storms->rule;
  most_ = 3 * period_ + picoseconds(rule.detection.value);
  settled_ = 3 * period_ + picoseconds(std::max(rule.detection, rule.recovery).value);
  for (std::uint32_t link = 0; link < network.links.size(); ++link)
    if (!network.links[link].is_from_host && !network.links[link].is_intra_server)
      watched_.push_back(link);
}

void PfcStormMonitor::end_skip(const LinkQueues& link_queues, Picoseconds now, Picoseconds time) {
  if (next_ == kNever || time <= skipped_from_) return;
  const Picoseconds last = time / period_ * period_;
  const auto poll = [&](Picoseconds at) {
    const double share =
        static_cast<double>(at - skipped_from_) / static_cast<double>(time - skipped_from_);
    const auto between = [share](std::uint64_t from, std::uint64_t to) {
      return from + static_cast<std::uint64_t>(share * static_cast<double>(to - from));
    };
    std::size_t number = 0;
    take_samples(link_queues, at, [&](std::uint32_t link) {
      const PfcSample& from = before_skip_[number++];
      PfcSample sample = link_queues.pfc_sample(link, now);
      sample.is_up = from.is_up;
      sample.sent = between(from.sent, sample.sent);
      sample.pauses = between(from.pauses, sample.pauses);
      sample.paused = from.paused + (sample.paused - from.paused) * share;
      return sample;
    });
  };
  Picoseconds at = next_;
  next_ = std::max(next_, last + period_);
  if (before_skip_.empty()) return;
  for (const Picoseconds end = std::min(last, at + settled_); at <= end; at += period_)
    poll(at);
  if (at <= last) poll(last);
}

// Links that began a storm belong to the trees that hold them now. A storm is over when those
// nearest to its root are free; others may be paused because the network is busy.
void PfcStormMonitor::follow(const LinkQueues& link_queues, const std::vector<std::uint32_t>& begun,
                             Seconds time) {
  for (std::size_t i = 0; i < storms_.size(); ++i) {
    if (storms_[i].over || std::ranges::any_of(nearest_[i], [&](std::uint32_t link) {
          return watch_.is_in_storm({.link = link});
        }))
      continue;
    storms_[i].over = time;
    --open_;
  }
  if (begun.empty()) return;
  const PauseDependencies waits = pause_dependencies(link_queues);
  const auto trees = pause_trees(
      link_queues.pauses().paused(), [&](std::uint32_t link) { return waits[link]; },
      [&](std::uint32_t link) { return network_.links[link].end; });
  for (const PauseTree& tree : trees)
    if (std::ranges::any_of(
            begun, [&](std::uint32_t link) { return std::ranges::count(tree.links, link) != 0; }))
      begin(tree, time);
}

std::vector<PfcStorm> PfcStormMonitor::storms(const LinkQueues& link_queues) const {
  std::vector<PfcStorm> all = storms_;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].is_held = !all[i].over && std::ranges::any_of(nearest_[i], [&](std::uint32_t link) {
      return link_queues.pauses().is_paused(link);
    });
  return all;
}

// The nearest link for which the rule holds, and all other such links that end at the same node.
std::vector<std::uint32_t> PfcStormMonitor::nearest_of(const PauseTree& tree) const {
  std::vector<std::uint32_t> nearest;
  for (const std::uint32_t link : tree.links)
    if (watch_.is_in_storm({.link = link}) &&
        (nearest.empty() || network_.links[link].end == network_.links[nearest.front()].end))
      nearest.push_back(link);
  return nearest;
}

void PfcStormMonitor::begin(PauseTree tree, Seconds time) {
  for (std::size_t i = 0; i < storms_.size(); ++i) {
    PfcStorm& storm = storms_[i];
    if (storm.over || storm.tree.root != tree.root) continue;
    std::set<std::uint32_t> known(storm.tree.links.begin(), storm.tree.links.end());
    for (const std::uint32_t link : tree.links)
      if (known.insert(link).second) storm.tree.links.push_back(link);
    nearest_[i] = nearest_of(storm.tree);
    return;
  }
  nearest_.push_back(nearest_of(tree));
  storms_.push_back({.since = since_, .at = time, .over = {}, .tree = std::move(tree)});
  ++open_;
}

}  // namespace regatta::fabric::packet
