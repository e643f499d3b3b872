// Times a reservation of device memory, and the start of many clients at once.

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/wait.h>

#include "regatta/base/core/stats.h"
#include "regatta/gpu/sharing/internal/client/launch_gate.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;

// Runs `body` in a tenant of a terabyte; the seconds that it measured come back.
constexpr std::size_t kMost = 1 << 20;
struct Times {
  std::atomic<std::size_t> count;
  double seconds[kMost];
};

void in_tenant(benchmark::State& state, Shared<Times>& times,
               const std::function<int(int page)>& body) {
  static const TestDaemon daemon;
  static int number = 0;
  times->count = 0;
  const std::string name = "bench-" + std::to_string(++number);
  if (wait_status(daemon.start_tenant(name, 1024_GiB, body)) != 0)
    state.SkipWithError("the tenant failed");
}

void report(benchmark::State& state, const Times& times) {
  std::vector<double> values(times.seconds, times.seconds + times.count);
  double sum = 0;
  for (const double one : values)
    sum += one;
  state.SetIterationTime(sum / static_cast<double>(values.size()));
  state.counters["mean_us"] = sum / static_cast<double>(values.size()) * 1e6;
  state.counters["p50_us"] = quantile(values, 0.5) * 1e6;
  state.counters["p99_us"] = quantile(values, 0.99) * 1e6;
  state.counters["max_us"] = quantile(values, 1) * 1e6;
}

// A reservation and its release again and again: what an allocator does once it has warmed up.
void bm_reserve_again(benchmark::State& state) {
  Shared<Times> times;
  for (auto _ : state) {
    in_tenant(state, times, [&](int page) {
      const auto client = Client::connect(page, kTimeout);
      if (!client) return 1;
      constexpr int kCalls = 10'000'000;
      const Seconds begin = os::monotonic_now();
      for (int i = 0; i < kCalls; ++i) {
        if (!(*client)->reserve(0, 2 * kMiB)) return 1;
        (*client)->release(0, 2 * kMiB);
      }
      times->seconds[times->count++] = (os::monotonic_now() - begin).value / kCalls;
      return 0;
    });
    report(state, *times);
  }
}
BENCHMARK(bm_reserve_again)->UseManualTime()->Iterations(1)->Unit(benchmark::kNanosecond);

// A program that grows: blocks of so many MiB that are kept, to 64 GiB.
void bm_reserve_growing(benchmark::State& state) {
  const auto block = static_cast<std::uint64_t>(state.range(0)) * kMiB;
  Shared<Times> times;
  for (auto _ : state) {
    in_tenant(state, times, [&](int page) {
      const auto client = Client::connect(page, kTimeout);
      if (!client) return 1;
      for (std::uint64_t got = 0; got < 65'536 * kMiB; got += block) {
        const Seconds begin = os::monotonic_now();
        if (!(*client)->reserve(0, block)) return 1;
        times->seconds[times->count++] = (os::monotonic_now() - begin).value;
      }
      return 0;
    });
    report(state, *times);
  }
}
BENCHMARK(bm_reserve_growing)
    ->Arg(2)
    ->Arg(20)
    ->Arg(256)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kNanosecond);

// A device that has done everything at once: what a launch pays the gate, marks left out or in.
class NoDevice : public StreamEvents {
 public:
  Event record(void*) override { return this; }
  void wait(Event) override {}
  bool is_reached(Event) override { return true; }
  std::optional<std::uint64_t> between_ns(Event, Event) override { return 5'000; }
  void release(Event) override {}

 private:
  bool is_capturing(void*) override { return false; }
};

// Launches one kernel of 5 us repeatedly, as the only tenant: an event every 50 us to 1.25 ms of
// them.
void bm_launch(benchmark::State& state) {
  Shared<Times> times;
  for (auto _ : state) {
    in_tenant(state, times, [&](int page) {
      const auto client = Client::connect(page, kTimeout);
      if (!client) return 1;
      NoDevice device;
      LaunchGate gate(**client, 0, device);
      constexpr int kCalls = 200;
      for (int round = 0; round < 5000; ++round) {
        const Seconds begin = os::monotonic_now();
        for (int i = 0; i < kCalls; ++i) {
          const LaunchGate::Pass pass = gate.pass(KernelDurations::key_of(&device, 1), &device);
          gate.launched(pass, &device);
        }
        times->seconds[times->count++] = (os::monotonic_now() - begin).value / kCalls;
      }
      return 0;
    });
    report(state, *times);
  }
}
BENCHMARK(bm_launch)->UseManualTime()->Iterations(1)->Unit(benchmark::kNanosecond);

// Times one message to the daemon and back: each call requests more than there is.
void bm_ask_daemon(benchmark::State& state) {
  Shared<Times> times;
  for (auto _ : state) {
    in_tenant(state, times, [&](int page) {
      const auto client = Client::connect(page, kTimeout);
      if (!client) return 1;
      for (int i = 0; i < 50'000; ++i) {
        const Seconds begin = os::monotonic_now();
        if ((*client)->reserve(0, 2048 * 1024 * kMiB)) return 1;
        times->seconds[times->count++] = (os::monotonic_now() - begin).value;
      }
      return 0;
    });
    report(state, *times);
  }
}
BENCHMARK(bm_ask_daemon)->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);

// So many processes of a tenant connect at the same moment.
void bm_start_clients(benchmark::State& state) {
  const auto count = static_cast<int>(state.range(0));
  Shared<Times> times;
  for (auto _ : state) {
    in_tenant(state, times, [&](int page) {
      Shared<std::atomic<int>> ready;
      auto go = os::make_pipe();  // its end lets all go
      if (!go) return 1;
      std::vector<pid_t> pids;
      for (int i = 0; i < count; ++i) {
        pids.push_back(start_process([&] {
          char end = 0;
          go->write_end.reset();
          ++*ready;
          if (::read(go->read_end.get(), &end, 1) != 0) return 1;
          const Seconds begin = os::monotonic_now();
          const auto client = Client::connect(page, kTimeout);
          if (!client) return 1;
          times->seconds[times->count++] = (os::monotonic_now() - begin).value;
          return 0;
        }));
      }
      while (*ready < count)
        os::sleep_for(Seconds{0.001});
      go->write_end.reset();
      int failed = 0;
      for (const pid_t pid : pids)
        failed += wait_status(pid) != 0 ? 1 : 0;
      return failed;
    });
    report(state, *times);
  }
}
BENCHMARK(bm_start_clients)
    ->Arg(1)
    ->Arg(64)
    ->Arg(256)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace regatta::sharing
