#include "regatta/gpu/sharing/internal/client/launch_gate.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/gpu/sharing/internal/client/test_launch_gate.h"

namespace regatta::sharing {
namespace {

using namespace gate_test;
using namespace regatta::literals;

TEST(LaunchGate, LetsOneTenantRunAtATimeAndEachItsPart) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.query({{"request", "policy"}, {"policy", "equal"}}));
  std::vector<pid_t> tenants;
  for (const int tenant : {0, 1}) {
    tenants.push_back(daemon.start_tenant(
        std::string(1, static_cast<char>('a' + tenant)), 1_GiB, [&, tenant](int page) {
          return flood(page, tenant, tenant == 0 ? 200 * kUs : 2 * kMs, *log);
        }));
  }
  while (log->ready < 2)
    os::sleep_for(1.0_ms);
  const Ns begin = clock_ns() + 100 * kMs;
  os::sleep_for(Seconds{1.1});
  const auto listing = daemon.query({{"request", "ps"}});
  log->stop = true;
  for (const pid_t tenant : tenants)
    EXPECT_EQ(wait_status(tenant), 0);
  const Ns end = begin + 1000 * kMs;
  const double first = static_cast<double>(used(*log, 0, begin, end)) / 1e9;
  const double second = static_cast<double>(used(*log, 1, begin, end)) / 1e9;
  // How much is lost between turns is the machine's; how the rest is divided is not. Here each
  // process has a device of its own, so the last work of a turn takes no time of the next one.
  EXPECT_NEAR(first / (first + second), 0.5, 0.03);
  EXPECT_GT(first + second, 0.5);
  EXPECT_LT(first + second, 1.3);
  ASSERT_TRUE(listing);
  for (const auto& tenant : (*listing)["tenants"]) {
    const double percent = tenant["time"][0]["last_second_percent"].get<double>();
    EXPECT_NEAR(percent / (first + second), 50, 5);
  }
}

TEST(LaunchGate, LearnsHowLongKernelsTake) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    const int other = 0;
    for (int i = 0; i < 40; ++i) {
      self.launch(300 * kUs);
      self.launch(40 * kUs, &other);
    }
    os::sleep_for(50.0_ms);
    EXPECT_IN_TENANT(self.gate->in_flight_ns() == 0);
    const Ns first = self.gate->cost_ns(KernelDurations::key_of(&number, 1));
    const Ns second = self.gate->cost_ns(KernelDurations::key_of(&other, 1));
    EXPECT_IN_TENANT(first > 250 * kUs && first < 350 * kUs);
    EXPECT_IN_TENANT(second > 30 * kUs && second < 90 * kUs);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(LaunchGate, ChargesWhatWasLaunchedBeforeItsLengthWasKnownForAllOfItsTime) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    for (int i = 0; i < 10; ++i)
      self.launch(50 * kMs);
    while (self.gate->in_flight_ns() != 0)
      os::sleep_for(1.0_ms);
    os::sleep_for(50.0_ms);
    const Ns used = __atomic_load_n(&(**self.client).pages().work(0).used_ns, __ATOMIC_SEQ_CST);
    EXPECT_IN_TENANT(used > 490 * kMs && used < 600 * kMs);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(LaunchGate, KeepsOneTenantFromQueueingMoreThanTheBound) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    Ns most = 0;
    for (int i = 0; i < 200; ++i) {
      self.launch(kMs);
      const Ns now = clock_ns();
      const Ns end = self.device.end_of(kStream);
      most = std::max(most, end > now ? end - now : 0);
    }
    EXPECT_IN_TENANT(most < 25 * kMs);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

// The first process must not fill the whole turn from one stream: the others' work could run at the
// same time.
TEST(LaunchGate, LetsStreamsOfAProcessWorkAtOnceInItsTurns) {
  constexpr int kStreams = 4;
  constexpr Ns kKernel = 400 * kUs;
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.query({{"request", "policy"}, {"policy", "equal"}}));
  const pid_t other =
      daemon.start_tenant("b", 1_GiB, [&](int page) { return flood(page, 1, kKernel, *log); });
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    std::array<int, kStreams> streams{};
    std::vector<std::jthread> threads;
    for (int& stream : streams) {
      threads.emplace_back([&] {
        ++log->ready;
        while (!log->stop) {
          self.launch(kKernel, &number, &stream);
          ++log->launches;
        }
      });
    }
    return 0;
  });
  while (log->ready < 1 + kStreams)
    os::sleep_for(1.0_ms);
  os::sleep_for(200.0_ms);
  const std::uint64_t before = log->launches;
  os::sleep_for(1000.0_ms);
  const double at_once = static_cast<double>((log->launches - before) * kKernel) /
                         (0.5 * 1e9);  // half of the time is its
  log->stop = true;
  EXPECT_EQ(wait_status(tenant), 0);
  EXPECT_EQ(wait_status(other), 0);
  EXPECT_GT(at_once, 2);
  EXPECT_LT(at_once, kStreams + 0.5);
}

TEST(LaunchGate, NeverTouchesAStreamThatIsCapturedAndDoesNotHoldItBack) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.query({{"request", "policy"}, {"policy", "equal"}}));
  const pid_t other =
      daemon.start_tenant("b", 1_GiB, [&](int page) { return flood(page, 1, 5 * kMs, *log); });
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    int captured = 0;
    self.device.capture_begins();
    self.device.capture(&captured, true);
    const Ns begin = clock_ns();
    for (int i = 0; i < 10'000; ++i) {
      const LaunchGate::Pass pass = self.gate->pass(KernelDurations::key_of(&number, 1), &captured);
      self.gate->launched(pass, &captured);
    }
    const Ns took = clock_ns() - begin;
    for (int i = 0; i < 100; ++i)
      self.launch(100 * kUs);  // into another stream
    EXPECT_IN_TENANT(self.device.marks() > 0);
    self.device.capture(&captured, false);
    self.device.capture_ends();
    EXPECT_IN_TENANT(self.device.touched_captures() == 0);
    EXPECT_IN_TENANT(took < 50 * kMs);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
  log->stop = true;
  EXPECT_EQ(wait_status(other), 0);
}

TEST(LaunchGate, ServesAllThreadsOfAProcess) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.query({{"request", "policy"}, {"policy", "equal"}}));
  const pid_t other =
      daemon.start_tenant("b", 1_GiB, [&](int page) { return flood(page, 1, 2 * kMs, *log); });
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    std::vector<std::thread> threads;
    int streams[8] = {};
    for (int& stream : streams)
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i)
          self.launch(20 * kUs, &stream, &stream);
      });
    for (std::thread& thread : threads)
      thread.join();
    os::sleep_for(100.0_ms);
    EXPECT_IN_TENANT(self.gate->in_flight_ns() == 0);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
  log->stop = true;
  EXPECT_EQ(wait_status(other), 0);
}

}  // namespace
}  // namespace regatta::sharing
