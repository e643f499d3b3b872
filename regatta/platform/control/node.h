// control/node.h: a server of the platform: its facts, the operator's intent, and when it was heard
// last; and what the controller and the agent of a server say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/job.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::control {

enum class NodeIntent {
  kInUse,
  kCordoned,  // jobs stay, none comes
  kDraining   // jobs leave
};
inline constexpr EnumNames<3> kNodeIntentNames = {"in_use", "cordoned", "draining"};

// The capability by which an agent says that it holds replicas to their parts of devices.
inline constexpr const char* kSlicesCapability = "slices";

// An agent as it introduces itself.
struct NodeIdentity {
  sched::ClusterNode facts;  // as the agent found them; without health
  std::string address;
  std::string journal_id;
  bool enforces_slices = false;    // holds replicas to their parts of devices
  bool has_replica_leases = true;  // else it ends replicas after the lease of its welcome alone
};

// A replica that is on a node, by the job and its place in Attempt::replicas.
struct PlacedReplica {
  JobId job = 0;
  int replica = 0;

  bool operator==(const PlacedReplica&) const = default;
};

struct ManagedNode {
  sched::ClusterNode facts;  // its health is set by health_of()
  std::string address;       // at which other nodes reach it
  std::string journal_id;    // of its agent's journal
  NodeIntent intent = NodeIntent::kInUse;
  std::int64_t joined_ms = 0;
  Revision revision = 0;
  // On the controller's monotonic clock; what follows is not stored.
  Seconds last_heard;
  bool enforces_slices = false;
  bool is_connected = false;
  // A heartbeat came: the agent knows that this controller is there, and what an earlier one has
  // allowed it (node_protocol::LeaseExtension) is over.
  bool is_welcome = false;
  bool has_replica_leases = false;  // as in NodeIdentity
  bool is_silent = false;           // not heard for silent_after: it gets nothing new
  // The fault of the fabric that a prober blames on it, and until when that counts; "": none. It
  // gets no new jobs meanwhile.
  std::string fabric_fault;
  Seconds fabric_fault_until;
  bool is_fenced = false;               // so silent that it has ended all its replicas itself
  std::vector<PlacedReplica> replicas;  // that are not gone
};

// Names a replica of one attempt in messages.
struct ReplicaKey {
  JobId job = 0;
  int attempt = 0;
  int replica = 0;

  auto operator<=>(const ReplicaKey&) const = default;
};

// A report of an agent: what its journal says about a replica.
struct ReplicaReport {
  ReplicaKey key;
  Revision fence = 0;
  bool is_over = false;  // all its processes are gone, or it never started and never will
  int exit_status = 0;   // of the first rank that failed; 0: all succeeded
  int signal = 0;        // that ended it
  // The node ended it, not the job: a restart between journal and start, a reboot, or its lease ran
  // out. It does not count as a failure of the job.
  bool is_node_fault = false;
  Seconds running_for;
};

enum class OrderKind {
  kStart,   // unless the journal knows the key, or a higher fence of the job
  kStop,    // ends its processes; a key that is not known is entered as over
  kForget,  // the end is durable at the controller: the journal may drop the key
};

// The place of a replica of a gang, for the gang's own launchers.
struct GangHost {
  std::string address;
  int ranks = 1;

  bool operator==(const GangHost&) const = default;
};
inline constexpr int kGangHostsMax = 8192;

// An order to an agent. It may come any number of times.
struct ReplicaOrder {
  OrderKind kind = OrderKind::kStart;
  ReplicaKey key;
  Revision fence = 0;
  // These belong to kStart.
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // for all its ranks
  std::string working_folder;
  std::string user;
  std::uint32_t devices = 0;
  ReplicaSlice slice;
  int first_rank = 0;
  int ranks = 1;             // processes of this replica
  int world_size = 1;        // processes of the gang
  Seconds lease;             // of this replica; 0: that of the node's welcome
  std::string head_address;  // of the node of its first replica
  int replicas = 1;          // of the gang
  // By replica, for the first one alone, which starts the others' ranks where it needs to; empty
  // for gangs of more than kGangHostsMax replicas.
  std::vector<GangHost> hosts;
  ContainerImage container;
  int stop_signal = 15;    // that asks its processes to end
  Seconds stop_grace{-1};  // from then to SIGKILL; below 0: the node's own
};

}  // namespace regatta::control
