#include "regatta/gpu/sharing/daemon.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/file.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using nlohmann::json;
using testing::HasSubstr;

TEST(Daemon, GrantsATenantItsMemoryToTheByteAndTakesItBack) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client);
    EXPECT_IN_TENANT((*client)->pages().tenant().quota[0] == 100 * kMiB);
    EXPECT_IN_TENANT((*client)->reserve(0, 99 * kMiB));
    EXPECT_IN_TENANT(!(*client)->reserve(0, kMiB + 1));
    EXPECT_IN_TENANT((*client)->reserve(0, kMiB));
    const Status refused = (*client)->reserve(0, 1);
    EXPECT_IN_TENANT(!refused && refused.error().code == Code::kExhausted);
    (*client)->release(0, 7);
    EXPECT_IN_TENANT((*client)->reserve(0, 7));
    EXPECT_IN_TENANT(!(*client)->reserve(1, 1));
    EXPECT_IN_TENANT(daemon.query({{"request", "ps"}}).error().code == Code::kUnsupported);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
  // The tenant went with its last process.
  for (int i = 0; i < 1000 && daemon.memory("used_bytes") >= 0; ++i)
    os::sleep_for(Seconds{0.001});
  EXPECT_EQ(daemon.memory("used_bytes"), -1);
}

TEST(Daemon, DoesNotStartWithTooFewDescriptorsToAnswer) {
  const os::TempFolder folder = os::TempFolder::create("daemon").value();
  const pid_t daemon = start_process([&] {
    const rlimit few{9, 9};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
    const std::atomic<bool> stop = true;
    const Status status =
        serve({.state = folder.path() + "/state", .socket = folder.path() + "/socket"}, stop);
    return !status && status.error().code == Code::kExhausted ? 0 : 2;
  });
  EXPECT_EQ(wait_status(daemon), 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/state"));
}

// The daemon would call back the bytes that the client has, and grant what it lacked beside them,
// again and again.
TEST(Daemon, RefusesWhatDoesNotFitBesideSwappableMemoryThoughTheClientHasSpareBytes) {
  const TestDaemon daemon({20_MiB}, {.host_memory = 1_GiB});
  const pid_t tenant =
      daemon.start_tenant("a", 20_MiB,
                          [](int page) {
                            const auto client = Client::connect(page, kTimeout);
                            EXPECT_IN_TENANT(client);
                            EXPECT_IN_TENANT((*client)->reserve(0, 4 * kMiB));
                            EXPECT_IN_TENANT((*client)->lease_swappable(0, 14 * kMiB));
                            (*client)->release(0, 4 * kMiB);
                            ::alarm(10);
                            const Status refused = (*client)->reserve(0, 7 * kMiB);
                            EXPECT_IN_TENANT(!refused && refused.error().code == Code::kExhausted);
                            EXPECT_IN_TENANT((*client)->reserve(0, 6 * kMiB));
                            return 0;
                          },
                          {{"overcommit", true}});
  EXPECT_EQ(wait_status(tenant), 0);
}

// The device is full by spare bytes: of the tenant's other process, and of one with over-commit.
TEST(Daemon, GrantsATenantItsMemoryOnADeviceThatIsFullBySpareBytes) {
  const TestDaemon daemon({40_MiB}, {.host_memory = 1_GiB});
  const Shared<std::atomic<int>> step;
  const auto wait_for = [&](int number) {
    for (int i = 0; i < 10'000 && *step < number; ++i)
      os::sleep_for(Seconds{0.001});
  };
  // Takes so much and returns it.
  const auto fill = [&](Client& client, std::uint64_t bytes) {
    const bool is_full = client.reserve(0, bytes).has_value();
    client.release(0, bytes);
    ++*step;
    wait_for(3);
    return is_full;
  };
  const pid_t other = daemon.start_tenant("other", 20_MiB,
                                          [&](int page) {
                                            const auto client = Client::connect(page, kTimeout);
                                            EXPECT_IN_TENANT(client && fill(**client, 20 * kMiB));
                                            return 0;
                                          },
                                          {{"overcommit", true}});
  wait_for(1);
  const pid_t tenant = daemon.start_tenant("a", 20_MiB, [&](int page) {
    const pid_t child = start_process([&] {
      const auto client = Client::connect(page, kTimeout);
      EXPECT_IN_TENANT(client && fill(**client, 20 * kMiB));
      return 0;
    });
    wait_for(2);
    const auto client = Client::connect(page, kTimeout);
    ::alarm(10);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 12 * kMiB));
    const Status refused = (*client)->reserve(0, 60 * kMiB);
    EXPECT_IN_TENANT(!refused && refused.error().code == Code::kExhausted);
    ++*step;
    return wait_status(child);
  });
  EXPECT_EQ(wait_status(tenant), 0);
  *step = 3;
  EXPECT_EQ(wait_status(other), 0);
}

TEST(Daemon, ThatHangsHoldsNobodyUpWhoAsksWithinATimeAndItsLateAnswerIsNoOthers) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client);
    const auto try_within = [&](std::uint64_t bytes) {
      return (*client)->try_reserve_within(Seconds{0.02}, 0, bytes);
    };
    EXPECT_IN_TENANT(try_within(10 * kMiB));
    daemon.stop();
    const Seconds begin = os::monotonic_now();
    for (int i = 0; i < 3; ++i) {  // the first one on the connection that there is
      const Status none = try_within(60 * kMiB);
      EXPECT_IN_TENANT(!none && none.error().code == Code::kTimeout);
    }
    // It waits with the client locked.
    std::thread other([&] { static_cast<void>((*client)->open_session(0, REGATTA_DECODE)); });
    os::sleep_for(Seconds{0.1});
    const Status busy = try_within(60 * kMiB);
    EXPECT_IN_TENANT(!busy && busy.error().code == Code::kConflict);
    EXPECT_IN_TENANT((os::monotonic_now() - begin).value < 1.0);
    daemon.go_on();
    other.join();
    const Status refused = (*client)->reserve(0, 91 * kMiB);
    EXPECT_IN_TENANT(!refused && refused.error().code == Code::kExhausted);
    EXPECT_IN_TENANT((*client)->reserve(0, 90 * kMiB));
    // Calls that may wait use the same connection.
    (*client)->release(0, 90 * kMiB);
    EXPECT_IN_TENANT(try_within(90 * kMiB));
    daemon.stop();
    std::thread waiter([&] {
      os::sleep_for(Seconds{0.3});
      daemon.go_on();
    });
    const Seconds asked = os::monotonic_now();
    const Status full = (*client)->reserve(0, kMiB);
    waiter.join();
    EXPECT_IN_TENANT(!full && full.error().code == Code::kExhausted);
    EXPECT_IN_TENANT((os::monotonic_now() - asked).value > 0.2);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Daemon, CallsBackWhatAnIdleClientDoesNotUse) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Shared<std::atomic<int>> step;
    const pid_t idle = start_process([&] {
      const auto client = Client::connect(page, kTimeout);
      EXPECT_IN_TENANT(client && (*client)->reserve(0, 500 * kMiB));
      (*client)->release(0, 499 * kMiB);  // stays in its lease counter
      *step = 1;
      while (true)
        ::pause();
    });
    while (*step == 0)
      os::sleep_for(Seconds{0.001});
    ::kill(idle, SIGSTOP);  // it need not do anything for that
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client);
    EXPECT_IN_TENANT(!(*client)->reserve(0, 1023 * kMiB + 1));
    EXPECT_IN_TENANT((*client)->reserve(0, 1023 * kMiB));
    EXPECT_IN_TENANT(!(*client)->reserve(0, 1));
    ::kill(idle, SIGKILL);
    EXPECT_IN_TENANT(os::wait_for(idle));
    EXPECT_IN_TENANT((*client)->reserve(0, kMiB));  // at once: its end is seen before a refusal
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Daemon, NeverGrantsSixtyFourRacingProcessesAByteTooMuch) {
  constexpr std::uint64_t kQuota = 300 * kMiB + 12345;
  struct Race {
    std::atomic<std::uint64_t> used;
    std::atomic<std::uint64_t> most;
    std::atomic<std::uint64_t> refused;
  };
  Shared<Race> race;
  const TestDaemon daemon;
  const pid_t tenant =
      daemon.start_tenant("a", Bytes{static_cast<long long>(kQuota)}, [&](int page) {
        std::vector<pid_t> racers;
        for (unsigned seed = 0; seed < 64; ++seed) {
          racers.push_back(start_process([&, seed] {
            const auto client = Client::connect(page, kTimeout);
            EXPECT_IN_TENANT(client);
            std::mt19937 random(seed);
            std::vector<std::uint64_t> held;
            for (int round = 0; round < 400; ++round) {
              const std::uint64_t bytes = 1 + random() % (8 * kMiB);
              if (random() % 3 == 0 && !held.empty()) {
                race->used -= held.back();
                (*client)->release(0, held.back());
                held.pop_back();
                continue;
              }
              const Status status = (*client)->reserve(0, bytes);
              EXPECT_IN_TENANT(status || status.error().code == Code::kExhausted);
              if (!status) ++race->refused;
              if (!status) continue;
              held.push_back(bytes);
              const std::uint64_t now = race->used += bytes;
              std::uint64_t most = race->most;
              while (most < now && !race->most.compare_exchange_weak(most, now)) {
              }
            }
            for (const std::uint64_t bytes : held) {
              race->used -= bytes;
              (*client)->release(0, bytes);
            }
            return 0;
          }));
        }
        for (const pid_t racer : racers)
          EXPECT_IN_TENANT(wait_status(racer) == 0);
        // Nothing was lost: all of it is there again.
        const auto client = Client::connect(page, kTimeout);
        EXPECT_IN_TENANT(client && (*client)->reserve(0, kQuota) && !(*client)->reserve(0, 1));
        return 0;
      });
  EXPECT_EQ(wait_status(tenant), 0);
  EXPECT_LE(race->most, kQuota);
  EXPECT_GT(race->refused, 100U);  // else nobody raced
  EXPECT_GT(race->most, kQuota - 16 * kMiB);
}

TEST(Daemon, IsToldLimitsThatFitAndRefusesOthersInOneSentence) {
  const TestDaemon daemon({8_GiB});
  const auto asked = [&](json request) {
    const auto answer = daemon.query(request);
    return answer ? std::string("done") : answer.error().message;
  };
  const pid_t tenant = daemon.start_tenant("a", 5_GiB, [](int) {
    ::pause();
    return 0;
  });
  while (daemon.memory("limit_bytes") < 0)
    os::sleep_for(Seconds{0.001});
  const json memory = {{"0", 4ULL << 30}};
  EXPECT_THAT(asked({{"request", "join"}, {"name", "b"}, {"memory", memory}, {"compute_ppm", 1}}),
              HasSubstr("3 GiB left"));
  EXPECT_THAT(asked({{"request", "join"}, {"name", "a"}, {"memory", memory}}),
              HasSubstr("gpu set"));
  EXPECT_THAT(asked({{"request", "join"}, {"name", "../b"}, {"memory", memory}}),
              HasSubstr("letters"));
  // A process that joins gets the tenant's limits; a request for others is an error that names
  // them.
  const auto joined = [&](const char* key, const json& value) {
    return asked({{"request", "join"}, {"name", "a"}, {key, value}});
  };
  EXPECT_EQ(joined("compute_ppm", 500'000),
            "--compute 50: tenant a is there and has 10 %; leave it out to join, or change it with "
            "regatta gpu set a --compute 50");
  EXPECT_THAT(joined("weight", 7), HasSubstr("has 1; leave it out"));
  EXPECT_THAT(joined("priority", "high"), HasSubstr("gpu set a --priority high"));
  EXPECT_THAT(joined("on_fault", "open"), HasSubstr("has closed"));
  EXPECT_THAT(joined("overcommit", true),
              HasSubstr("--overcommit: tenant a is there and has none"));
  EXPECT_THAT(joined("lease_s", 60), HasSubstr("--lease 60s: tenant a is there and has none"));
  EXPECT_THAT(asked({{"request", "set"}, {"name", "b"}}), HasSubstr("there is a"));
  EXPECT_THAT(asked({{"request", "set"}, {"name", "a"}, {"memory", {{"3", 1}}}}),
              HasSubstr("no GPU 3"));
  EXPECT_THAT(asked({{"request", "set"}, {"name", "a"}, {"memory", {{"0", -1}}}}),
              HasSubstr("expected an integer"));
  EXPECT_THAT(asked({{"request", "policy"}, {"policy", "best"}}), HasSubstr("burst-weight"));
  EXPECT_EQ(asked({{"request", "policy"}, {"policy", "equal"}}), "done");
  EXPECT_EQ(asked({{"request", "set"}, {"name", "a"}, {"memory", {{"0", 8ULL << 30}}}}), "done");
  EXPECT_EQ(daemon.memory("limit_bytes"), 8LL << 30);
  const auto metrics = send_control_request(daemon.socket(), R"({"request":"metrics"})");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(*metrics, HasSubstr("regatta_gpu_memory_limit_bytes{tenant=\"a\",gpu=\"0\"} "
                                  "8589934592\n"));
  EXPECT_THAT(*metrics, HasSubstr("regatta_gpu_compute_share_ratio{tenant=\"a\"} 1\n"));
  ::kill(tenant, SIGKILL);
  EXPECT_TRUE(os::wait_for(tenant));
}

TEST(Daemon, LowersALimitAtOnceAndGrantsAgainWhenItIsRaised) {
  const TestDaemon daemon;
  Shared<std::atomic<int>> step;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 100 * kMiB));
    *step = 1;
    while (*step == 1)
      os::sleep_for(Seconds{0.001});
    EXPECT_IN_TENANT((*client)->pages().tenant().quota[0] == 50 * kMiB);  // shown without a call
    EXPECT_IN_TENANT(!(*client)->reserve(0, 1));
    (*client)->release(0, 60 * kMiB);
    EXPECT_IN_TENANT((*client)->reserve(0, kMiB));
    *step = 3;
    while (*step == 3)
      os::sleep_for(Seconds{0.001});
    EXPECT_IN_TENANT((*client)->reserve(0, 150 * kMiB));
    return 0;
  });
  while (*step == 0)
    os::sleep_for(Seconds{0.001});
  EXPECT_TRUE(daemon.query({{"request", "set"}, {"name", "a"}, {"memory", {{"0", 50 * kMiB}}}})
                  .has_value());
  EXPECT_EQ(daemon.memory("spare_bytes"), 0);
  *step = 2;
  while (*step == 2)
    os::sleep_for(Seconds{0.001});
  EXPECT_TRUE(daemon.query({{"request", "set"}, {"name", "a"}, {"memory", {{"0", 200 * kMiB}}}})
                  .has_value());
  *step = 4;
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Daemon, IsTheOnlyOneOfItsFolderAndSocket) {
  const TestDaemon daemon;
  const std::atomic<bool> stop = true;
  const Status same = serve({.state = daemon.state(), .socket = daemon.socket() + "2"}, stop);
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("another daemon uses this state"));
  const Status socket = serve({.state = daemon.state() + "2", .socket = daemon.socket()}, stop);
  ASSERT_FALSE(socket);
  EXPECT_THAT(socket.error().message, HasSubstr("another daemon answers there"));
}

TEST(Daemon, DoesNotTouchAStateThatItCannotRead) {
  const auto folder = os::TempFolder::create("vgpu").value();
  const std::atomic<bool> stop = true;
  ASSERT_TRUE(os::write_file(folder.path() + "/state", "text"));
  const DaemonOptions options{.state = folder.path(), .socket = folder.path() + "/socket"};
  EXPECT_THAT(serve(options, stop).error().message, HasSubstr("another size"));
  ASSERT_TRUE(os::write_file(folder.path() + "/state", std::string(sizeof(StateFile), 'x')));
  EXPECT_THAT(serve(options, stop).error().message, HasSubstr("no state of regatta gpu daemon"));
  ASSERT_TRUE(os::remove_tree(folder.path() + "/state"));
  EXPECT_TRUE(serve(options, stop));
}

}  // namespace
}  // namespace regatta::sharing
