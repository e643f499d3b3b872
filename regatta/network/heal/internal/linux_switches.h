// heal/internal/linux_switches.h: switches that are network namespaces of this machine: their
// routes and carriers by rtnetlink, without a process in them.
#pragma once

#include <memory>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/linux_switch.h"
#include "regatta/network/heal/internal/switches.h"

namespace regatta::heal {

struct SwitchSpace {
  NodeId node;
  os::UniqueFd space;
};

// Expects the addresses of topo/addresses.h at both ends of every link and a route to the address
// of every NIC on every switch that has a path there, as the lab installs them. Sends changes to
// all switches before it waits for an answer, one block of messages each. A next hop whose
// interface is off cannot be installed and is left out; the healer learns when it comes on, and
// installs the route again. Not thread safe.
class LinuxSwitches final : public Switches {
 public:
  // Visits each namespace for a moment. `graph` and `paths` must outlive this.
  static Result<std::unique_ptr<LinuxSwitches>> open(const topo::Graph& graph,
                                                     const FabricPaths& paths,
                                                     std::vector<SwitchSpace> spaces);

  // Gives packets of type of service topo::kProbeTos a table of their own with the routes as they
  // are meant to be, whatever is withdrawn from the others: so that probes keep to the paths that
  // they were made for, and see when these are well again. Replaces what an earlier healer left.
  Status keep_probe_paths();
  // Removes that table and its rules: probes go as all other packets again. Tries all switches.
  Status remove_probe_paths();

  Result<std::vector<Installed>> installed() override;
  std::vector<Status> apply(std::span<const RouteChange> changes) override;
  Result<std::vector<CarrierChange>> carriers() override;
  bool consume_foreign_change() override;
  bool reads_installed() const override { return true; }
  int fd() const override;

 private:
  LinuxSwitches(const topo::Graph& graph, const FabricPaths& paths);
  Status add(SwitchSpace space);
  Status restore_probe_paths(const CarrierChange& change);
  Status read_carriers(std::vector<CarrierChange>& changes);
  void restore_all();

  const topo::Graph& graph_;
  const FabricPaths& paths_;
  std::vector<std::unique_ptr<LinuxSwitch>> switches_;
  std::vector<LinuxSwitch*> of_node_;
  LeafAddresses addresses_of_;
  std::vector<CarrierChange> first_;       // for the next carriers()
  std::vector<CarrierChange> unrestored_;  // links whose probes' paths are to be restored
  Status restored_;                        // result of that, for the next carriers()
  bool keeps_probe_paths_ = false;
  os::UniqueFd epoll_;
};

}  // namespace regatta::heal
