#include "regatta/fabric/port_watch.h"

#include <algorithm>

#include <fmt/format.h>

#include "regatta/core/text.h"
#include "regatta/fabric/routes.h"
#include "regatta/topo/graph_names.h"

namespace regatta::fabric {

Result<std::vector<PortAlarm>> PortWatch::add(const PortPauses& port) {
  REGATTA_TRY(number, number_of_port(port));
  std::vector<PortAlarm> alarms;
  for (const bool is_held : {true, false}) {
    const PauseCounts& counts = is_held ? port.held : port.holds;
    if (!counts.paused_us && !(counts.pauses && counts.packets)) continue;  // too little is known
    const PortQueue queue{.link = is_held ? number : number ^ 1U, .queue = port.priority};
    // On a known fabric both ends of a link may tell of it; each for itself.
    const PortQueue key{.link = 2 * queue.link + (is_held ? 0 : 1), .queue = queue.queue};
    const auto alarm = watch_.add(key, sample_of(key, counts, port));
    if (!alarm) continue;
    PortAlarm one{.device = port.device,
                  .port = port.port,
                  .priority = port.priority,
                  .is_held = is_held,
                  .alarm = *alarm,
                  .tree = {}};
    if (alarm->is_storm)
      storms_.insert(queue);
    else
      storms_.erase(queue);
    if (alarm->is_storm && graph_ != nullptr) one.tree = tree_of(queue.link);
    alarms.push_back(std::move(one));
  }
  return alarms;
}

// As number_of() has it where the fabric is known.
Result<std::uint32_t> PortWatch::number_of_port(const PortPauses& port) {
  const auto [at, is_new] = numbers_.try_emplace({port.device, port.port},
                                                 2 * static_cast<std::uint32_t>(numbers_.size()));
  if (!is_new || graph_ == nullptr) return at->second;
  const auto link = topo::find_link(*graph_, port.port);
  if (link) {
    const topo::Link& of = graph_->links[link->index()];
    for (const NodeId end : {of.a, of.b}) {
      if (graph_->nodes[end.index()].name != port.device) continue;
      at->second = number_of({*link, of.a == end});
      return at->second;
    }
  }
  numbers_.erase(at);
  return Error{Code::kInvalidInput,
               fmt::format("the cluster has no link '{}' at '{}'; name ports by its links, like {}",
                           printable(port.port, 60), printable(port.device, 60),
                           graph_->links.empty() ? "leaf0-spine0" : graph_->links.back().name)};
}

PauseSample PortWatch::sample_of(const PortQueue& queue, const PauseCounts& counts,
                                 const PortPauses& port) {
  const std::uint64_t pauses = counts.pauses.value_or(0);
  const std::uint64_t packets = counts.packets.value_or(0);
  const auto [at, is_new] = states_.try_emplace(queue, State{pauses, packets, port.at, Seconds{}});
  State& state = at->second;
  if (!is_new && pauses > state.pauses && packets == state.packets && port.at > state.at)
    state.guessed += port.at - state.at;
  state.pauses = pauses;
  state.packets = packets;
  state.at = port.at;
  const bool is_held = queue.link % 2 == 0;
  return {.at = port.at,
          .is_up = port.is_up,
          .queued = is_held && port.queued ? *port.queued : 1,
          .sent = packets,
          .paused = counts.paused_us ? Seconds{1e-6 * static_cast<double>(*counts.paused_us)}
                                     : state.guessed,
          .pauses = pauses};
}

PauseTree PortWatch::tree_of(std::uint32_t link) const {
  std::set<std::uint32_t> held;
  for (const PortQueue& queue : storms_)
    held.insert(queue.link);
  for (PauseTree& tree : pause_trees(*graph_, {held.begin(), held.end()}))
    if (std::ranges::count(tree.links, link) != 0) return std::move(tree);
  return {};
}

}  // namespace regatta::fabric
