// The fork side of os/process.h.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

enum class Stage : int { kDescriptors, kNamespace, kCgroup, kFolder, kParent, kExec };

struct Failure {
  Stage stage = Stage::kExec;
  int number = 0;
};

// Everything the child needs, laid out before fork: between fork and exec only async-signal-safe
// calls are allowed, because other threads may hold the allocator's lock.
struct Prepared {
  std::vector<std::string> program_paths;  // to try in order
  std::vector<char*> argv;
  std::vector<char*> environment;
  const SpawnOptions* options = nullptr;
  int report_fd = -1;
  pid_t parent = -1;
};

[[noreturn]] void report_and_exit(int report_fd, Stage stage) {
  const Failure failure{stage, errno};
  if (::write(report_fd, &failure, sizeof failure) < 0) ::_exit(126);
  ::_exit(127);
}

// Moves `from` onto the standard descriptor `to`; dup2 leaves close-on-exec set when both are one.
bool place_descriptor(int from, int to) {
  if (from < 0) return true;
  if (from == to) return ::fcntl(from, F_SETFD, 0) == 0;
  return ::dup2(from, to) >= 0;
}

void reset_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    ::signal(signal, SIG_DFL);
}

[[noreturn]] void run_child(const Prepared& prepared) {
  const SpawnOptions& options = *prepared.options;
  const int report = prepared.report_fd;
  reset_signals();
  if (options.own_group) ::setpgid(0, 0);
  for (const int file : options.cgroup_procs) {
    if (::write(file, "0", 1) < 0) report_and_exit(report, Stage::kCgroup);
  }
  for (const int space : options.namespaces) {
    if (::setns(space, 0) != 0) report_and_exit(report, Stage::kNamespace);
  }
  // After setns: entering a user namespace changes the credentials, which clears the setting.
  if (options.die_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) report_and_exit(report, Stage::kParent);
    if (::getppid() != prepared.parent) ::_exit(128 + SIGKILL);
  }
  if (!place_descriptor(options.stdin_fd, 0) || !place_descriptor(options.stdout_fd, 1) ||
      !place_descriptor(options.stderr_fd, 2)) {
    report_and_exit(report, Stage::kDescriptors);
  }
  for (const int fd : options.open_fds)
    if (::fcntl(fd, F_SETFD, 0) != 0) report_and_exit(report, Stage::kDescriptors);
  if (!options.working_folder.empty() && ::chdir(options.working_folder.c_str()) != 0) {
    report_and_exit(report, Stage::kFolder);
  }
  int last_error = ENOENT;
  for (const std::string& path : prepared.program_paths) {
    ::execve(path.c_str(), prepared.argv.data(), prepared.environment.data());
    if (errno != ENOENT && errno != ENOTDIR) last_error = errno;
  }
  errno = last_error;
  report_and_exit(report, Stage::kExec);
}

// Forks on behalf of all threads. PR_SET_PDEATHSIG follows the thread that forked, so that thread
// must not end before the process does: it is never joined.
class Forker {
 public:
  // Never freed: the thread outlives static destruction. A process that is itself a fork has no
  // such thread, and the locks of its parent's in any state: it starts a new one.
  static Forker& instance() {
    static std::atomic<Forker*> current{nullptr};
    [[maybe_unused]] static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { current = nullptr; });
    Forker* forker = current;
    if (forker != nullptr) return *forker;
    auto* made = new Forker;
    if (current.compare_exchange_strong(forker, made)) return *made;
    delete made;  // another thread was faster
    return *forker;
  }

  pid_t fork_child(const Prepared& prepared) {
    MutexLock lock(mutex_);
    if (!has_thread_) {
      has_thread_ = true;
      std::thread([this] { serve(); }).detach();
    }
    Request request{&prepared, -1, false};
    queue_.push_back(&request);
    work_.notify_one();
    done_.wait(lock, [&] { return request.done; });
    errno = request.error;
    return request.pid;
  }

 private:
  struct Request {
    const Prepared* prepared;
    pid_t pid;
    bool done;
    int error = 0;
  };

  [[noreturn]] void serve() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for the program's own threads
    MutexLock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return !queue_.empty(); });
      Request* request = queue_.front();
      queue_.pop_front();
      request->pid = ::fork();
      if (request->pid == 0) run_child(*request->prepared);
      request->error = errno;
      request->done = true;
      done_.notify_all();
    }
  }

  Mutex mutex_;
  ConditionVariable work_;
  ConditionVariable done_;
  std::deque<Request*> queue_ REGATTA_GUARDED_BY(mutex_);
  bool has_thread_ REGATTA_GUARDED_BY(mutex_) = false;
};

std::vector<std::string> program_paths(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = std::getenv("PATH");
  std::vector<std::string> found;
  std::string rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t start = 0; start <= rest.size();) {
    const std::size_t end = std::min(rest.find(':', start), rest.size());
    found.push_back((end == start ? "." : rest.substr(start, end - start)) + "/" + program);
    start = end + 1;
  }
  return found;
}

// The caller's variables with `added` over them.
std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
  std::vector<std::string> merged = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view own(*entry);
    const std::string_view key = own.substr(0, own.find('=') + 1);
    const bool overridden = std::any_of(added.begin(), added.end(), [&](const std::string& text) {
      return std::string_view(text).substr(0, key.size()) == key;
    });
    if (!overridden) merged.emplace_back(own);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts)
    list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

Error describe(const Failure& failure, const std::string& program) {
  switch (failure.stage) {
    case Stage::kNamespace:
      return errno_error(program + ": cannot enter the namespace", failure.number);
    case Stage::kCgroup:
      return errno_error(program + ": cannot join the cgroup", failure.number);
    case Stage::kFolder:
      return errno_error(program + ": cannot enter the working folder", failure.number);
    case Stage::kDescriptors:
      return errno_error(program + ": cannot place the standard descriptors", failure.number);
    case Stage::kParent:
      return errno_error(program + ": cannot be tied to its parent", failure.number);
    case Stage::kExec:
      break;
  }
  return errno_error(program + ": cannot be started", failure.number);
}

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& argv, const SpawnOptions& options) {
  if (argv.empty()) return Error{Code::kInvalidInput, "the command to start is empty"};
  REGATTA_TRY(report, make_pipe());
  auto arguments = argv;
  auto environment = merged_environment(options.environment);
  Prepared prepared;
  prepared.program_paths = program_paths(argv.front());
  prepared.argv = pointers(arguments);
  prepared.environment = pointers(environment);
  prepared.options = &options;
  prepared.report_fd = report.write_end.get();
  prepared.parent = ::getpid();
  const pid_t pid = Forker::instance().fork_child(prepared);
  if (pid < 0) return errno_error(argv.front() + ": fork");
  report.write_end.reset();
  Failure failure;
  ssize_t count = 0;
  do {
    count = ::read(report.read_end.get(), &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return pid;  // exec closed the pipe
  static_cast<void>(wait_for(pid).has_value());
  if (count != sizeof failure)
    return Error{Code::kUnavailable, argv.front() + ": fork was cut off"};
  return describe(failure, argv.front());
}

Status die_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("PR_SET_PDEATHSIG");
  if (::getppid() != parent) ::raise(SIGKILL);
  return {};
}

}  // namespace regatta::os
