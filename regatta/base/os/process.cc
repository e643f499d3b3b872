#include "regatta/base/os/process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

ExitState to_exit_state(int raw) {
  ExitState state;
  if (WIFSIGNALED(raw)) {
    state.signal = WTERMSIG(raw);
  } else {
    state.status = WEXITSTATUS(raw);
  }
  return state;
}

}  // namespace

std::string to_string(const ExitState& state) {
  if (!state.signal) return "exit status " + std::to_string(state.status.value_or(0));
  return signal_text(*state.signal);
}

std::string signal_text(int signal) {
  const char* description = ::sigdescr_np(signal);  // null for real-time signals
  return "signal " + std::to_string(signal) + " (" +
         (description != nullptr ? description : "unknown") + ")";
}

Result<std::optional<ExitState>> try_wait(pid_t pid) {
  for (;;) {
    int raw = 0;
    const pid_t ended = ::waitpid(pid, &raw, WNOHANG);
    if (ended == pid) return std::optional<ExitState>(to_exit_state(raw));
    if (ended == 0) return std::optional<ExitState>();
    if (errno == ECHILD) {
      return Error{Code::kNotFound, "process " + std::to_string(pid) + ": not a child"};
    }
    if (errno != EINTR) return errno_error("process " + std::to_string(pid));
  }
}

Result<ExitState> wait_for(pid_t pid, std::optional<Seconds> limit) {
  REGATTA_TRY(at_once, try_wait(pid));
  if (at_once) return *at_once;
  REGATTA_TRY(pidfd, open_pidfd(pid));
  const Seconds end = monotonic_now() + limit.value_or(Seconds{0});
  for (;;) {
    const double left = limit ? (end - monotonic_now()).value : -1e-3;
    if (limit && left <= 0) {
      return Error{Code::kTimeout, "process " + std::to_string(pid) + ": still running"};
    }
    pollfd entry{pidfd.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, limit ? static_cast<int>(left * 1e3) + 1 : -1);
    if (ready < 0 && errno != EINTR) return errno_error("process " + std::to_string(pid));
    REGATTA_TRY(state, try_wait(pid));
    if (state) return *state;
  }
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
  if (!fd) return errno_error("process " + std::to_string(pid));
  return fd;
}

Status send_signal(pid_t pid, int signal) {
  if (::kill(pid, signal) == 0) return {};
  return errno_error("process " + std::to_string(pid));
}

Result<ExitState> terminate(pid_t pid, Seconds timeout) {
  REGATTA_TRY(at_once, try_wait(pid));
  if (at_once) return *at_once;
  ::kill(pid, SIGTERM);
  ::kill(pid, SIGCONT);  // a stopped process would keep the SIGTERM waiting
  auto state = wait_for(pid, timeout);
  if (state || state.error().code != Code::kTimeout) return state;
  ::kill(pid, SIGKILL);
  return wait_for(pid);
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Result<std::string> boot_id() {
  REGATTA_TRY(text, read_file("/proc/sys/kernel/random/boot_id"));
  return std::string(trim(text));
}

Result<std::string> executable_folder() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return errno_error("/proc/self/exe", error.value());
  return path.parent_path().string();
}

}  // namespace regatta::os
