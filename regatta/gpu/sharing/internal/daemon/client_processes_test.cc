// Processes that look ended and are not, that were started anew, and that make it dear or slow to
// find out.

#include "regatta/gpu/sharing/internal/daemon/client_processes.h"

#include <cstring>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;

// The calling thread, a process's first, ends; the process goes on with `body` in another thread
// and ends with what it returns.
[[noreturn]] void end_main_thread(const std::function<int()>& body) {
  const pid_t process = ::getpid();
  std::thread([body, process] {
    while (!os::read_process(process) || os::read_process(process)->state != 'Z')
      os::sleep_for(Seconds{0.001});
    const int status = body();
    std::fflush(nullptr);
    ::_exit(status);
  }).detach();
  // As pthread_exit(), without unwinding the test.
  ::syscall(SYS_exit, 0);
  std::abort();
}

template <typename Condition>
void wait_until(const Condition& condition) {
  const Seconds end = os::monotonic_now() + kTimeout;
  while (!condition() && os::monotonic_now() < end)
    os::sleep_for(Seconds{0.001});
}

// Does a handshake as a process that has no page, as the program after an exec() would.
ReplyStatus shake_hands(const std::string& socket, const regatta_tenant_page& tenant) {
  const auto fd = connect_to_daemon(socket, kTimeout);
  ClientRequest request{.type = RequestType::kHandshake};
  std::memcpy(request.token, tenant.token, sizeof request.token);
  ClientReply reply{.status = ReplyStatus::kFailed};
  if (!fd || !send_message(fd->get(), as_bytes(request))) return reply.status;
  const auto answer = receive_message(fd->get(), sizeof reply);
  if (answer && answer->bytes.size() == sizeof reply)
    std::memcpy(&reply, answer->bytes.data(), sizeof reply);
  return reply.status;
}

TEST(ClientProcesses, KeepWhatTheyHaveWhenTheirMainThreadEnds) {
  TestDaemon daemon;
  Shared<std::atomic<int>> step;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const pid_t other = start_process([&]() -> int {
      auto client = Client::connect(page, kTimeout);
      EXPECT_IN_TENANT(client && (*client)->reserve(0, 60 * kMiB));
      auto* const kept = client->release();
      end_main_thread([&daemon, &step, kept] {
        // It was no exec() either.
        EXPECT_IN_TENANT(shake_hands(daemon.socket(), kept->pages().tenant()) ==
                         ReplyStatus::kFailed);
        *step = 1;
        wait_until([&] { return *step == 3; });
        EXPECT_IN_TENANT(kept->reserve(0, 10 * kMiB));
        *step = 4;
        wait_until([&] { return *step == 5; });
        return 0;
      });
    });
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client);
    wait_until([&] { return *step >= 1; });
    EXPECT_IN_TENANT(!(*client)->reserve(0, 60 * kMiB));
    *step = *step == 1 ? 2 : 9;
    wait_until([&] { return *step == 4; });
    EXPECT_IN_TENANT(!(*client)->reserve(0, 60 * kMiB));
    *step = 5;
    return wait_status(other);
  });
  wait_until([&] { return *step >= 2; });
  daemon.kill();
  daemon.start();
  *step = 3;
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(ClientProcesses, OfManyMapsHoldNobodyUp) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 100 * kMiB));
    constexpr std::size_t kPages = 65'000;
    auto* const memory = static_cast<char*>(
        ::mmap(nullptr, kPages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_IN_TENANT(memory != MAP_FAILED);
    for (std::size_t i = 0; i < kPages; i += 2)
      ::mprotect(memory + i * 4096, 4096, PROT_READ | PROT_WRITE);
    const Seconds begin = os::monotonic_now();
    for (int i = 0; i < 20; ++i)
      EXPECT_IN_TENANT(shake_hands(daemon.socket(), (*client)->pages().tenant()) ==
                       ReplyStatus::kFailed);
    const Seconds took = os::monotonic_now() - begin;
    if (took.value > 0.2) std::fprintf(stderr, "20 handshakes took %.3f s\n", took.value);
    EXPECT_IN_TENANT(took.value <= 0.2);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(ClientProcesses, ThatLeaseFilesOfOurNameHoldNoNewDaemonUp) {
  TestDaemon daemon;
  Shared<std::atomic<int>> step;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    ::signal(SIGIO, SIG_IGN);
    const int made = ::memfd_create(REGATTA_CLIENT_PAGE_NAME, 0);
    EXPECT_IN_TENANT(made >= 0 && ::ftruncate(made, REGATTA_PAGE_SIZE) == 0);
    const std::string path = "/proc/self/fd/" + std::to_string(made);
    const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ::close(made);
    EXPECT_IN_TENANT(::fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0);
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 60 * kMiB));
    *step = 1;
    wait_until([&] { return *step == 2; });
    EXPECT_IN_TENANT(!(*client)->reserve(0, 60 * kMiB) && (*client)->reserve(0, 40 * kMiB));
    return 0;
  });
  wait_until([&] { return *step == 1; });
  daemon.kill();
  const Seconds begin = os::monotonic_now();
  daemon.start();
  const Seconds took = os::monotonic_now() - begin;
  EXPECT_LT(took.value, 1.0);
  *step = 2;
  EXPECT_EQ(wait_status(tenant), 0);
}

}  // namespace
}  // namespace regatta::sharing
