// sched/job_request.h: a job as its user asks for it: gangs of roles, slices, limits of topology,
// priority, times.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/mixing/duty_profile.h"
#include "regatta/platform/mixing/mixed_workload.h"

namespace regatta::sched {

inline constexpr int kDeviceMilli = 1000;   // thousandths of a device
inline constexpr int kNodeDevicesMax = 16;  // devices of a node

// Domains of nodes that share switches, from the inside out. A cluster without a fabric is one
// leaf.
enum class TopologyLevel { kServer, kLeaf, kGroup, kCluster };
inline constexpr int kTopologyLevels = 4;
inline constexpr EnumNames<kTopologyLevels> kTopologyLevelNames = {"server", "leaf", "group",
                                                                   "cluster"};

// Replicas of a role are equal; each runs on one node.
struct Role {
  std::string name;
  int replicas_min = 1;  // the gang starts with so many
  int replicas_max = 1;  // and may grow to so many
  int devices = 0;       // of a replica; 0: it needs CPU alone
  // Thousandths of the compute of each of its devices, 1 to kDeviceMilli, and memory. A whole
  // device (kDeviceMilli) has all the memory, and is shared by mixing alone: a mixable role has
  // device_memory_mib of it then.
  int device_milli = kDeviceMilli;
  int device_memory_mib = 0;
  int cpu_milli = 0;
  int memory_mib = 0;
  int nic_milli = 0;  // thousandths of one NIC
  // The use of each of its devices over time. Where it is known, and device_memory_mib is above 0,
  // others may take what the role leaves of its devices.
  mixing::DutyProfile duty;

  // A parallel axis of a plan: so many consecutive replicas stay below one domain of the level. 1:
  // no such limit.
  int subgroup_replicas = 1;
  TopologyLevel subgroup_level = TopologyLevel::kCluster;

  bool is_sliced() const { return devices > 0 && device_milli < kDeviceMilli; }
  bool is_mixable() const { return devices > 0 && device_memory_mib > 0 && duty.is_known(); }
  // Memory of a device with `whole_mib`: a share or a mixable role takes what it asks for, the
  // others all of it.
  int memory_taken(int whole_mib) const {
    return is_sliced() || is_mixable() ? device_memory_mib : whole_mib;
  }
};

using JobClass = mixing::WorkloadClass;

// How far apart the replicas of a gang may be.
struct TopologyLimit {
  TopologyLevel required = TopologyLevel::kCluster;   // all below one domain of this level
  TopologyLevel preferred = TopologyLevel::kCluster;  // at most `required`
};

// The time that a job runs on its smallest size without interruption: log-normal.
struct RunTime {
  Seconds median;         // 0: not known
  double log_spread = 0;  // standard deviation of the logarithm; 0: exact
};

// The time that a job still runs, which has run for `elapsed` >= 0: the `quantile` of its
// distribution, 0 < quantile < 1, given that it has not ended. A time that is not known is
// infinite, and a job of exactly known time that runs longer ends now.
Seconds remaining_time(const RunTime& run_time, Seconds elapsed, double quantile);

// The `quantile` of the normal distribution with mean 0 and deviation 1; 0 < quantile < 1.
double normal_quantile(double quantile);

struct Checkpointing {
  Seconds interval;  // between checkpoints; 0: none, an eviction loses everything
  Seconds write;     // the job stands still so long for each
  Seconds restart;   // from the start of its processes to the first step
};

// The share of the time that writing checkpoints leaves for work; above 0, at most 1.
double working_share(const Checkpointing& checkpointing);

// A point of the throughput that the planner predicts.
struct ThroughputPoint {
  int devices = 0;
  double throughput = 0;  // in any unit, the same for all points of a job
};

// Demand on a service until now, by which the scheduler sizes it ahead of time.
struct ServiceDemand {
  Seconds interval{60};
  std::vector<double> history;  // means of intervals, the last ends now; not negative, in any unit
  double per_replica = 1;       // what a replica serves within the latency target; above 0
};

struct JobRequest {
  std::string name;   // unique
  std::string queue;  // a leaf of the quota tree
  std::string user;
  JobClass job_class = JobClass::kBatch;
  int priority = 0;  // higher goes first
  bool is_preemptible = true;
  std::vector<Role> roles;                // all start together
  std::vector<std::string> device_types;  // one of these for the whole gang; empty: any
  TopologyLimit topology;
  // Time of a step where the gang spans a domain of each level, over the time within the smallest
  // that could hold it: job_plan/planned_job.h estimates it. At least 1, not falling.
  std::array<double, kTopologyLevels> slowdown{1, 1, 1, 1};
  RunTime run_time;
  Checkpointing checkpointing;
  std::vector<ThroughputPoint> throughput;  // by rising devices; empty: grows with the devices
  Seconds submitted;
  std::optional<Seconds> deadline;
  // kOnline or kTidal with one role and no subgroups: its replicas follow the demand, from
  // replicas_min to replicas_max.
  std::optional<ServiceDemand> demand;
};

// Whether the job may share devices beyond their whole: each of its roles with devices is mixable,
// and where there are several none is a share.
bool may_share_devices(const JobRequest& job);

// Replicas of each role on the smallest size of a job.
std::vector<int> smallest_size(const JobRequest& job);

// Devices of a job with so many replicas of each role, and on its smallest size; shares count as
// parts.
double devices_of(const JobRequest& job, const std::vector<int>& replicas);
double devices_min(const JobRequest& job);

// The throughput with `devices` > 0: between the points of the job as a line, before the first
// in proportion, beyond the last as the last; in proportion to the devices where it has no points.
double throughput_at(const JobRequest& job, double devices);

// Fails with kInvalidInput, a sentence that names the job and the remedy, where a value is out of
// its range.
Status check_job(const JobRequest& job);

}  // namespace regatta::sched
