// fabric/port_pfc_watchdog.h: the watch on pauses (pfc_watchdog.h), fed by the counters of ports:
// which of them their peers hold, or hold their peers, for good, and, on a known fabric, where that
// began.
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

// Where pauses come from. A link that is paused pauses the links that feed it,
// once the switch between is full of what came by them: so pauses spread as a tree, from a NIC that
// lets nothing in, a switch that more comes to than leaves it, or a cycle of links that wait for
// each other.

struct PauseTree {
  std::uint32_t root = 0;  // the node that it begins at, by NodeId; with a cycle: any of it
  DependencyCycle cycle;   // of links that wait for each other; empty: there is none
  std::vector<std::uint32_t> links;  // that are held, by number_of(), the nearest first

  friend bool operator==(const PauseTree&, const PauseTree&) = default;
};

// The trees of all links that are held; each link is in one, that of the root nearest to it.
// waits_for(link): which of them what came by it waits for at its end, if any.
std::vector<PauseTree> pause_trees(
    const std::vector<std::uint32_t>& held,
    const std::function<std::vector<std::uint32_t>(std::uint32_t link)>& waits_for,
    const std::function<std::uint32_t(std::uint32_t link)>& end_of);

// The same from counters, which do not say what waits: what came by a link may wait for all links
// that are held where it ends, but for the one back.
std::vector<PauseTree> pause_trees(const topo::Graph& graph,
                                   const std::vector<std::uint32_t>& held);

struct PortStormAlarm {
  std::string device;
  std::string port;
  int priority = 0;
  bool is_held = false;  // by its peer; else it holds its peer
  PfcStormAlarm alarm;
  std::optional<PauseTree> tree;  // of a storm that begins on a known fabric: the one it is in
};

// Where a counter is missing: unknown queues are taken for waiting; a pause whose length is not
// counted, for lasting from one sample to the next where frames came and nothing went.
class PortPfcWatchdog {
 public:
  // `graph`, which outlives it, or none.
  explicit PortPfcWatchdog(const PfcWatchdogOptions& options, const topo::Graph* graph = nullptr)
      : watch_(options), graph_(graph) {}

  // The next sample of a port. Fails with kInvalidInput where the graph has no link of the port's
  // name at a node of the device's, and where it is older than the one before of its priority.
  Result<std::vector<PortStormAlarm>> add(const PfcPortCounters& port);

  // The port cannot be read: what it does until it can again is not guessed. Whether that is new.
  bool lose(const std::string& device, const std::string& port);
  // It can be read. Whether that is new.
  bool regain(const std::string& device, const std::string& port);

  std::size_t ports() const { return ports_.size(); }
  std::size_t queues() const { return states_.size(); }

 private:
  using PortName = std::pair<std::string, std::string>;  // its device's, and its own

  struct Port {
    std::uint32_t number = 0;     // of what it sends by
    std::map<int, Seconds> last;  // sample, by priority
  };

  struct State {
    std::uint64_t pauses = 0;
    std::uint64_t packets = 0;
    std::optional<Seconds> at;  // of the last sample; none: it was lost since
    Seconds guessed;            // how long it was paused
  };

  Result<Port*> known_port(const PfcPortCounters& port);
  PfcSample sample_of(const PortQueue& queue, const PfcCounters& counts,
                      const PfcPortCounters& port);
  PauseTree tree_of(const PortQueue& queue) const;

  PfcWatchdog watch_;
  const topo::Graph* graph_;
  std::map<PortName, Port> ports_;
  std::set<PortName> lost_;
  // By key_of(): both ends of a link of a known fabric may tell of it, each for itself.
  std::map<PortQueue, State> states_;
  std::set<PortQueue> storms_;
};

}  // namespace regatta::fabric
