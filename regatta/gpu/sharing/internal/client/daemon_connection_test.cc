// When a daemon is known to be dead, and what a client's descriptors survive.
#include "regatta/gpu/sharing/internal/client/daemon_connection.h"

#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"

namespace regatta::sharing {
namespace {

// The answer of a child that does `prepare` first: 1: dead, 0: not known to be, 99: it cannot
// prepare.
int answer_of_child(const std::string& path, const std::function<bool()>& prepare) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!prepare()) ::_exit(99);
    ::_exit(is_daemon_dead(path) ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool forbid_sockets() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{.len = std::size(code), .filter = code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class DeadDaemon : public testing::Test {
 protected:
  const os::TempFolder folder_ = os::TempFolder::create("dead").value();
  const std::string path_ = folder_.path() + "/socket";
};

TEST_F(DeadDaemon, IsKnownByItsSocketAlone) {
  EXPECT_TRUE(is_daemon_dead(path_));
  EXPECT_TRUE(is_daemon_dead(folder_.path() + "/none/socket"));
  {
    const auto listener = os::listen_unix(path_, SOCK_SEQPACKET);
    ASSERT_TRUE(listener);
    EXPECT_FALSE(is_daemon_dead(path_));
  }
  EXPECT_TRUE(is_daemon_dead(path_));  // the file is there, and nobody listens
}

TEST_F(DeadDaemon, IsNotADaemonThatHangs) {
  const auto listener = os::listen_unix(path_, SOCK_SEQPACKET);
  ASSERT_TRUE(listener);
  std::vector<os::UniqueFd> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto address = os::unix_address(path_);
    if (::connect(waiting.back().get(), address->get(), address->size()) != 0) break;
  }
  EXPECT_FALSE(is_daemon_dead(path_));
}

TEST_F(DeadDaemon, IsNotAProcessThatCannotAsk) {
  // With nobody there, too: the process does not know it.
  EXPECT_EQ(answer_of_child(path_, [] { return true; }), 1);
  EXPECT_EQ(answer_of_child(path_,
                            [] {
                              const rlimit none{0, 0};
                              return ::setrlimit(RLIMIT_NOFILE, &none) == 0;
                            }),
            0);
  EXPECT_EQ(answer_of_child(path_, forbid_sockets), 0);
  if (::geteuid() == 0) {  // the folder is closed to others
    EXPECT_EQ(answer_of_child(path_, [] { return ::setuid(65534) == 0; }), 0);
  }
}

TEST(KnownFd, IsNeitherUsedNorClosedWhenTheProgramHasTheNumber) {
  os::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = file.get();
  KnownFd known(std::move(file));
  EXPECT_EQ(known.get(), number);
  const os::UniqueFd other(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(other.get(), number), number);
  EXPECT_EQ(known.get(), -1);
  known.reset();
  EXPECT_EQ(::fcntl(number, F_GETFD), 0);
  ::close(number);
}

TEST(SpareFds, AreThereForAProcessWithoutDescriptors) {
  const os::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpareFds spare;
  spare.fill(file.get());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<os::UniqueFd> all;
  do {
    all.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (all.back());
  spare.release();
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(socket);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace regatta::sharing
