#include "regatta/vgpu/client/gate.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/vgpu/daemon/test_daemon.h"

namespace regatta::vgpu {
namespace {

using namespace regatta::literals;
using Ns = std::uint64_t;
constexpr Ns kUs = 1'000;
constexpr Ns kMs = 1'000'000;

Ns clock_ns() {
  return static_cast<Ns>(os::monotonic_now().value * 1e9);
}

// A device on which each stream takes the time of what it was given, one after the other.
class FakeDevice : public Marks {
 public:
  void launch(void* stream, Ns duration) {
    const std::scoped_lock lock(mutex_);
    Ns& end = ends_[stream];
    end = std::max(end, clock_ns()) + duration;
  }
  Ns end_of(void* stream) {
    const std::scoped_lock lock(mutex_);
    return ends_[stream];
  }
  void capture(void* stream, bool on) {
    const std::scoped_lock lock(mutex_);
    on ? static_cast<void>(captured_.insert(stream)) : static_cast<void>(captured_.erase(stream));
  }
  int touched_captures() const { return touched_captures_; }
  int marks() const { return marks_; }

  Mark record(void* stream) override {
    const std::scoped_lock lock(mutex_);
    if (captured_.count(stream) != 0) ++touched_captures_;
    ++marks_;
    return new Ns(std::max(ends_[stream], clock_ns()));
  }
  void wait(Mark mark) override {
    const Ns end = *static_cast<Ns*>(mark);
    const Ns now = clock_ns();
    if (end > now) os::sleep_for(Seconds{static_cast<double>(end - now) * 1e-9});
  }
  bool is_reached(Mark mark) override { return *static_cast<Ns*>(mark) <= clock_ns(); }
  std::optional<Ns> between_ns(Mark begin, Mark end) override {
    return *static_cast<Ns*>(end) - *static_cast<Ns*>(begin);
  }
  void release(Mark mark) override { delete static_cast<Ns*>(mark); }

 private:
  bool is_capturing(void* stream) override {
    const std::scoped_lock lock(mutex_);
    return captured_.count(stream) != 0;
  }

  std::mutex mutex_;
  std::map<void*, Ns> ends_;
  std::set<void*> captured_;
  int touched_captures_ = 0;
  std::atomic<int> marks_ = 0;
};

// What the processes of a test tell.
struct Log {
  struct Span {
    int tenant;
    Ns begin;
    Ns end;
  };
  std::atomic<std::size_t> count;
  std::atomic<bool> stop;
  std::atomic<int> ready;
  std::atomic<int> failed;
  std::atomic<std::uint64_t> launches;
  Span spans[1 << 18];
};

int number = 0;  // so that streams differ from 0
void* const kStream = &number;

// A tenant that launches kernels of this length until told to stop. Each is a span of the log: of a
// device that belongs to this process alone, so what overlaps is an error of the gate.
int flood(int page, int tenant, Ns kernel, Log& log) {
  const auto client = Client::connect(page, kPatience);
  EXPECT_IN_TENANT(client);
  FakeDevice device;
  Gate gate(**client, 0, device);
  const std::uint64_t key = Durations::key_of(&device, 1);
  ++log.ready;
  while (!log.stop) {
    const Gate::Pass pass = gate.pass(key, kStream);
    const Ns now = clock_ns();
    const Ns begin = std::max(device.end_of(kStream), now);
    device.launch(kStream, kernel);
    gate.launched(pass, kStream);
    log.spans[log.count++] = {tenant, begin, begin + kernel};
  }
  return 0;
}

// Time of one tenant in a span, and how long two overlapped.
Ns used(const Log& log, int tenant, Ns from, Ns to) {
  Ns sum = 0;
  for (std::size_t i = 0; i < log.count; ++i) {
    const Log::Span& one = log.spans[i];
    if (one.tenant == tenant && one.end > from && one.begin < to)
      sum += std::min(one.end, to) - std::max(one.begin, from);
  }
  return sum;
}

TEST(Gate, LetsOneTenantRunAtATimeAndEachItsPart) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.ask({{"ask", "policy"}, {"policy", "equal"}}));
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
  const auto books = daemon.ask({{"ask", "ps"}});
  log->stop = true;
  for (const pid_t tenant : tenants)
    EXPECT_EQ(wait_status(tenant), 0);
  const Ns end = begin + 1000 * kMs;
  const double first = static_cast<double>(used(*log, 0, begin, end)) / 1e9;
  const double second = static_cast<double>(used(*log, 1, begin, end)) / 1e9;
  // How much is lost between turns is the machine's; how the rest is divided is not.
  EXPECT_NEAR(first / (first + second), 0.5, 0.03);
  EXPECT_GT(first + second, 0.5);
  EXPECT_LT(first + second, 1.1);
  ASSERT_TRUE(books);
  for (const auto& tenant : (*books)["tenants"])
    EXPECT_NEAR(tenant["time"][0]["last_second_percent"].get<double>(), 50, 5);
}

// A process of a tenant with its gate and its device.
struct Tenant {
  explicit Tenant(int page) : client(Client::connect(page, kPatience)) {
    if (client) gate = std::make_unique<Gate>(**client, 0, device);
  }
  void launch(Ns duration, const void* function = &number, void* stream = kStream) {
    const Gate::Pass pass = gate->pass(Durations::key_of(function, 1), stream);
    device.launch(stream, duration);
    gate->launched(pass, stream);
  }
  Result<std::unique_ptr<Client>> client;
  FakeDevice device;
  std::unique_ptr<Gate> gate;
};

TEST(Gate, LearnsHowLongKernelsTake) {
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
    const Ns first = self.gate->cost_ns(Durations::key_of(&number, 1));
    const Ns second = self.gate->cost_ns(Durations::key_of(&other, 1));
    EXPECT_IN_TENANT(first > 250 * kUs && first < 350 * kUs);
    EXPECT_IN_TENANT(second > 30 * kUs && second < 90 * kUs);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Gate, ChargesWhatWasLaunchedBeforeItsLengthWasKnownForAllOfItsTime) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    for (int i = 0; i < 10; ++i)
      self.launch(50 * kMs);
    while (self.gate->in_flight_ns() != 0)
      os::sleep_for(1.0_ms);
    os::sleep_for(50.0_ms);
    const Ns used = __atomic_load_n(&(**self.client).work(0).used_ns, __ATOMIC_SEQ_CST);
    EXPECT_IN_TENANT(used > 490 * kMs && used < 600 * kMs);
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Gate, KeepsOneTenantFromQueueingMoreThanTheBound) {
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

// Who comes first must not fill the whole turn from one stream: the others' work would have run
// beside it.
TEST(Gate, LetsStreamsOfAProcessWorkAtOnceInItsTurns) {
  constexpr int kStreams = 4;
  constexpr Ns kKernel = 400 * kUs;
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.ask({{"ask", "policy"}, {"policy", "equal"}}));
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

TEST(Gate, LetsAProcessGoOnWithoutADaemonAlsoWhereItNeverHadATurn) {
  Shared<Log> log;
  TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    ++log->ready;
    while (!log->stop)
      os::sleep_for(1.0_ms);
    const Ns begin = clock_ns();
    for (int i = 0; i < 50; ++i)
      self.launch(kMs);
    EXPECT_IN_TENANT(clock_ns() - begin < 4'000 * kMs);  // a second of it for the daemon
    return 0;
  });
  while (log->ready < 1)
    os::sleep_for(1.0_ms);
  daemon.kill();
  log->stop = true;
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Gate, NeverTouchesAStreamThatIsCapturedAndDoesNotHoldItBack) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.ask({{"ask", "policy"}, {"policy", "equal"}}));
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
      const Gate::Pass pass = self.gate->pass(Durations::key_of(&number, 1), &captured);
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

TEST(Gate, LetsAProcessThatWasIdleGoOnWithoutTheDaemonWhileItIsAlone) {
  const TestDaemon daemon;
  const pid_t tenant = daemon.start_tenant("a", 1_GiB, [&](int page) {
    Tenant self(page);
    EXPECT_IN_TENANT(self.gate);
    self.launch(100 * kUs);
    std::vector<Ns> took;
    for (int i = 0; i < 50; ++i) {
      os::sleep_for(3.0_ms);
      const Ns begin = clock_ns();
      self.launch(100 * kUs);
      took.push_back(clock_ns() - begin);
    }
    std::sort(took.begin(), took.end());
    EXPECT_IN_TENANT(took[5] < 100 * kUs);  // the machine may be late, always it is not
    return 0;
  });
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Gate, ServesAllThreadsOfAProcess) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.ask({{"ask", "policy"}, {"policy", "equal"}}));
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

TEST(Gate, OpensWithoutADaemonAndComesBackToTheNextOne) {
  Shared<Log> log;
  TestDaemon daemon;
  ASSERT_TRUE(daemon.ask({{"ask", "policy"}, {"policy", "equal"}}));
  std::vector<pid_t> tenants;
  for (const int tenant : {0, 1})
    tenants.push_back(
        daemon.start_tenant(std::string(1, static_cast<char>('a' + tenant)), 1_GiB,
                            [&, tenant](int page) { return flood(page, tenant, kMs, *log); }));
  while (log->ready < 2)
    os::sleep_for(1.0_ms);
  os::sleep_for(200.0_ms);
  daemon.kill();
  os::sleep_for(1500.0_ms);
  const Ns begin = clock_ns();
  os::sleep_for(300.0_ms);
  const Ns restarted = clock_ns();
  daemon.start();
  os::sleep_for(1000.0_ms);
  const Ns end = clock_ns() - 100 * kMs;
  log->stop = true;
  for (const pid_t tenant : tenants)
    EXPECT_EQ(wait_status(tenant), 0);
  for (const int tenant : {0, 1}) {
    EXPECT_GT(used(*log, tenant, begin, restarted), 250 * kMs) << "nobody shares them";
    const double part = static_cast<double>(used(*log, tenant, restarted + 500 * kMs, end)) /
                        static_cast<double>(end - restarted - 500 * kMs);
    EXPECT_NEAR(part, 0.5, 0.1);
  }
}

TEST(Gate, PassesTheTurnOfAKilledProcessOn) {
  Shared<Log> log;
  const TestDaemon daemon;
  ASSERT_TRUE(daemon.ask({{"ask", "policy"}, {"policy", "burst-weight"}}));
  const pid_t killed =
      daemon.start_tenant("a", 1_GiB, [&](int page) { return flood(page, 0, 2 * kMs, *log); });
  const pid_t other =
      daemon.start_tenant("b", 1_GiB, [&](int page) { return flood(page, 1, 2 * kMs, *log); });
  while (log->ready < 2)
    os::sleep_for(1.0_ms);
  os::sleep_for(100.0_ms);
  ::kill(killed, SIGKILL);
  EXPECT_NE(wait_status(killed), 0);
  const Ns died = clock_ns() + 20 * kMs;
  os::sleep_for(500.0_ms);
  log->stop = true;
  EXPECT_EQ(wait_status(other), 0);
  EXPECT_GT(used(*log, 1, died, died + 400 * kMs), 360 * kMs);
}

}  // namespace
}  // namespace regatta::vgpu
