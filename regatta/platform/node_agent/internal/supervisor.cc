#include "regatta/platform/node_agent/internal/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/platform/node_agent/internal/lease_file.h"
#include "regatta/platform/node_agent/internal/precedence.h"
#include "regatta/platform/node_agent/internal/process_end.h"
#include "regatta/platform/node_agent/internal/rank_log.h"
#include "regatta/platform/node_agent/internal/rank_process.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kNever = INT64_MAX;
constexpr int kLastReadsMost = 256;  // of 64 KiB each, of a pipe that nobody should fill any more

sigset_t watched_signals() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGUSR1, SIGCHLD})
    ::sigaddset(&watched, signal);
  return watched;
}

struct SupervisedRank {
  StartedRank started;
  RankLogWriter log;
  bool is_over = false;
};

class ReplicaSupervisor {
 public:
  ReplicaSupervisor(std::string run, ReplicaSpec spec, LeaseFile lease)
      : run_(std::move(run)), spec_(std::move(spec)), lease_(std::move(lease)) {}

  ReplicaExit work() {
    const std::int64_t begin = boottime_ns();
    open_signals();
    if (has_lease()) start_all();
    while (!is_all_over())
      handle_events();
    end_rest();
    for (SupervisedRank& rank : ranks_)
      read_output(rank, kLastReadsMost);
    exit_.running_ms = (boottime_ns() - begin) / kMillisecond;
    return exit_;
  }

 private:
  void open_signals() {
    const sigset_t watched = watched_signals();
    signals_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  bool has_lease() {
    if (boottime_ns() < lease_end_ns()) return true;
    if (!exit_.is_node_fault) exit_.reason = "the lease of the node ended";
    exit_.is_node_fault = true;
    return false;
  }

  std::int64_t lease_end_ns() const {
    return lease_.deadline_ns(spec_.lease_ms > 0 ? spec_.lease_ms * kMillisecond : spec_.lease_ms);
  }

  void start_all() {
    for (int local_rank = 0; local_rank < spec_.ranks; ++local_rank) {
      const auto started = start_rank(spec_, local_rank);
      if (!started) {
        exit_.is_node_fault = true;
        exit_.reason = "no process can be made: " + started.error().message;
        kill_all();
        return;
      }
      ranks_.push_back(
          {.started = *started, .log = RankLogWriter(run_, local_rank, spec_.log_bytes_max)});
    }
  }

  bool is_all_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const SupervisedRank& rank) { return rank.is_over; });
  }

  // Waits for output, signals, the end of the grace or of the lease.
  void handle_events() {
    std::vector<pollfd> events = {{.fd = signals_, .events = POLLIN, .revents = 0}};
    for (const SupervisedRank& rank : ranks_)
      events.push_back({.fd = rank.started.output, .events = POLLIN, .revents = 0});
    const std::int64_t next = std::min(kill_at_ns_, is_killed_ ? kNever : lease_end_ns());
    const std::int64_t wait_ms =
        std::clamp<std::int64_t>((next - boottime_ns()) / kMillisecond + 1, 0, 60'000);
    // The clock of poll() stands while the machine sleeps; the deadlines are read again after it.
    static_cast<void>(::poll(events.data(), events.size(), static_cast<int>(wait_ms)));
    for (std::size_t i = 1; i < events.size(); ++i)
      if (events[i].revents != 0) read_output(ranks_[i - 1], 16);
    handle_signals();
    if (!is_killed_ && (boottime_ns() >= kill_at_ns_ || !has_lease())) kill_all();
  }

  void handle_signals() {
    signalfd_siginfo signal{};
    bool has_child = false;
    while (::read(signals_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
      has_child |= signal.ssi_signo == SIGCHLD;
      if (signal.ssi_signo == SIGTERM) stop_all("the replica was ordered to stop");
      if (signal.ssi_signo == SIGUSR1) {
        if (exit_.reason.empty()) exit_.reason = "the agent ended the replica at once";
        kill_all();
      }
    }
    if (has_child) reap();
  }

  // Also children of ranks that have lost their parent: this process is their reaper.
  void reap() {
    int state = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &state, WNOHANG)) > 0) {
      const auto rank =
          std::find_if(ranks_.begin(), ranks_.end(),
                       [pid](const SupervisedRank& each) { return each.started.pid == pid; });
      if (rank != ranks_.end()) note_end(*rank, static_cast<int>(rank - ranks_.begin()), state);
    }
  }

  void note_end(SupervisedRank& rank, int local_rank, int state) {
    rank.is_over = true;
    const int status = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
    const int signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    if ((status == 0 && signal == 0) || has_failed_) return;
    has_failed_ = true;
    exit_.exit_status = status;
    exit_.signal = signal;
    const std::string what =
        signal != 0 ? "signal " + std::to_string(signal) : "status " + std::to_string(status);
    stop_all("rank " + std::to_string(spec_.first_rank + local_rank) + " ended with " + what);
  }

  void stop_all(const std::string& reason) {
    if (exit_.reason.empty()) exit_.reason = reason;
    if (kill_at_ns_ != kNever) return;
    kill_at_ns_ = boottime_ns() + spec_.grace_ms * kMillisecond;
    for (const SupervisedRank& rank : ranks_)
      if (!rank.is_over) ::kill(-rank.started.pid, spec_.stop_signal);
  }

  void kill_all() {
    is_killed_ = true;
    kill_at_ns_ = kNever;
    for (const SupervisedRank& rank : ranks_)
      if (!rank.is_over) ::kill(-rank.started.pid, SIGKILL);
    kill_cgroup(spec_.cgroup);
    for (const pid_t pid : descendants_of(::getpid()))
      ::kill(pid, SIGKILL);
  }

  // The ranks are over: processes that they left behind are ended.
  void end_rest() {
    for (;;) {
      pid_t pid = 0;
      while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (pid < 0 && errno == ECHILD && cgroup_members(spec_.cgroup).empty()) break;
      kill_all();
      pollfd signals{.fd = signals_, .events = POLLIN, .revents = 0};
      static_cast<void>(::poll(&signals, 1, 10));
      signalfd_siginfo signal{};
      while (::read(signals_, &signal, sizeof signal) > 0) {
      }
    }
    if (!spec_.cgroup.empty()) ::rmdir(spec_.cgroup.c_str());
  }

  static void read_output(SupervisedRank& rank, int reads_most) {
    static char block[65536];
    for (int i = 0; i < reads_most && rank.started.output >= 0; ++i) {
      const ssize_t count = ::read(rank.started.output, block, sizeof block);
      if (count < 0 && errno == EAGAIN) return;
      if (count > 0) {
        rank.log.write({block, static_cast<std::size_t>(count)});
      } else {
        ::close(std::exchange(rank.started.output, -1));
      }
    }
  }

  std::string run_;
  ReplicaSpec spec_;
  LeaseFile lease_;
  std::vector<SupervisedRank> ranks_;
  int signals_ = -1;
  std::int64_t kill_at_ns_ = kNever;
  bool is_killed_ = false;
  bool has_failed_ = false;
  ReplicaExit exit_;
};

Result<ReplicaExit> run_replica(const std::string& run, const std::string& lease_path) {
  REGATTA_TRY(text, read_small_file(spec_path(run)));
  REGATTA_TRY(spec, decode_replica_spec(text));
  REGATTA_TRY(lease, LeaseFile::open(lease_path));
  ReplicaSupervisor supervisor(run, std::move(spec), std::move(lease));
  return supervisor.work();
}

}  // namespace

int supervise(const std::string& run, const std::string& lease_path) {
  const sigset_t watched = watched_signals();
  ::sigprocmask(SIG_SETMASK, &watched, nullptr);
  run_before_others();
  lock_memory();
  ::setsid();  // signals to the agent's session do not reach it
  ::umask(0077);
  static_cast<void>(::chdir("/"));
  ::signal(SIGPIPE, SIG_IGN);
  // Orphans below come to this process, not to that of the machine.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 1;
  const auto lock = RunLock::take(run);
  if (!lock) return lock.error().code == Code::kConflict ? 3 : 1;
  // An agent that found no supervisor has closed the folder: it was too late to start.
  const auto earlier = read_exit(run);
  if (!earlier || *earlier) return earlier ? 0 : 1;
  const auto ended = run_replica(run, lease_path);
  const ReplicaExit exit = ended ? *ended
                                 : ReplicaExit{.exit_status = 0,
                                               .signal = 0,
                                               .is_node_fault = true,
                                               .running_ms = 0,
                                               .reason = ended.error().message};
  return write_durably(exit_path(run), encode(exit)) ? 0 : 1;
}

}  // namespace regatta::node_agent
