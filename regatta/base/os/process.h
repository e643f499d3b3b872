// os/process.h: starting, watching and ending processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

struct SpawnOptions {
  std::vector<std::string> environment;  // KEY=VALUE, added to the caller's, which it overrides
  int stdin_fd = -1;                     // -1: inherit
  int stdout_fd = -1;
  int stderr_fd = -1;
  // SIGKILL when the calling process ends, by whatever means. It is tied to the process, not to
  // the calling thread: forks are made by one thread that lives as long as the process.
  bool die_with_parent = true;
  bool own_group = false;         // its own process group: Ctrl-C of the terminal passes it by
  std::vector<int> namespaces;    // descriptors to setns() into, in order, before exec
  std::vector<int> cgroup_procs;  // open `cgroup.procs` files to join before exec
  std::string working_folder;     // "" = the caller's
};

// Starts `argv` (argv[0] by PATH) and returns its process id. A failure between fork and exec is
// reported here: kNotFound names a program that is missing, kUnsupported a namespace that may not
// be entered. The caller owes one wait_for() or reaps otherwise.
Result<pid_t> spawn(const std::vector<std::string>& argv, const SpawnOptions& options);

// How a child ended: exactly one of the two is set.
struct ExitState {
  std::optional<int> status;
  std::optional<int> signal;

  bool is_success() const { return status == 0; }
  int shell_status() const { return status ? *status : 128 + signal.value_or(0); }
};

std::string to_string(const ExitState& state);  // "exit status 1", "signal 9 (Killed)"
std::string signal_text(int signal);            // "signal 9 (Killed)", "signal 40 (unknown)"

// Waits for a child and reaps it; kTimeout after `limit` (none: for ever), kNotFound when `pid` is
// no child of this process.
Result<ExitState> wait_for(pid_t pid, std::optional<Seconds> limit = std::nullopt);

// The child's end when it has ended (and is reaped by this call), nothing when it runs.
Result<std::optional<ExitState>> try_wait(pid_t pid);

// A descriptor that polls readable when `pid` ends; also for processes that are not children.
Result<UniqueFd> open_pidfd(pid_t pid);

// kNotFound when the process is gone.
Status send_signal(pid_t pid, int signal);

// SIGTERM, then SIGKILL after `timeout`; returns when the child is reaped.
Result<ExitState> terminate(pid_t pid, Seconds timeout = Seconds{1.0});

// The cores that this process may run on, at least 1.
int usable_cores();

// Folder of the running executable: where sister programs are looked for.
Result<std::string> executable_folder();

}  // namespace regatta::os
