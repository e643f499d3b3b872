#include "regatta/network/diag/internal/link_losses.h"

#include <algorithm>
#include <array>
#include <utility>

namespace regatta::diag {
namespace {

constexpr std::size_t kNow = kLossWindows;
constexpr std::size_t kLately = 17;

struct PacketCount {
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
};

// Packets in each of the last windows, the newest first.
struct RecentCounts {
  std::array<PacketCount, kLately> windows;

  void add(const RecentCounts& other) {
    for (std::size_t i = 0; i < kLately; ++i) {
      windows[i].sent += other.windows[i].sent;
      windows[i].lost += other.windows[i].lost;
    }
  }
  void remove(const RecentCounts& other) {
    for (std::size_t i = 0; i < kLately; ++i) {
      windows[i].sent -= other.windows[i].sent;
      windows[i].lost -= other.windows[i].lost;
    }
  }
  PacketCount first(std::size_t count) const {
    PacketCount sum;
    for (std::size_t i = 0; i < count; ++i) {
      sum.sent += windows[i].sent;
      sum.lost += windows[i].lost;
    }
    return sum;
  }
};

double share_of(const PacketCount& count) {
  return count.sent == 0 ? 0 : static_cast<double>(count.lost) / count.sent;
}

// The share that a link that lost as much may still lose.
double share_left(const RecentCounts& counts) {
  const PacketCount all = counts.first(kLately);
  std::size_t clean_windows = 0;
  while (clean_windows < kLately && counts.windows[clean_windows].lost == 0)
    ++clean_windows;
  const std::uint32_t clean = counts.first(clean_windows).sent;
  if (all.lost == 0 || all.sent == clean) return 0;
  const double before = static_cast<double>(all.lost) / (all.sent - clean);
  if (clean * before >= kLossesMissing) return 0;
  const double now = share_of(counts.first(kNow));
  return now > 0 ? std::min(now, share_of(all)) : share_of(all);
}

class LinkLossCount {
 public:
  explicit LinkLossCount(const LinkLossInput& input)
      : input_(input),
        is_broken_(2 * input.graph.links.size()),
        is_heavy_(2 * input.graph.links.size()),
        crossing_(2 * input.graph.links.size()),
        lost_(2 * input.graph.links.size()) {
    for (const std::uint32_t link : input.broken)
      is_broken_[link] = true;
  }

  void count_probe(std::uint32_t probe, Window last, Seconds now) {
    std::array<RecentCounts, 2> counts;  // there and back
    std::vector<NodeId> noisy;
    for (std::size_t i = 0; i < kLately; ++i) {
      const Window window = last - static_cast<Window>(i);
      if (window < 0) break;
      const ProbeWindows::Cell& one = input_.windows.cell(probe, window);
      if (one.sent == ProbeWindows::kUnknown || one.sent == 0) continue;
      std::uint32_t arrived = one.sent;
      if (one.is_lossy()) {
        noisy.clear();
        const bool is_usable = one.arrived != ProbeWindows::kUnknown &&
                               (input_.windows.is_awake(probe, window) ||
                                input_.windows.is_usable(probe, window, now, noisy));
        if (!is_usable) continue;
        arrived = std::clamp(one.arrived, one.answered, one.sent);
      }
      counts[0].windows[i] = {one.sent, one.sent - arrived};
      counts[1].windows[i] = {arrived, arrived - one.answered};
    }
    add_path(2 * probe, counts[0]);
    add_path(2 * probe + 1, counts[1]);
  }

  std::vector<LinkLoss> result() {
    find_heavy();
    std::erase_if(lossy_, [&](const auto& one) { return blame_heavy(one.first, one.second); });
    for (const auto& [path, counts] : lossy_)
      blame(path, counts);
    std::vector<LinkLoss> losses;
    for (std::uint32_t link = 0; link < crossing_.size(); ++link) {
      if (input_.graph.links[link / 2].a_nic >= 0) continue;
      const RecentCounts counts = counts_of(link);
      const bool is_blind = counts.first(kNow).sent == 0;
      if (is_blind || counts.first(kLately).lost > 0)
        losses.push_back(
            {link, share_of(counts.first(kNow)), is_blind ? 0 : share_left(counts), is_blind});
    }
    return losses;
  }

 private:
  // The packets that have crossed the link, with the losses that count for it.
  RecentCounts counts_of(std::uint32_t link) const {
    RecentCounts counts = crossing_[link];
    for (std::size_t i = 0; i < kLately; ++i)
      counts.windows[i].lost = lost_[link][i];
    return counts;
  }

  void add_path(std::uint32_t path, const RecentCounts& counts) {
    const PacketCount sum = counts.first(kLately);
    if (sum.sent == 0 || (!input_.left_out.empty() && input_.left_out[path])) return;
    for (const std::uint32_t link : input_.paths.links(path))
      crossing_[link].add(counts);
    if (sum.lost > 0) lossy_.emplace_back(path, counts);
  }

  // The share that the link lost about that window, of a fault that has ended before only that.
  double share_about(std::uint32_t link, std::size_t window) const {
    PacketCount near;
    for (std::size_t i = window == 0 ? 0 : window - 1; i <= std::min(window + 1, kLately - 1);
         ++i) {
      near.sent += crossing_[link].windows[i].sent;
      near.lost += crossing_[link].windows[i].lost;
    }
    return std::min(share_of(near), share_of(crossing_[link].first(kLately)));
  }

  // Known faults that lose so much that they explain the losses of all paths across them.
  void find_heavy() {
    constexpr double kMuch = 0.3;
    for (const std::uint32_t link : input_.broken)
      is_heavy_[link] = share_of(crossing_[link].first(kLately)) >= kMuch;
  }

  // Counts the losses of the path for the heavy links on it, and says nothing of its other links:
  // else these would seem to lose as much. False where it crosses none.
  bool blame_heavy(std::uint32_t path, const RecentCounts& counts) {
    const auto links = input_.paths.links(path);
    if (std::ranges::none_of(links, [&](std::uint32_t link) { return is_heavy_[link]; }))
      return false;
    for (const std::uint32_t link : links) {
      if (is_heavy_[link]) {
        for (std::size_t window = 0; window < kLately; ++window)
          lost_[link][window] += counts.windows[window].lost;
      } else {
        crossing_[link].remove(counts);
      }
    }
    return true;
  }

  // Counts the losses of the path for the links that lose most of what crosses them.
  void blame(std::uint32_t path, const RecentCounts& counts) {
    constexpr double kAboutAsMuch = 0.7;
    const auto links = input_.paths.links(path);
    std::vector<double> shares(links.size());
    for (std::size_t window = 0; window < kLately; ++window) {
      if (counts.windows[window].lost == 0) continue;
      std::ranges::transform(links, shares.begin(),
                             [&](std::uint32_t link) { return share_about(link, window); });
      const double least = kAboutAsMuch * std::ranges::max(shares);
      bool is_known = false;
      for (std::size_t i = 0; i < links.size(); ++i)
        is_known = is_known || (shares[i] >= least && is_broken_[links[i]]);
      for (std::size_t i = 0; i < links.size(); ++i)
        if (shares[i] >= least && (!is_known || is_broken_[links[i]]))
          lost_[links[i]][window] += counts.windows[window].lost;
    }
  }

  const LinkLossInput& input_;
  std::vector<bool> is_broken_;                                // per directed link
  std::vector<bool> is_heavy_;                                 // the same
  std::vector<RecentCounts> crossing_;                         // the same: all of its paths
  std::vector<std::array<std::uint32_t, kLately>> lost_;       // the same: losses that count for it
  std::vector<std::pair<std::uint32_t, RecentCounts>> lossy_;  // paths
};

}  // namespace

std::vector<LinkLoss> link_losses(const LinkLossInput& input, Window last, Seconds now) {
  LinkLossCount count(input);
  for (std::uint32_t probe = 0; probe < input.windows.probes(); ++probe)
    count.count_probe(probe, last, now);
  return count.result();
}

}  // namespace regatta::diag
