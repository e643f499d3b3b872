// lab/lab.h: the emulated cluster: one network namespace per server and switch, shaped veth cables,
// real routes with ECMP, devices of fixed speed. All state that outlives a call sits in a holder
// process (which keeps the namespaces by file descriptor) and a small state file, so a killed lab
// leaves nothing: namespaces and cables vanish with their last process, and the next up() reaps the
// rest.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::lab {

struct LabDevice {
  double cpu_share = 0;  // of one core: the pace of the compute thread (device/device.h)
  std::string cgroup;    // folder for the compute thread to join; empty: not possible here
};

struct LabServer {
  std::string name;
  std::vector<std::string> nic_addresses;  // IPv4 of NIC i
  std::vector<LabDevice> devices;
};

struct LabInfo {
  std::string name;  // the cluster's name
  pid_t holder = -1;
  bool user_namespace = false;     // built without root
  bool fixed_speed = false;        // the cores provide the shares of all devices
  std::string speed_note;          // why not; or that no cgroup enforces the shares, and why
  double cpu_share = 0;            // of one core: the smallest share of all devices
  std::vector<LabServer> servers;  // in the cluster's order
  std::string folder;              // run-time folder of the lab: sockets and logs of agents go here
  double up_seconds = 0;
};

struct UpOptions {
  // The holder, and the lab with it, ends when the calling process ends, by any cause: for a
  // session that brings up its own lab.
  bool die_with_caller = false;
};

// Builds the lab of `cluster` after reaping the remains of a killed lab. Fails with kConflict when
// a lab of this name is up, kUnsupported when the kernel or the user's rights do not allow
// namespaces.
Result<LabInfo> up(const topo::Cluster& cluster, const UpOptions& options = {});

// Ends every process inside, then removes the namespaces, cables, cgroups and the folder, also
// those of a killed lab. kNotFound when nothing of a lab of that name exists.
Status down(const std::string& name);

// Labs that are up now. `find` fails with kNotFound and lists the labs that are up. Both reap labs
// whose holder died.
std::vector<LabInfo> list();
Result<LabInfo> find(const std::string& name);
// The error for a lab that was up and has ended.
Error gone(const std::string& name);

// kConflict when the lab was built from another description than `cluster`: servers, devices,
// fabric or rates differ.
Status check_same_cluster(const LabInfo& lab, const topo::Cluster& cluster);

struct ExecOptions {
  std::vector<std::string> environment;  // KEY=VALUE, added to the caller's
  int stdin_fd = -1;                     // -1: inherit
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool die_with_parent = true;  // killed when the calling thread's process ends
};

// Starts `argv` inside the namespace of `node` (a server or switch name) and returns its process
// id.
Result<pid_t> spawn(const LabInfo& lab, const std::string& node,
                    const std::vector<std::string>& argv, const ExecOptions& options);

enum class FaultKind { kLinkDown, kLinkSlow, kLinkDrop, kLinkSwap, kServerStop, kServerKill };

struct Fault {
  FaultKind kind = FaultKind::kLinkDown;
  std::string target;     // link name ("s0.nic0-leaf0") or server name
  BytesPerSecond rate;    // kLinkSlow
  double drop_share = 0;  // kLinkDrop: 0 < share <= 1, both directions
  // kLinkSwap: another link; the ends of both at a switch (end b) are in each other's port.
  std::string other{};
};

// Applies a fault; kNotFound lists the names that exist. A link that is down has no carrier at
// either end; a slow one has `rate` in both directions. The holder remembers the faults of links
// for clear(), so they outlive the caller.
Status inject(const LabInfo& lab, const Fault& fault);

// Undoes every fault on `target` (all faults when empty): link up at its rate, no drops, server
// continued. A killed server stays dead: its namespace is intact and new processes may start.
Status clear(const LabInfo& lab, const std::string& target);

// One cable as it is now, from the kernel's counters. `a` and `b` as in topo::Link.
struct LinkState {
  std::string name;
  std::string a;                  // "s0 nic0": node and interface
  std::string b;                  // "leaf0 port0"
  bool up = false;                // carrier at both ends
  BytesPerSecond rate;            // as shaped now
  BytesPerSecond described_rate;  // in the cluster file: `rate` without a fault
  double drop_share = 0;          // injected
  bool has_fault = false;
  Bytes sent_by_a;
  Bytes sent_by_b;
};

// All cables, in the order of topo::build_graph(). Takes a few milliseconds: fit for polling once a
// second.
Result<std::vector<LinkState>> link_states(const LabInfo& lab);

// The neighbor that each port hears, which names itself: entry 2 k is the end a of cable k and
// entry 2 k + 1 its end b; the value numbers the heard port alike, and is -1 where none is heard.
// Each call has all ports send a frame, and takes a few milliseconds.
Result<std::vector<int>> heard_ports(const LabInfo& lab);

struct LinkCounter {
  topo::DirectedLink link;
  Bytes bytes;  // frames on the wire since the lab came up
};

// The network that the lab emulates, as topo::build_graph() made it, without latencies. Nodes and
// links have their names and places.
Result<topo::Graph> graph_of(const LabInfo& lab);

// Network namespace of a server or switch, for programs that run the fabric from outside. In a lab
// that was built without root the caller has to call enter_user_namespace() first.
Result<os::UniqueFd> open_network(const LabInfo& lab, const std::string& node);
// Moves the calling process, which must have one thread, into the user namespace of a lab that has
// one.
Status enter_user_namespace(const LabInfo& lab);

// Whether the lab itself changes the routes when inject() or clear() changes a carrier, like a
// routing protocol that converges at once. Off: another program is the routing protocol, and only
// kernels change the routes. Once on again, the next such change corrects all routes.
Status set_converging(const LabInfo& lab, bool on);

// Two entries per cable, forward first, in the order of topo::build_graph(cluster). kConflict when
// `cluster` is not what the lab was built from.
Result<std::vector<LinkCounter>> link_counters(const LabInfo& lab, const topo::Cluster& cluster);

struct LabProcess {
  pid_t pid = -1;
  std::string node;
  std::string command;
  bool stopped = false;
};

// The processes inside the namespaces of the lab.
Result<std::vector<LabProcess>> processes(const LabInfo& lab);

}  // namespace regatta::lab
