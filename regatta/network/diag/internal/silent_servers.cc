#include "regatta/network/diag/internal/silent_servers.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace regatta::diag {
namespace {

// Counts of the probes from other servers to the silent ones, since these fell silent.
void count_unanswered(const ProbeWindows& windows, Window last,
                      std::map<NodeId, Evidence>& silent) {
  for (std::uint32_t probe = 0; probe < windows.probes(); ++probe) {
    const NodeId receiver = windows.receiver(probe);
    const auto found = silent.find(receiver);
    if (found == silent.end() || silent.contains(windows.sender(probe))) continue;
    Evidence& evidence = found->second;
    ++evidence.paths;
    bool hit = false;
    // It may still have answered in the first windows that it did not report on.
    for (Window window = std::max(windows.newest_of(receiver) + 4, windows.first_counted(last));
         window <= last; ++window) {
      const ProbeWindows::Cell& one = windows.cell(probe, window);
      if (one.sent == ProbeWindows::kUnknown) continue;
      evidence.sent += one.sent;
      evidence.lost += one.sent - one.answered;
      hit = hit || one.answered < one.sent;
    }
    evidence.paths_hit += hit ? 1 : 0;
  }
}

}  // namespace

std::vector<FaultVerdict> silent_servers(const topo::Graph& graph, const ProbeWindows& windows,
                                         Window last, const LocatorOptions& options) {
  std::map<NodeId, Evidence> silent;
  std::size_t known = 0;
  std::size_t fresh = 0;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind != topo::NodeKind::kServer) continue;
    ++known;
    const NodeId server{static_cast<int>(node)};
    const Window newest = std::max(windows.newest_of(server), windows.first());
    const Seconds silence = static_cast<double>(last - newest) * options.window;
    if (silence >= options.longest_pause) silent[server];
    if (silence < options.longest_pause / 4) ++fresh;
  }
  if (silent.empty() || 2 * fresh < known) return {};
  count_unanswered(windows, last, silent);
  std::vector<FaultVerdict> found;
  for (const auto& [server, evidence] : silent) {
    if (evidence.sent == 0 || evidence.lost < evidence.sent) continue;
    const Window newest = std::max(windows.newest_of(server), windows.first());
    found.push_back({.culprit = server_culprit(server),
                     .symptom = Symptom::kSilent,
                     .loss_share = 1,
                     .evidence = evidence,
                     // As if each of them were left unanswered by every second server that lives.
                     .confidence = 1 - std::exp2(-static_cast<double>(evidence.lost)),
                     .since = static_cast<double>(newest + 1) * options.window,
                     .at = {},
                     .alternatives = {}});
  }
  return found;
}

}  // namespace regatta::diag
