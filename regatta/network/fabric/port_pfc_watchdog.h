// fabric/port_pfc_watchdog.h: the PFC watchdog (pfc_watchdog.h) on the counters of ports: which
// ports are paused by their peers, or pause their peers, for good, and, on a known fabric, where
// that began.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/internal/pfc_port_counters.h"
#include "regatta/network/fabric/internal/pfc_watchdog.h"

namespace regatta::fabric {

// The origin of pauses. A paused link pauses the links that feed it once the switch between is full
// of their packets. So pauses spread as a tree, from a NIC that accepts nothing, an overloaded
// switch, or a cycle of links that wait for each other.
struct PauseTree {
  std::uint32_t root = 0;  // the node where it begins, by NodeId; with a cycle: any node of it
  DependencyCycle cycle;   // of links that wait for each other; empty: there is none
  std::vector<std::uint32_t> links;  // paused ones, by number_of(), the nearest first

  friend bool operator==(const PauseTree&, const PauseTree&) = default;
};

// The trees of the paused links `held`; each link is in one, that of the root nearest to it.
// waits_for(link): the links in `held` that packets from `link` wait for at its end.
std::vector<PauseTree> pause_trees(
    const std::vector<std::uint32_t>& held,
    const std::function<std::vector<std::uint32_t>(std::uint32_t link)>& waits_for,
    const std::function<std::uint32_t(std::uint32_t link)>& end_of);

// The same from counters, which do not report waits: packets from a link may wait for all paused
// links that begin at its end, except the link back.
std::vector<PauseTree> pause_trees(const topo::Graph& graph,
                                   const std::vector<std::uint32_t>& held);

struct PortStormAlarm {
  std::string device;
  std::string port;
  int priority = 0;
  bool is_held = false;  // true: its peer pauses it; false: it pauses its peer
  PfcStormAlarm alarm;
  std::optional<PauseTree> tree;  // when a storm begins on a known fabric: the tree of the port
};

// Where a counter is missing: unknown queues count as waiting; a pause of unknown length counts as
// lasting from one sample to the next where pause frames arrived and no packet was sent.
class PortPfcWatchdog {
 public:
  // `graph` outlives it; null: the fabric is unknown.
  explicit PortPfcWatchdog(const PfcWatchdogOptions& options, const topo::Graph* graph = nullptr)
      : watch_(options), graph_(graph) {}

  // Adds the next sample of a port. Fails with kInvalidInput where the graph has no link named as
  // the port at a node named as the device, or the sample is older than the last of its priority.
  Result<std::vector<PortStormAlarm>> add(const PfcPortCounters& port);

  // The port cannot be read; its state is unknown until regain(). Returns whether that is new.
  bool lose(const std::string& device, const std::string& port);
  // The port can be read. Returns whether that is new.
  bool regain(const std::string& device, const std::string& port);

  std::size_t ports() const { return ports_.size(); }
  std::size_t queues() const { return states_.size(); }

 private:
  using PortName = std::pair<std::string, std::string>;  // device and port

  struct Port {
    std::uint32_t number = 0;     // of the link it sends on
    std::map<int, Seconds> last;  // time of the last sample, by priority
  };

  struct State {
    std::uint64_t pauses = 0;
    std::uint64_t packets = 0;
    std::optional<Seconds> at;  // of the last sample; none: the port was lost since
    Seconds guessed;            // estimated pause time
  };

  Result<Port*> known_port(const PfcPortCounters& port);
  PfcSample sample_of(const PortQueue& queue, const PfcCounters& counts,
                      const PfcPortCounters& port);
  PauseTree tree_of(const PortQueue& queue) const;

  PfcWatchdog watch_;
  const topo::Graph* graph_;
  std::map<PortName, Port> ports_;
  std::set<PortName> lost_;
  // By key_of(): both ends of a link of a known fabric may report it separately.
  std::map<PortQueue, State> states_;
  std::set<PortQueue> storms_;
};

}  // namespace regatta::fabric
