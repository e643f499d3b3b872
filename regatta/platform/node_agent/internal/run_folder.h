// node_agent/internal/run_folder.h: the folder of one replica on a server: what its supervisor is
// to run, the lock that it holds while it lives, and how the replica ended. The supervisor links
// this: no dependency but the C library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"

namespace regatta::node_agent {

// The user whose processes the ranks are.
struct ProcessUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

// The task of a supervisor. It is written once, before the supervisor is started.
struct ReplicaSpec {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // all of it but the rank's own
  std::string working_folder;                                    // "": that of the root
  std::optional<ProcessUser> user;                               // none: that of the agent
  std::string cgroup;  // folder of a fresh group; "": none can be used
  int first_rank = 0;
  int ranks = 1;
  std::int64_t log_bytes_max = 16 << 20;  // of a rank's log file; two are kept
  int grace_ms = 10000;                   // between the stop signal and SIGKILL
  int stop_signal = 15;                   // SIGTERM
  std::int64_t lease_ms = -1;             // 0: none; -1: that of the lease file

  bool operator==(const ReplicaSpec& other) const;
};

std::string encode(const ReplicaSpec& spec);
// Skips what a newer agent has added. kInvalidInput names the line.
Result<ReplicaSpec> decode_replica_spec(const std::string& text);

// How a replica ended.
struct ReplicaExit {
  int exit_status = 0;  // of the first rank that failed
  int signal = 0;       // that ended it
  bool is_node_fault = false;
  std::int64_t running_ms = 0;
  std::string reason;  // one line, for people

  bool operator==(const ReplicaExit&) const = default;
};

std::string encode(const ReplicaExit& exit);
Result<ReplicaExit> decode_replica_exit(const std::string& text);

// Paths in the folder `run`.
std::string spec_path(const std::string& run);
std::string exit_path(const std::string& run);
std::string lock_path(const std::string& run);

// Writes the file with its data on disk, so that readers see all of it or none. kUnavailable.
Status write_durably(const std::string& path, const std::string& text);
// kNotFound where it is missing; at most 16 MiB.
Result<std::string> read_small_file(const std::string& path);
// Nothing: it has not ended.
Result<std::optional<ReplicaExit>> read_exit(const std::string& run);

// The lock of a run folder, which belongs to a process and goes with it: children do not inherit
// it, and a number of a process that is used again does not have it. Source: fcntl(2), F_SETLK.
class RunLock {
 public:
  // kConflict where another process holds it.
  static Result<RunLock> take(const std::string& run);
  // The process that holds it; nothing: none does.
  static Result<std::optional<pid_t>> holder(const std::string& run);

  RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace regatta::node_agent
