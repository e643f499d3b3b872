// lab/internal/network.h: builds the namespaces, cables and routes of a blueprint and changes
// them. Lives in the holder process, which keeps the namespaces by descriptor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/lab/internal/blueprint.h"
#include "regatta/network/lab/internal/neighbor_frames.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {

// Needs a process of one thread with the right to make network namespaces.
class Network {
 public:
  static Result<Network> build(const Blueprint& blueprint);

  // Namespace of node i of the blueprint.
  const os::UniqueFd& space(std::size_t node) const { return nodes_[node].space; }

  Result<std::vector<LinkState>> states();

  // Link faults of lab.h; `link` is an index into the cables. Faults of several kinds add up.
  Status take_down(std::size_t link);
  Status slow(std::size_t link, BytesPerSecond rate);
  Status drop(std::size_t link, double share);
  // Exchanges the ends b of two cables. kConflict when one of them has a fault.
  Status swap(std::size_t link, std::size_t other);
  Status clear(std::size_t link);  // success when it has none
  // By port (2 k: end a of cable k, 2 k + 1: its end b): the port that it hears at the other end of
  // its cable now, as both name themselves by their addresses; -1 where it hears none.
  Result<std::vector<int>> heard_ports();
  // Off: take_down() and clear() leave the routes to another program. On: the next of them corrects
  // all routes.
  void set_converging(bool on);
  std::optional<std::size_t> find(const std::string& link) const;
  std::size_t link_count() const { return blueprint_.cables.size(); }

 private:
  struct Node {
    os::UniqueFd space;
    os::Netlink netlink;
    std::map<std::string, int> interfaces;  // their indices in the kernel
    std::optional<NeighborFrames> frames;   // once it was asked for
  };
  struct LinkFaults {
    bool down = false;
    std::optional<BytesPerSecond> rate;
    double drop_share = 0;
    std::optional<std::size_t> swapped_with;

    bool has_any() const { return down || rate || drop_share > 0 || swapped_with; }
  };

  explicit Network(Blueprint blueprint) : blueprint_(std::move(blueprint)) {}
  Status make_nodes();
  Status make_cable(const Cable& cable, const os::VethIndices& indices = {});
  Status exchange_ends(std::size_t link, std::size_t other);
  Status restore_routes();
  std::map<int, std::uint32_t> ports_of(std::size_t node) const;
  Status learn_interfaces();
  Status prepare_port(const Port& port, const Cable& cable);
  // Installs the routes over the cables with carrier. `forgetful`: a node whose kernel may have
  // forgotten some, as it does when an interface goes off.
  Status converge(std::optional<NodeId> forgetful);
  Status install(const Route& route, const std::vector<Hop>& hops);
  Status shape(const Cable& cable, BytesPerSecond rate);
  Status set_drops(const Cable& cable, double share);
  Node& node_of(const Port& port) { return nodes_[port.node.index()]; }

  Blueprint blueprint_;
  std::vector<Node> nodes_;
  std::vector<LinkFaults> faults_;
  std::vector<std::vector<Hop>> installed_;  // per route of the blueprint
  bool converges_ = true;
  bool knows_installed_ = true;
};

}  // namespace regatta::lab
