#include "experimental/remote/internal/sandbox.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include <asm/sockios.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::remote {
namespace {

// The exit status of a child that does this in the sandbox; 99: it could not enter.
int in_sandbox(const std::function<int()>& body, const std::string& user = "nobody") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(enter_sandbox(user) ? body() : 99);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int refused_as(int result) {
  return result < 0 ? errno : 0;
}

TEST(Sandbox, IsNotRoot) {
  EXPECT_NE(in_sandbox([] { return ::geteuid() == 0 || ::getegid() == 0 ? 1 : 0; }), 1);
  EXPECT_EQ(in_sandbox([] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }), 1);
  if (::geteuid() == 0) {
    EXPECT_EQ(in_sandbox([] { return refused_as(::setuid(0)); }), EPERM);
    EXPECT_EQ(in_sandbox([] { return 0; }, "root"), 99);
    EXPECT_EQ(in_sandbox([] { return 0; }, "no such user"), 99);
  }
}

// Another process of the user of host processes, which that user may signal and trace.
class Sibling {
 public:
  Sibling() {
    int ready[2] = {};
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const passwd* const nobody = ::getpwnam("nobody");
      const bool is_ready =
          ::geteuid() != 0 || (::setgroups(0, nullptr) == 0 &&
                               ::setresgid(nobody->pw_gid, nobody->pw_gid, nobody->pw_gid) == 0 &&
                               ::setresuid(nobody->pw_uid, nobody->pw_uid, nobody->pw_uid) == 0);
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      if (is_ready && ::write(ready[1], "r", 1) == 1) ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  Sibling(const Sibling&) = delete;
  Sibling& operator=(const Sibling&) = delete;
  ~Sibling() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

struct Attempt {
  const char* name;
  std::function<long(pid_t)> make;
};

void expect_refused(const std::vector<Attempt>& attempts, pid_t pid) {
  for (const Attempt& attempt : attempts) {
    EXPECT_EQ(in_sandbox([&] { return refused_as(static_cast<int>(attempt.make(pid))); }), EPERM)
        << attempt.name;
  }
}

TEST(Sandbox, StartsNothingAndReachesNoOtherProcess) {
  EXPECT_EQ(in_sandbox([] { return refused_as(::execl("/bin/true", "true", nullptr)); }), EPERM);
  EXPECT_EQ(in_sandbox([] { return refused_as(::fork()); }), EPERM);
  EXPECT_EQ(in_sandbox([] { return refused_as(::unshare(CLONE_NEWUSER)); }), EPERM);
  const Sibling sibling;
  expect_refused(
      {{"kill", [](pid_t pid) { return ::kill(pid, 0); }},
       {"kill the group", [](pid_t) { return ::kill(0, 0); }},
       {"ptrace", [](pid_t pid) { return ::ptrace(PTRACE_ATTACH, pid, nullptr, nullptr); }}},
      sibling.pid());
}

// The kernel sends signals for these.
TEST(Sandbox, HasNoSignalsSentToOtherProcesses) {
  const Sibling sibling;
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  expect_refused(
      {{"prlimit", [&](pid_t pid) { return ::prlimit(pid, RLIMIT_CPU, &none, nullptr); }},
       {"F_SETOWN", [](pid_t pid) { return ::fcntl(STDIN_FILENO, F_SETOWN, pid); }},
       {"F_SETOWN_EX",
        [](pid_t pid) {
          const f_owner_ex owner{.type = F_OWNER_PID, .pid = pid};
          return ::fcntl(STDIN_FILENO, F_SETOWN_EX, &owner);
        }},
       {"F_SETSIG", [](pid_t) { return ::fcntl(STDIN_FILENO, F_SETSIG, SIGKILL); }},
       {"FIOSETOWN",
        [](pid_t pid) { return ::ioctl(::socket(AF_UNIX, SOCK_STREAM, 0), FIOSETOWN, &pid); }},
       {"SIOCSPGRP",
        [](pid_t pid) { return ::ioctl(::socket(AF_UNIX, SOCK_STREAM, 0), SIOCSPGRP, &pid); }}},
      sibling.pid());
}

TEST(Sandbox, ChangesNoTimeAndNoPagesOfOtherProcesses) {
  const Sibling sibling;
  cpu_set_t any;
  CPU_ZERO(&any);
  CPU_SET(0, &any);
  const sched_param ordinary{};
  const unsigned long node = 1;
  expect_refused(
      {{"sched_setaffinity", [&](pid_t pid) { return ::sched_setaffinity(pid, sizeof any, &any); }},
       {"sched_setparam", [&](pid_t pid) { return ::sched_setparam(pid, &ordinary); }},
       {"sched_setscheduler",
        [&](pid_t pid) { return ::sched_setscheduler(pid, SCHED_IDLE, &ordinary); }},
       {"sched_setattr", [](pid_t pid) { return ::syscall(SYS_sched_setattr, pid, nullptr, 0); }},
       {"setpriority",
        [](pid_t pid) { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 19); }},
       {"ioprio_set", [](pid_t pid) { return ::syscall(SYS_ioprio_set, 1, pid, 3 << 13); }},
       {"migrate_pages",
        [&](pid_t pid) { return ::syscall(SYS_migrate_pages, pid, 64, &node, &node); }},
       {"move_pages", [](pid_t pid) { return ::syscall(SYS_move_pages, pid, 0, 0, 0, 0, 0); }}},
      sibling.pid());
}

TEST(Sandbox, KeepsTheLimitsAndTheProcessorsOfItsOwn) {
  EXPECT_EQ(in_sandbox([] {
              rlimit limit{};
              cpu_set_t any;
              CPU_ZERO(&any);
              return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                             ::prlimit(::getpid(), RLIMIT_NOFILE, &limit, nullptr) == 0 &&
                             ::sched_getaffinity(0, sizeof any, &any) == 0 &&
                             ::sched_setaffinity(0, sizeof any, &any) == 0 &&
                             ::fcntl(STDIN_FILENO, F_GETFL) >= 0
                         ? 0
                         : 1;
            }),
            0);
}

TEST(Sandbox, OpensNoConnections) {
  for (const int family : {AF_INET, AF_INET6, AF_PACKET, AF_VSOCK}) {
    EXPECT_EQ(in_sandbox([family] { return refused_as(::socket(family, SOCK_STREAM, 0)); }), EPERM)
        << family;
  }
  EXPECT_EQ(in_sandbox([] { return ::socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0 ? 0 : 1; }), 0);
}

// Sockets that it was given, too.
TEST(Sandbox, WaitsForNoConnections) {
  for (const int family : {AF_INET, AF_UNIX}) {
    const int given = ::socket(family, SOCK_STREAM, 0);
    if (family == AF_UNIX) {
      const sockaddr unnamed{.sa_family = AF_UNIX, .sa_data = {}};
      ASSERT_EQ(::bind(given, &unnamed, sizeof unnamed.sa_family), 0);
    }
    EXPECT_EQ(in_sandbox([given] { return refused_as(::listen(given, 1)); }), EPERM) << family;
    ::close(given);
  }
}

TEST(Sandbox, HoldsForThreadsFromBefore) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> is_inside = false;
    int result = 0;
    std::thread earlier([&] {
      while (!is_inside)
        std::this_thread::yield();
      result = refused_as(::socket(AF_INET, SOCK_STREAM, 0));
    });
    const bool has_entered = enter_sandbox("nobody").has_value();
    is_inside = true;
    earlier.join();
    ::_exit(has_entered ? result : 99);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
}

TEST(Sandbox, HasThreadsAndEndsByItsOwnSignals) {
  EXPECT_EQ(in_sandbox([] {
              int done = 0;
              std::thread([&] { done = 7; }).join();
              return done;
            }),
            7);
  EXPECT_EQ(in_sandbox([]() -> int { ::abort(); }), 128 + SIGABRT);
}

}  // namespace
}  // namespace regatta::remote
