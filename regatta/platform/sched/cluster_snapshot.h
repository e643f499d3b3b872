// sched/cluster_snapshot.h: a cluster at one moment: nodes, health, running jobs. Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

enum class NodeHealth {
  kReady,
  kCordoned,  // jobs stay, none comes
  kDraining,  // jobs leave when that costs less than staying
  kFailed     // its replicas do not run; the node may return
};

struct ClusterNode {
  std::string name;
  std::string device_type;
  int devices = 0;  // up to kNodeDevicesMax
  int device_memory_mib = 0;
  int cpu_milli = 0;
  int memory_mib = 0;
  int nics = 0;
  int numa_nodes = 1;  // devices are spread evenly over them, in order
  // Domains, numbered from 0 over the cluster. All nodes of a leaf are in one group.
  int leaf = 0;
  int group = 0;
  NodeHealth health = NodeHealth::kReady;
  std::uint32_t failed_devices = 0;  // a bit for each
  double failures_per_day = 0;       // expected
};

// Where a replica runs: a bit in `devices` for each device of the node.
struct ReplicaPlacement {
  int role = 0;
  int node = 0;
  std::uint32_t devices = 0;

  bool operator==(const ReplicaPlacement&) const = default;
};

// Replicas on failed nodes and devices keep their place: others cannot take it, and they run again
// when it returns, or get another place.
struct RunningJob {
  JobRequest request;
  std::vector<ReplicaPlacement> replicas;
  Seconds started;
  Seconds checkpointed;  // when its last checkpoint was; `started` where there is none
  Seconds completed;     // work done before `started`, as time on its smallest size
};

inline constexpr int kMixedJobsMax = 8;  // on one device

// The way in which the jobs on a device share it. Without one they take at most the whole of it.
// With one each must be mixable, their shares may exceed the device, and their memory must fit in
// it, or in the host's with time slices. At most kMixedJobsMax share a device.
struct DeviceMix {
  int node = 0;
  int device = 0;
  mixing::MixMode mode = mixing::MixMode::kShared;

  bool operator==(const DeviceMix&) const = default;
};

struct ClusterSnapshot {
  Seconds now;
  std::vector<ClusterNode> nodes;
  std::vector<RunningJob> running;
  std::vector<DeviceMix> mixes;  // by rising node and device
};

// Replicas of each role among `replicas`, and their devices; shares count as parts.
std::vector<int> replica_counts(const JobRequest& job, std::span<const ReplicaPlacement> replicas);
double devices_of(const JobRequest& job, std::span<const ReplicaPlacement> replicas);

// Whether a replica of the job is lost, and whether this one is: its node or one of its devices has
// failed.
bool is_degraded(const ClusterSnapshot& snapshot, const RunningJob& job);
bool is_lost(const ClusterSnapshot& snapshot, const ReplicaPlacement& replica);

// Nodes of a cluster file, all ready and without failures: servers below the same leaves make a
// leaf (a rail-optimised server has a NIC on each of several leaf switches). A server type says no
// CPU cores and no memory: they are `cpu_milli` and `memory_mib` of each node.
std::vector<ClusterNode> cluster_nodes(const topo::Cluster& cluster, int cpu_milli, int memory_mib);

// Fails with kInvalidInput, a sentence that names the object and the remedy: names that come twice,
// values out of range, placements on nodes, roles or devices that do not exist or are taken twice.
Status check_snapshot(const ClusterSnapshot& snapshot);

}  // namespace regatta::sched
