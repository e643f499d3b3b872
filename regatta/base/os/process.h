// os/process.h: processes and threads: starting, ending and listing them; their libraries,
// namespaces and cgroups.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

// Starting, watching and ending processes.

struct SpawnOptions {
  std::vector<std::string> environment;  // KEY=VALUE, added to the caller's, which it overrides
  int stdin_fd = -1;                     // -1: inherit
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> open_fds;  // stay open in it, under the same numbers
  // SIGKILL when the calling process ends in any way. It is tied to the process, not to the calling
  // thread: one thread, which lives as long as the process, makes all forks.
  bool die_with_parent = true;
  bool own_group = false;         // its own process group: Ctrl-C of the terminal does not reach it
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

// SIGKILL for this process when `parent`, its parent, ends in any way: once more after it has
// entered a user namespace, which clears SpawnOptions::die_with_parent. Ends this process when the
// parent is gone already. Source: PR_SET_PDEATHSIG(2const).
Status die_with(pid_t parent);

// The cores that this process may run on, at least 1.
int usable_cores();

// A random text that is new after each start of this machine. Source: random(4).
Result<std::string> boot_id();

// The folder of the running executable, in which the other programs of Regatta lie.
Result<std::string> executable_folder();

// The processes of this machine in /proc. Source: proc(5).

struct ProcessEntry {
  pid_t pid = -1;
  pid_t parent = -1;
  std::string command;                // up to 15 characters
  char state = '?';                   // R S D T Z ..., as in proc(5)
  unsigned long long start_time = 0;  // clock ticks after boot: with the pid, an identity
};

// kNotFound when the process is gone.
Result<ProcessEntry> read_process(pid_t pid, const std::string& proc = "/proc");

std::vector<ProcessEntry> list_processes(const std::string& proc = "/proc");

// True when `pid` is the process that started at `start_time` and has not ended (zombies have).
bool is_alive(pid_t pid, unsigned long long start_time, const std::string& proc = "/proc");

// The time since the process started, sleep of the machine included. Source: proc(5), starttime.
Seconds age_of(const ProcessEntry& process);

// Inode of the network namespace of `pid`: equal for processes that share one. Nothing when the
// process is gone or may not be inspected.
std::optional<unsigned long long> network_namespace_of(pid_t pid,
                                                       const std::string& proc = "/proc");

// A thread that blocks all signals, so that the program's own threads get them. Source:
// pthread_sigmask(3): a thread starts with the mask of its creator.

// Header only: libraries that are put into foreign programs use it, too.
template <typename Work>
std::thread signal_masked_thread(Work&& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Work>(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// A function of a library that dlopen(3) opened; null, and false, when the library lacks it.
template <typename Function>
bool find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// Network and user namespaces of the calling thread or process.
// Source: network_namespaces(7), user_namespaces(7), setns(2).

// The network namespace of the calling thread; the descriptor keeps it alive.
Result<UniqueFd> open_network_namespace();

// Moves the calling thread into a new, empty network namespace. kUnsupported without the
// permission.
Status enter_new_network_namespace();

// Moves the calling process, which must have one thread, into a new user namespace where the
// caller is root, and into a new network namespace that it owns. kUnsupported when the system
// forbids user namespaces to ordinary users.
Status enter_new_user_namespace();

// Moves the calling thread into the network namespace `fd`.
Status enter_network_namespace(const UniqueFd& fd);

// Identity of the calling thread's network namespace; never used again before the next boot, as
// inodes are. Source: SO_NETNS_COOKIE, Linux 5.14.
Result<unsigned long long> network_namespace_cookie();

// The same for the namespace of process `pid`; may enter that namespace in a short-lived child.
// kUnsupported without the permission.
Result<unsigned long long> network_namespace_cookie_of(pid_t pid);

// Inode of the open namespace, as network_namespace_of() gives it.
Result<unsigned long long> namespace_inode(const UniqueFd& fd);

// Keeps the calling thread in another network namespace for a while. Must be destroyed by the
// thread that made it.
class NetworkNamespaceScope {
 public:
  static Result<NetworkNamespaceScope> enter(const UniqueFd& fd);
  NetworkNamespaceScope(NetworkNamespaceScope&&) noexcept = default;
  NetworkNamespaceScope& operator=(NetworkNamespaceScope&&) noexcept = default;
  ~NetworkNamespaceScope();  // goes back; a failure is a broken invariant

 private:
  explicit NetworkNamespaceScope(UniqueFd home) : home_(std::move(home)) {}
  UniqueFd home_;
};

// Folders that hold threads to a share of a core, by the CFS bandwidth controller.
// Source: Linux, Documentation/scheduler/sched-bwc.rst and admin-guide/cgroup-v2.rst (threads).

enum class CgroupVersion { kV1, kV2 };

// The folder in which this process may make groups of the cpu controller.
struct CpuCgroupRoot {
  CgroupVersion version = CgroupVersion::kV1;
  std::string folder;
};

// Reads /proc/self/{mountinfo,cgroup} under `proc` and tests the folder. kUnsupported gives the
// reason in one sentence: no controller, no permission to write.
Result<CpuCgroupRoot> find_cpu_cgroup_root(const std::string& proc = "/proc");

// Makes the group `root.folder/name` that holds limited groups. It limits nothing and has priority
// over other work of the machine where that may be set. A process joins its `cgroup.procs`
// (SpawnOptions::cgroup_procs) to get the priority; with v2 it must, before one of its threads
// may join a group inside. Returns its folder.
Result<std::string> make_cpu_group(const CpuCgroupRoot& root, const std::string& name);

// Makes the group `parent/name` whose threads together get `share` of one core (0 < share <= 1)
// in every period of 10 ms (longer when share < 0.1: the kernel's least quota is 1 ms). Returns
// its folder.
Result<std::string> make_limited_group(const std::string& parent, const std::string& name,
                                       double share);

// Moves the calling thread, and no other one, into `folder`.
Status join_cgroup(const std::string& folder);

// Removes `folder` and the groups within; success when it is not there. kConflict when threads
// are still inside after `timeout`.
Status remove_cgroup(const std::string& folder, Seconds timeout = Seconds{1.0});

// The cgroups of a process, their text, and their folders. Source: cgroups(7), proc(5) (mountinfo).

// A group, as the kernel names it. The hierarchy is "" for cgroup v2, for v1 the name of one of
// its controllers ("memory") or its own ("name=systemd").
struct CgroupPath {
  std::string hierarchy;
  std::string path;  // "/" or "/a/b"

  friend bool operator==(const CgroupPath&, const CgroupPath&) = default;
};

// "memory:/a/b", "name=systemd:/a/b", or "/a/b" for cgroup v2.
std::string to_string(const CgroupPath& group);
// The reverse. kInvalidInput unless the path is absolute and plain (no "..", no "//").
Result<CgroupPath> parse_cgroup_path(std::string_view text);

// The groups that /proc/PID/cgroup lists; one for each controller where v1 mounts several together.
std::vector<CgroupPath> parse_cgroups(std::string_view text);
// The group in this hierarchy, or nothing.
std::optional<std::string> path_in(const std::vector<CgroupPath>& groups,
                                   std::string_view hierarchy);
// Whether `path` is `group` or one below it.
bool is_within(std::string_view path, std::string_view group);

// Where a hierarchy is mounted: `root` of it appears at `point`.
struct CgroupMount {
  std::string root;
  std::string point;
};
std::optional<CgroupMount> find_cgroup_mount(std::string_view mountinfo,
                                             std::string_view hierarchy);

// The group's folder, which may not exist. kUnsupported when no mount shows it.
Result<std::string> cgroup_folder(const CgroupPath& group, const std::string& proc = "/proc");

}  // namespace regatta::os
