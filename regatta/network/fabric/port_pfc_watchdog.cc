#include "regatta/network/fabric/port_pfc_watchdog.h"

#include <algorithm>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

namespace {

// The key of a queue as one end of the link reports it: the sending end where `is_held`.
PortQueue key_of(const PortQueue& queue, bool is_held) {
  return {.link = 2 * queue.link + (is_held ? 0 : 1), .queue = queue.queue};
}

// Pauses of a whole link hold every priority.
bool may_wait_for(int priority, int other) {
  return priority == other || priority == kAllPriorities || other == kAllPriorities;
}

// A link that somebody may have meant by a name that `node` has no link of.
std::string example_link(const topo::Graph& graph, NodeId node) {
  const auto& links = graph.links_of[node.index()];
  return links.empty() ? "leaf0-spine0" : graph.links[links.back().index()].name;
}

}  // namespace

Result<std::vector<PortStormAlarm>> PortPfcWatchdog::add(const PfcPortCounters& port) {
  REGATTA_TRY(known, known_port(port));
  const auto [last, is_first] = known->last.try_emplace(port.priority, port.at);
  if (port.at < last->second)
    return Error{Code::kInvalidInput,
                 fmt::format("the time of {} {} goes back from {} s to {} s; give the lines of a "
                             "port in the order of their times",
                             printable(port.device, 60), printable(port.port, 60),
                             last->second.value, port.at.value)};
  last->second = port.at;
  std::vector<PortStormAlarm> alarms;
  for (const bool is_held : {true, false}) {
    const PfcCounters& counts = is_held ? port.held : port.holds;
    if (!counts.paused_us && !(counts.pauses && counts.packets)) continue;  // too little is known
    const PortQueue queue{.link = is_held ? known->number : known->number ^ 1U,
                          .queue = port.priority};
    const PortQueue key = key_of(queue, is_held);
    const auto alarm = watch_.add(key, sample_of(key, counts, port));
    if (!alarm) continue;
    PortStormAlarm one{.device = port.device,
                       .port = port.port,
                       .priority = port.priority,
                       .is_held = is_held,
                       .alarm = *alarm,
                       .tree = {}};
    if (alarm->is_storm)
      storms_.insert(key);
    else
      storms_.erase(key);
    if (alarm->is_storm && graph_ != nullptr) one.tree = tree_of(queue);
    alarms.push_back(std::move(one));
  }
  return alarms;
}

bool PortPfcWatchdog::lose(const std::string& device, const std::string& port) {
  if (!lost_.insert({device, port}).second) return false;
  const auto known = ports_.find({device, port});
  if (known == ports_.end()) return true;
  const std::uint32_t number = known->second.number;
  for (auto& [key, state] : states_)
    if (key.link == key_of({.link = number}, true).link ||
        key.link == key_of({.link = number ^ 1U}, false).link)
      state.at.reset();
  return true;
}

bool PortPfcWatchdog::regain(const std::string& device, const std::string& port) {
  return lost_.erase({device, port}) != 0;
}

// Its number is as number_of() has it where the fabric is known.
Result<PortPfcWatchdog::Port*> PortPfcWatchdog::known_port(const PfcPortCounters& port) {
  const auto number = 2 * static_cast<std::uint32_t>(ports_.size());
  const auto [at, is_new] = ports_.try_emplace({port.device, port.port}, Port{number, {}});
  if (!is_new || graph_ == nullptr) return &at->second;
  const auto link = topo::find_link(*graph_, port.port);
  if (link) {
    const topo::Link& of = graph_->links[link->index()];
    for (const NodeId end : {of.a, of.b}) {
      if (graph_->nodes[end.index()].name != port.device) continue;
      at->second.number = number_of({*link, of.a == end});
      return &at->second;
    }
  }
  ports_.erase(at);
  const auto node = std::ranges::find(graph_->nodes, port.device, &topo::Node::name);
  if (node == graph_->nodes.end())
    return Error{Code::kInvalidInput,
                 fmt::format("the cluster has no switch or server '{}'; name the device as in the "
                             "cluster, like {}",
                             printable(port.device, 60), graph_->nodes.back().name)};
  return Error{
      Code::kInvalidInput,
      fmt::format("the cluster has no link '{}' at '{}'; name ports by its links, like {}",
                  printable(port.port, 60), printable(port.device, 60),
                  example_link(*graph_, NodeId{static_cast<int>(node - graph_->nodes.begin())}))};
}

PfcSample PortPfcWatchdog::sample_of(const PortQueue& queue, const PfcCounters& counts,
                                     const PfcPortCounters& port) {
  const std::uint64_t pauses = counts.pauses.value_or(0);
  const std::uint64_t packets = counts.packets.value_or(0);
  State& state =
      states_.try_emplace(queue, State{pauses, packets, port.at, Seconds{}}).first->second;
  if (state.at && pauses > state.pauses && packets == state.packets && port.at > *state.at)
    state.guessed += port.at - *state.at;
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

// Considers the storms of its priority: queues of different priorities do not wait for each other.
PauseTree PortPfcWatchdog::tree_of(const PortQueue& queue) const {
  std::set<std::uint32_t> held;
  for (const PortQueue& key : storms_)
    if (may_wait_for(queue.queue, key.queue)) held.insert(key.link / 2);
  for (PauseTree& tree : pause_trees(*graph_, {held.begin(), held.end()}))
    if (std::ranges::count(tree.links, queue.link) != 0) return std::move(tree);
  return {};
}

}  // namespace regatta::fabric
