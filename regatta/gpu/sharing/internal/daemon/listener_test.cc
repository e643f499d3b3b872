// Attempts of a tenant to raise its limits, one entry point after the other.

#include <cstddef>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/client/tenant_page.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using testing::HasSubstr;

// A tenant of 100 MiB that has all of it tries `attempt`, and still has no byte more.
void expect_refused(const std::function<int(const TestDaemon&, Client&, int page)>& attempt) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 100 * kMiB));
    const int status = attempt(daemon, **client, page);
    if (status != 0) return status;
    const Status more = (*client)->reserve(0, 1);
    EXPECT_IN_TENANT(!more && more.error().code == Code::kExhausted);
    EXPECT_IN_TENANT((*client)->pages().tenant().quota[0] == 100 * kMiB);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

// Runs `body` in a process whose parent is gone.
int in_orphan(const std::function<int()>& body) {
  Shared<std::atomic<int>> status;
  *status = -1;
  const pid_t middle = start_process([&] {
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      while (::getppid() == parent)
        os::sleep_for(Seconds{0.001});
      *status = body();
      ::_exit(0);
    }
    return 0;
  });
  EXPECT_EQ(wait_status(middle), 0);
  const Seconds end = os::monotonic_now() + Seconds{10.0};
  while (*status == -1 && os::monotonic_now() < end)
    os::sleep_for(Seconds{0.001});
  return *status;
}

bool is_refused(const TestDaemon& daemon, const nlohmann::json& request) {
  const auto answer = daemon.query(request);
  return !answer && answer.error().code == Code::kUnsupported;
}

TEST(Listener, TheEnvironmentSaysNothing) {
  expect_refused([](const TestDaemon&, Client&, int) {
    ::clearenv();
    ::setenv("CUDA_DEVICE_MEMORY_LIMIT", "80g", 1);
    ::setenv("REGATTA_GPU_MEMORY", "80GiB", 1);
    ::setenv("REGATTA_GPU_SOCKET", "/tmp/other", 1);
    const auto again = Client::connect(kTimeout);  // finds its tenant without it
    EXPECT_IN_TENANT(!again && again.error().code == Code::kConflict);  // one account each
    EXPECT_IN_TENANT(find_tenant_page());
    return 0;
  });
}

TEST(Listener, TheTenantsPageIsNotWritten) {
  expect_refused([](const TestDaemon&, Client&, int page) {
    const std::uint64_t more = 1ULL << 40;
    const auto at = offsetof(regatta_tenant_page, quota);
    EXPECT_IN_TENANT(::pwrite(page, &more, sizeof more, at) < 0);
    EXPECT_IN_TENANT(::ftruncate(page, 0) < 0);
    for (const int flags : {O_RDWR, O_RDWR | O_TRUNC}) {
      const std::string path = "/proc/self/fd/" + std::to_string(page);
      const os::UniqueFd again(::open(path.c_str(), flags));
      if (!again) continue;
      EXPECT_IN_TENANT(::pwrite(again.get(), &more, sizeof more, at) < 0);
      EXPECT_IN_TENANT(::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
                              again.get(), 0) == MAP_FAILED);
    }
    void* shown = ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ, MAP_SHARED, page, 0);
    EXPECT_IN_TENANT(shown != MAP_FAILED);
    EXPECT_IN_TENANT(::mprotect(shown, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE) < 0);
    return 0;
  });
}

TEST(Listener, TheSocketTakesNoOrdersFromATenantAndItsChildren) {
  expect_refused([](const TestDaemon& daemon, Client&, int) {
    const auto try_all = [&] {
      EXPECT_IN_TENANT(
          is_refused(daemon, {{"request", "set"}, {"name", "a"}, {"memory", {{"0", 1ULL << 40}}}}));
      EXPECT_IN_TENANT(is_refused(daemon, {{"request", "policy"}, {"policy", "equal"}}));
      EXPECT_IN_TENANT(is_refused(
          daemon,
          {{"request", "join"}, {"name", "b"}, {"memory", {{"0", 1 << 30}}}, {"compute_ppm", 1}}));
      EXPECT_IN_TENANT(is_refused(daemon, {{"request", "ps"}}));
      return 0;
    };
    EXPECT_IN_TENANT(try_all() == 0);
    EXPECT_IN_TENANT(
        wait_status(start_process([&] { return wait_status(start_process(try_all)); })) == 0);
    return 0;
  });
}

TEST(Listener, AnotherUserGivesNoOrders) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const TestDaemon daemon;
  // The folder is this test's alone; a real socket stands where all can reach it.
  const std::string folder = daemon.socket().substr(0, daemon.socket().rfind('/'));
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  const pid_t other = start_process([&] {
    EXPECT_IN_TENANT(::setgid(65534) == 0 && ::setuid(65534) == 0);
    EXPECT_IN_TENANT(is_refused(daemon, {{"request", "policy"}, {"policy", "equal"}}));
    return 0;
  });
  EXPECT_EQ(wait_status(other), 0);
}

TEST(Listener, AnOrphanThatKeepsNoDescriptorBelongsToNoTenant) {
  expect_refused([](const TestDaemon& daemon, Client& client, int page) {
    return in_orphan([&] {
      ::close(page);
      EXPECT_IN_TENANT(!find_tenant_page());
      // It may know the address and guess a token.
      const auto socket = connect_to_daemon(daemon.socket(), kTimeout);
      EXPECT_IN_TENANT(socket);
      ClientRequest request{.type = RequestType::kHandshake};
      std::memset(request.token, 7, sizeof request.token);
      EXPECT_IN_TENANT(send_message(socket->get(), as_bytes(request)));
      const auto answer = receive_message(socket->get(), sizeof(ClientReply));
      EXPECT_IN_TENANT(answer && answer->bytes.size() == sizeof(ClientReply));
      ClientReply reply;
      std::memcpy(&reply, answer->bytes.data(), sizeof reply);
      EXPECT_IN_TENANT(reply.status == ReplyStatus::kFailed && !answer->fds[0]);
      EXPECT_IN_TENANT(client.reserve(0, 1).error().code == Code::kConflict);
      return 0;
    });
  });
}

TEST(Listener, AForkedChildCountsForItsTenantToo) {
  expect_refused([](const TestDaemon&, Client& client, int page) {
    return wait_status(start_process([&] {
      EXPECT_IN_TENANT(client.reserve(0, 0).error().code == Code::kConflict);
      const auto own = Client::connect(page, kTimeout);
      EXPECT_IN_TENANT(own && (*own)->reserve(0, 1).error().code == Code::kExhausted);
      return 0;
    }));
  });
}

TEST(Listener, ReExecutionKeepsTheLimits) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 60 * kMiB));
    EXPECT_IN_TENANT(::fcntl(page, F_SETFD, 0) == 0);
    const auto folder = os::executable_folder();
    EXPECT_IN_TENANT(folder);
    const std::string program = *folder + "/regatta-test-tenant";
    // As env -i does; the program reserves 1 MiB at a time until it is refused, and says how often.
    const char* argv[] = {program.c_str(), nullptr};
    const char* environment[] = {nullptr};
    ::execve(program.c_str(), const_cast<char**>(argv), const_cast<char**>(environment));
    return 1;
  });
  EXPECT_EQ(wait_status(tenant), 100);  // what the program before had went with it
}

TEST(Listener, NonsenseOnTheSocketEndsOnlyItsConnection) {
  expect_refused([](const TestDaemon& daemon, Client&, int) {
    std::string text = "x";
    for (int size = 1; size < 10'000; size += 37) {
      const auto socket = connect_to_daemon(daemon.socket(), kTimeout);
      EXPECT_IN_TENANT(socket);
      text.assign(static_cast<std::size_t>(size), static_cast<char>(size));
      if (size % 2 == 0) text[0] = '{';
      static_cast<void>(send_message(socket->get(), text, {0, 1}).has_value());
      static_cast<void>(receive_message(socket->get(), sizeof(ClientReply)).has_value());
    }
    // A lease before any hello, and of devices that are not there.
    const auto socket = connect_to_daemon(daemon.socket(), kTimeout);
    const ClientRequest request{.type = RequestType::kLease, .device = ~0U, .least = ~0ULL};
    EXPECT_IN_TENANT(send_message(socket->get(), as_bytes(request)));
    EXPECT_IN_TENANT(receive_message(socket->get(), sizeof(ClientReply)));
    return 0;
  });
}

// A process of a tenant with over-commit asks for more bytes than a word holds beside what it has.
TEST(Listener, RequestsThatWrapAroundAreRefused) {
  DaemonOptions options;
  options.host_memory = 4_GiB;
  const TestDaemon daemon({1_GiB}, options);
  const pid_t tenant = daemon.start_tenant(
      "a", 256_MiB,
      [&](int page) {
        const auto client = Client::connect(page, kTimeout);
        EXPECT_IN_TENANT(client && (*client)->reserve(0, kMiB));
        for (const std::uint64_t bytes : {~0ULL, ~0ULL - kMiB, 1ULL << 63}) {
          const Seconds begin = os::monotonic_now();
          EXPECT_IN_TENANT(!(*client)->lease_swappable(0, bytes));
          EXPECT_IN_TENANT((*client)->reserve(0, bytes).error().code == Code::kExhausted);
          EXPECT_IN_TENANT((os::monotonic_now() - begin).value < 1.0);
        }
        EXPECT_IN_TENANT((*client)->reserve(0, kMiB));
        return 0;
      },
      {{"overcommit", true}});
  EXPECT_EQ(wait_status(tenant), 0);
}

// As many connections as a daemon had places, of many processes of another user.
int connect_without_a_word(const std::string& socket, std::atomic<int>& ready) {
  constexpr int kProcesses = 100;
  constexpr int kConnections = 125;
  for (int i = 0; i < kProcesses; ++i) {
    start_process([&] {
      std::vector<os::UniqueFd> kept;
      for (int j = 0; j < kConnections; ++j) {
        auto one = connect_to_daemon(socket, kTimeout);
        if (one) kept.push_back(std::move(*one));
      }
      ++ready;
      ::pause();
      return 0;
    });
  }
  const Seconds end = os::monotonic_now() + kTimeout;
  while (ready < kProcesses && os::monotonic_now() < end)
    os::sleep_for(Seconds{0.001});
  return ready == kProcesses ? 0 : 1;
}

TEST(Listener, ConnectionsWithoutAWordShutNobodyOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const TestDaemon daemon;
  const std::string folder = daemon.socket().substr(0, daemon.socket().rfind('/'));
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  Shared<std::atomic<int>> ready;
  const pid_t attack = start_process([&] {
    EXPECT_IN_TENANT(::setgid(65534) == 0 && ::setuid(65534) == 0);
    const int status = connect_without_a_word(daemon.socket(), *ready);
    if (status == 0) *ready = -1;
    ::pause();
    return status;
  });
  for (int i = 0; i < 10'000 && *ready != -1; ++i)
    os::sleep_for(Seconds{0.001});
  ASSERT_EQ(*ready, -1);
  const Seconds begin = os::monotonic_now();
  EXPECT_TRUE(daemon.query({{"request", "ps"}}));
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    EXPECT_IN_TENANT(::setgid(65533) == 0 && ::setuid(65533) == 0);
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, kMiB));
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
  EXPECT_LT((os::monotonic_now() - begin).value, 0.5);
  ::kill(attack, SIGKILL);
  EXPECT_EQ(wait_status(attack), 128 + SIGKILL);
}

TEST(Listener, AProcessHasFewConnectionsWithoutAWordAndNotForLong) {
  const TestDaemon daemon;
  std::vector<os::UniqueFd> kept;
  for (int i = 0; i < 9; ++i)
    kept.push_back(connect_to_daemon(daemon.socket(), Seconds{4.0}).value());
  const auto refused = receive_message(kept.back().get(), sizeof(ClientReply));
  ASSERT_TRUE(refused && refused->bytes.size() == sizeof(ClientReply));
  ClientReply reply;
  std::memcpy(&reply, refused->bytes.data(), sizeof reply);
  EXPECT_EQ(reply.status, ReplyStatus::kRetryLater);
  EXPECT_NE(to_error(reply).message.find("too many connections"), std::string::npos);
  const auto closed = receive_message(kept.front().get(), sizeof(ClientReply));
  EXPECT_TRUE(closed && closed->bytes.empty());  // and not that nothing came in 4 s
}

// Reads the page of a process by /proc, as each process of its user can.
os::UniqueFd open_page_of(pid_t pid, int page) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(page);
  return os::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The Code of the refusal; -1 when there was none.
int refusal_of(int page) {
  const auto client = Client::connect(page, kTimeout);
  return client ? -1 : static_cast<int>(client.error().code);
}

TEST(Listener, APageReadFromAnotherTenantsProcessIsOfNoUse) {
  TestDaemon daemon;
  Shared<std::atomic<int>> page_of_a;
  const pid_t a = daemon.start_tenant("a", 300_MiB, [&](int page) {
    *page_of_a = page;
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client);
    // Its own orphans inherit the descriptor.
    const int orphan = in_orphan([&] {
      const auto own = Client::connect(page, kTimeout);
      return own && (*own)->reserve(0, kMiB) ? 0 : 1;
    });
    ::pause();
    return orphan;
  });
  for (int i = 0; i < 10'000 && *page_of_a == 0; ++i)
    os::sleep_for(Seconds{0.001});
  const auto attempt = [&] {
    const os::UniqueFd stolen = open_page_of(a, *page_of_a);
    EXPECT_IN_TENANT(stolen);
    EXPECT_IN_TENANT(refusal_of(stolen.get()) == static_cast<int>(Code::kInvalidInput));
    EXPECT_IN_TENANT(wait_status(start_process([&] {
                       return refusal_of(stolen.get()) == static_cast<int>(Code::kInvalidInput) ? 0
                                                                                                : 1;
                     })) == 0);
    return in_orphan(
        [&] { return refusal_of(stolen.get()) == static_cast<int>(Code::kUnsupported) ? 0 : 1; });
  };
  for (const bool is_restarted : {false, true}) {
    if (is_restarted) {
      daemon.kill();
      daemon.start();
    }
    const pid_t b = daemon.start_tenant("b" + std::to_string(is_restarted), 100_MiB,
                                        [&](int) { return attempt(); });
    EXPECT_EQ(wait_status(b), 0);
  }
  ::kill(a, SIGKILL);
  EXPECT_EQ(wait_status(a), 128 + SIGKILL);
}

TEST(Listener, AnOrphanProvesItsTenantByWhatItInherited) {
  TestDaemon daemon;
  Shared<std::atomic<int>> step;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client);
    const auto join = [&] { return in_orphan([&] { return refusal_of(page) == -1 ? 0 : 1; }); };
    EXPECT_IN_TENANT(join() == 0);
    // One whose parent has opened the page anew, as those do whose descriptors were closed.
    EXPECT_IN_TENANT(wait_status(start_process([&] {
                       const os::UniqueFd again = open_page_of(::getpid(), page);
                       ::close(page);
                       const auto own = Client::connect(again.get(), kTimeout);
                       EXPECT_IN_TENANT(own);
                       return in_orphan([&] { return refusal_of(again.get()) == -1 ? 0 : 1; });
                     })) == 0);
    *step = 1;
    while (*step != 2)
      os::sleep_for(Seconds{0.001});
    EXPECT_IN_TENANT(join() == 0);  // with the page of the daemon before
    return 0;
  });
  for (int i = 0; i < 10'000 && *step != 1; ++i)
    os::sleep_for(Seconds{0.001});
  daemon.kill();
  daemon.start();
  *step = 2;
  EXPECT_EQ(wait_status(tenant), 0);
}

// The words of a daemon that does not start there.
std::string refusal_of_daemon(const std::string& state, const std::string& socket) {
  std::atomic<bool> stop = true;
  DaemonOptions options;
  options.state = state;
  options.socket = socket;
  const Status status = serve(options, stop);
  return status ? "" : status.error().message;
}

TEST(Listener, FoldersThatOthersOwnOrWriteToAreRefused) {
  const auto folder = os::TempFolder::create("vgpu").value();
  const std::string state = folder.path() + "/state";
  const std::string socket = folder.path() + "/socket";
  EXPECT_EQ(refusal_of_daemon(state, socket), "");
  ASSERT_EQ(::chmod(state.c_str(), 0770), 0);
  EXPECT_THAT(refusal_of_daemon(state, socket), HasSubstr("chmod go-w"));
  ASSERT_EQ(::chmod(state.c_str(), 0700), 0);
  ASSERT_EQ(::chmod((state + "/state").c_str(), 0666), 0);
  EXPECT_THAT(refusal_of_daemon(state, socket), HasSubstr("state/state: others may write"));
  ASSERT_EQ(::chmod((state + "/state").c_str(), 0600), 0);
  ASSERT_EQ(::link((state + "/state").c_str(), (folder.path() + "/second").c_str()), 0);
  EXPECT_THAT(refusal_of_daemon(state, socket), HasSubstr("one name"));
  ASSERT_EQ(::unlink((folder.path() + "/second").c_str()), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_THAT(refusal_of_daemon(state, socket), HasSubstr("could replace the socket"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);  // as /tmp
  EXPECT_EQ(refusal_of_daemon(state, socket), "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give away a folder";
  ASSERT_EQ(::chown(state.c_str(), 65534, 65534), 0);
  EXPECT_THAT(refusal_of_daemon(state, socket), HasSubstr("belongs to user 65534"));
  ASSERT_EQ(::chown(state.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(folder.path().c_str(), 65534, 65534), 0);
  EXPECT_THAT(refusal_of_daemon(state, socket), HasSubstr("could replace the socket"));
  ASSERT_EQ(::chown(folder.path().c_str(), 0, 0), 0);
}

TEST(Listener, TheStateIsOfItsOwnerAlone) {
  const TestDaemon daemon;
  struct stat status {};
  ASSERT_EQ(::stat(daemon.state().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat((daemon.state() + "/state").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace regatta::sharing
