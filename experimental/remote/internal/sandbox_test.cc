#include "experimental/remote/internal/sandbox.h"

#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
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

TEST(Sandbox, StartsNothingAndReachesNoOtherProcess) {
  EXPECT_EQ(in_sandbox([] { return refused_as(::execl("/bin/true", "true", nullptr)); }), EPERM);
  EXPECT_EQ(in_sandbox([] { return refused_as(::fork()); }), EPERM);
  EXPECT_EQ(in_sandbox([] { return refused_as(::kill(::getppid(), 0)); }), EPERM);
  EXPECT_EQ(
      in_sandbox([] {
        return refused_as(static_cast<int>(::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr)));
      }),
      EPERM);
  EXPECT_EQ(in_sandbox([] { return refused_as(::unshare(CLONE_NEWUSER)); }), EPERM);
}

TEST(Sandbox, OpensNoConnections) {
  for (const int family : {AF_INET, AF_INET6, AF_PACKET, AF_VSOCK}) {
    EXPECT_EQ(in_sandbox([family] { return refused_as(::socket(family, SOCK_STREAM, 0)); }), EPERM)
        << family;
  }
  EXPECT_EQ(in_sandbox([] { return ::socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0 ? 0 : 1; }), 0);
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
