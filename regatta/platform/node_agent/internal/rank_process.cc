#include "regatta/platform/node_agent/internal/rank_process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::node_agent {
namespace {

[[noreturn]] void leave(int status, const char* object, const char* action) {
  const int number = errno;
  const std::string line = std::string("regatta: ") + object + ": cannot " + action + ": " +
                           std::strerror(number) + "\n";
  static_cast<void>(::write(STDERR_FILENO, line.data(), line.size()) < 0);
  ::_exit(status);
}

void join_group(const std::string& folder) {
  if (folder.empty()) return;
  const std::string path = folder + "/cgroup.procs";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, "0", 1) != 1) leave(125, folder.c_str(), "join the cgroup");
  ::close(fd);
}

void become(const ProcessUser& user) {
  if (::setgroups(user.groups.size(), user.groups.data()) != 0 ||
      ::setresgid(user.gid, user.gid, user.gid) != 0 ||
      ::setresuid(user.uid, user.uid, user.uid) != 0)
    leave(125, "user", "become the job's user");
}

void open_standard_files(int output) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (::dup2(output, STDERR_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 || null < 0 ||
      ::dup2(null, STDIN_FILENO) < 0)
    leave(125, "output", "be opened");
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal)
    ::signal(signal, SIG_DFL);  // fails for SIGKILL and SIGSTOP alone
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The supervisor has one thread, so its child may use all of the C library.
[[noreturn]] void run_rank(const ReplicaSpec& spec, char* const* arguments, char** variables,
                           int output, pid_t supervisor) {
  ::setpgid(0, 0);
  open_standard_files(output);
  join_group(spec.cgroup);
  if (spec.user) become(*spec.user);
  // After the change of the user, which clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    leave(125, "process", "be prepared");
  if (::getppid() != supervisor) ::_exit(125);
  const char* folder = spec.working_folder.empty() ? "/" : spec.working_folder.c_str();
  if (::chdir(folder) != 0) leave(125, folder, "be entered");
  ::umask(0022);
  reset_signals();
  environ = variables;
  ::execvp(arguments[0], arguments);
  leave(errno == ENOENT ? 127 : 126, arguments[0], "be run");
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> to;
  to.reserve(texts.size() + 1);
  for (std::string& text : texts)
    to.push_back(text.data());
  to.push_back(nullptr);
  return to;
}

}  // namespace

Result<StartedRank> start_rank(const ReplicaSpec& spec, int local_rank) {
  std::vector<std::string> command = spec.command;
  std::vector<std::string> environment;
  for (const auto& [name, value] : spec.environment)
    environment.push_back(std::string(name).append("=").append(value));
  environment.push_back("RANK=" + std::to_string(spec.first_rank + local_rank));
  environment.push_back("LOCAL_RANK=" + std::to_string(local_rank));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kExhausted, std::strerror(errno)};
  const std::vector<char*> arguments = pointers(command);
  std::vector<char*> variables = pointers(environment);
  const pid_t supervisor = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_rank(spec, arguments.data(), variables.data(), ends[1], supervisor);
  const int number = errno;
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return Error{Code::kExhausted, std::strerror(number)};
  }
  ::setpgid(pid, pid);  // both do, for either may be first
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return StartedRank{.pid = pid, .output = ends[0]};
}

}  // namespace regatta::node_agent
