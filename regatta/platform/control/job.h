// control/job.h: a job of the platform from its submission to its end: phases, attempts, replicas.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/job_request.h"
#include "regatta/platform/store/store.h"

namespace regatta::control {

using JobId = std::int64_t;  // from 1, never used again
using store::Revision;

enum class JobPhase {
  kPending,    // waits for its turn, for other jobs, or is held
  kStarting,   // an attempt has its places; not all replicas run yet
  kRunning,    // all replicas of the attempt run
  kStopping,   // the attempt ends; then the job is pending again, or over
  kSucceeded,  // all replicas of the last attempt ended with status 0
  kFailed,
  kCancelled
};
inline constexpr EnumNames<7> kJobPhaseNames = {"pending",   "starting", "running",  "stopping",
                                                "succeeded", "failed",   "cancelled"};
bool is_over(JobPhase phase);

enum class ReplicaPhase {
  kWaiting,  // for others that still stop on its devices
  kOrdered,  // its node may start it at any moment
  kRunning,
  kEnded,  // its processes are gone: exit status or signal
  kLost    // its node is fenced: whatever ran there has been ended by the node itself
};
inline constexpr EnumNames<5> kReplicaPhaseNames = {"waiting", "ordered", "running", "ended",
                                                    "lost"};

// The part of each of its devices that a replica has: thousandths of the compute, and memory.
struct ReplicaSlice {
  int device_milli = 1000;  // 1000: whole devices, whose memory is not limited
  int device_memory_mib = 0;

  bool is_whole() const { return device_milli >= 1000; }
  bool operator==(const ReplicaSlice&) const = default;
};

// The container of each rank of a job.
struct ContainerImage {
  std::string path;                      // on each node; "": ranks run without a container
  bool is_read_only = false;             // its root file system
  std::vector<std::string> mounts;       // paths of the node, at the same place inside
  std::vector<std::string> cdi_devices;  // besides those of the replica's devices

  bool operator==(const ContainerImage&) const = default;
};

// One replica of a gang on its place. `node` is an index of ClusterTables::nodes().
struct Replica {
  int role = 0;
  int node = 0;
  std::uint32_t devices = 0;  // a bit for each
  ReplicaPhase phase = ReplicaPhase::kWaiting;
  int exit_status = 0;
  int signal = 0;
  ReplicaSlice slice;
  // Unix times, for people; 0: not yet.
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;

  bool is_gone() const { return phase == ReplicaPhase::kEnded || phase == ReplicaPhase::kLost; }
};

enum class StopCause {
  kNone,
  kFailed,     // a replica failed
  kLostNode,   // a replica is lost
  kCancelled,  // by its user
  kEvicted,    // for other jobs
  kMoved       // to other places, or to another size
};
inline constexpr EnumNames<6> kStopCauseNames = {"none",      "failed",  "lost_node",
                                                 "cancelled", "evicted", "moved"};

// One run of a gang. Each replica is started at most once in it, and the next attempt begins when
// all its replicas are gone.
struct Attempt {
  int number = 0;      // from 1
  Revision fence = 0;  // of the change that made it: a later attempt has a higher one
  Seconds lease;       // without word from the controller a node ends its replicas after it
  StopCause stop = StopCause::kNone;
  std::vector<Replica> replicas;
  std::int64_t started_ms = 0;  // Unix time, for people; nothing is decided by it
  Seconds started;              // on the controller's monotonic clock
};

struct ManagedJob {
  JobId id = 0;
  Revision revision = 0;
  std::string spec;  // JSON, as it was submitted; "" of the later ones of an array: spec_text()
  JobId array = 0;   // the first job of its array, whose others have the next numbers; 0: none
  int array_index = 0;
  int array_limit = 0;  // so many of the array at a time; 0: any number
  std::string name;
  std::string queue;
  std::string user;
  int priority = 0;
  JobPhase phase = JobPhase::kPending;
  bool is_held = false;
  bool is_cancelled = false;  // it ends as soon as its replicas are gone
  int attempts = 0;
  int failures = 0;  // attempts that count against the limit of restarts
  int evictions = 0;
  int exit_status = 0;  // of the replica that failed first
  std::int64_t submitted_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  std::vector<JobId> after;          // it starts when these have succeeded
  Seconds submitted;                 // on the controller's monotonic clock, as are the next ones
  Seconds not_before;                // the pause after a failure
  Seconds completed;                 // work that checkpoints hold, as time on its smallest size
  std::string reason;                // one sentence: why it is in this phase
  std::unique_ptr<Attempt> attempt;  // the one under way
  std::unique_ptr<Attempt> ended;    // the one that this change ends: its record has it, once
  std::vector<Replica> next;         // places of the next attempt, if they are decided
  std::vector<int> last_nodes;       // of the replicas of the latest attempt: they have its output
  // The request of the spec, read when a decision first needs it: many see the same jobs.
  mutable std::shared_ptr<const sched::JobRequest> request;
};

}  // namespace regatta::control
