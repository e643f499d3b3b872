// node_agent/internal/replica_runner.h: the supervisors of a server, as the agent uses them: starts
// them, finds them again after its own restart, signals them and sees how they end.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/node_agent/agent_core.h"
#include "regatta/platform/node_agent/internal/device_slices.h"
#include "regatta/platform/node_agent/internal/replica_meter.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {

struct RunnerOptions {
  std::string state_folder;  // with the runs and the lease
  std::string supervisor;    // path of the program
  std::string node;
  std::string device_type;
  std::string address = {};  // at which other nodes reach this one
  int leaf = 0;              // of the node in the fabric
  int group = 0;
  std::int64_t log_bytes_max = 16 << 20;  // of a rank's log file; two are kept
  int grace_ms = 10000;
  // Folders of replicas that the controller has forgotten, for their output: so many, so long.
  std::size_t runs_kept = 256;
  std::chrono::hours runs_kept_for{7 * 24};
  bool uses_cgroups = true;  // where they can be used
  DeviceSlices slices;
};

// A replica whose processes are all gone.
struct EndedReplica {
  control::ReplicaKey key;
  ReplicaExit exit;
};

class ReplicaRunner {
 public:
  static Result<ReplicaRunner> create(RunnerOptions options);

  // Starts the supervisor and returns without waiting for it. An error: nothing runs, and nothing
  // will.
  Status start(const control::ReplicaOrder& order);
  // Finds a replica that an earlier agent of this boot started: its supervisor is watched from now
  // on, or it is over. A start that the earlier agent did not finish cannot happen afterwards.
  Result<std::optional<ReplicaExit>> adopt(const control::ReplicaKey& key);
  // A replica that ran before the machine started anew is over; its folder is closed.
  ReplicaExit close_after_boot(const control::ReplicaKey& key);
  void stop(const control::ReplicaKey& key);  // SIGTERM, after the grace SIGKILL
  void kill(const control::ReplicaKey& key);  // at once
  void forget(const control::ReplicaKey& key);
  // Removes folders of forgotten replicas that are too many or too old; call it now and then.
  void prune();
  // After the start: folders of replicas that are not among `keys` are those of forgotten ones.
  void set_known(const std::vector<control::ReplicaKey>& keys);

  // Bounds the files that replicas write here themselves; call it about once a second.
  void trim_files() const;

  // Polls readable when a supervisor has ended.
  int descriptor() const { return events_.get(); }
  std::vector<EndedReplica> take_ended();
  // The replicas that run.
  std::vector<MeasuredReplica> measured() const;

  std::string run_folder(const control::ReplicaKey& key) const;
  std::string lease_path() const;
  // Folder of the cgroups of replicas; "" where none can be used.
  const std::string& cgroup_root() const { return cgroup_root_; }

 private:
  struct Watched {
    pid_t pid = -1;
    os::UniqueFd pidfd;
    std::string cgroup;
    std::uint32_t devices = 0;
  };
  explicit ReplicaRunner(RunnerOptions options) : options_(std::move(options)) {}
  Result<ReplicaSpec> spec_for(const control::ReplicaOrder& order, const std::string& run);
  Status put_into_container(const control::ReplicaOrder& order, const std::string& run,
                            ReplicaSpec& spec) const;
  Status watch(const control::ReplicaKey& key, pid_t pid, os::UniqueFd pidfd);
  ReplicaExit close_run(const control::ReplicaKey& key, const std::string& reason);
  void signal(const control::ReplicaKey& key, int signal);

  RunnerOptions options_;
  std::string cgroup_root_;
  os::UniqueFd events_;  // epoll
  std::map<control::ReplicaKey, Watched> watched_;
  std::deque<std::string> forgotten_;  // run folders, the oldest first
};

}  // namespace regatta::node_agent
