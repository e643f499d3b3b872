// How long work of high priority takes alone and beside a batch job, and how soon who comes back
// has its part: unchanged programs on a stand-in device. Set the machine aside. Words: rounds=N.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "regatta/base/core/stats.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Latency {
  double alone_p50 = 0;
  double alone_p99 = 0;
  double beside_p50 = 0;
  double beside_p99 = 0;
  double batch_share = 0;
};

// Inference of 2 ms at 125 to the second beside a job that always has kernels.
Latency measure_latency(const Work& batch) {
  TimeSharedMachine machine;
  machine.set_policy("burst-weight");
  machine.run({.name = "serve", .is_high = true},
              {.kernel = milliseconds(2), .pause = milliseconds(6)});
  machine.wait_until_ready();
  const std::vector<double> alone = machine.latencies(0, seconds(4));
  machine.run({.name = "batch"}, batch);
  machine.wait_until_ready();
  const Time begin = clock_now();
  const std::vector<double> beside = machine.latencies(0, seconds(4));
  return {.alone_p50 = quantile(alone, 0.5),
          .alone_p99 = quantile(alone, 0.99),
          .beside_p50 = quantile(beside, 0.5),
          .beside_p99 = quantile(beside, 0.99),
          .batch_share = share(machine.log(), machine.pid(1), begin, begin + seconds(4))};
}

// The part that one has of the first 100 ms from its first kernel on, beside one who had all.
double measure_return() {
  TimeSharedMachine machine;
  machine.set_policy("burst-weight");
  machine.run({.name = "a"}, {.kernel = milliseconds(1)});
  machine.wait_until_ready();
  machine.run({.name = "b"}, {.kernel = milliseconds(1)});
  machine.wait_until_ready();
  const std::vector<Interval> log = machine.log();
  for (const Interval& one : log) {
    if (one.pid == static_cast<std::uint32_t>(machine.pid(1)))
      return share(log, machine.pid(1), one.start, one.start + milliseconds(100));
  }
  return 0;
}

void print_latency(const char* name, const Work& batch, double kernel_s, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const Latency one = measure_latency(batch);
    std::printf(
        "beside %-22s alone p50 %.2f p99 %.2f ms, beside p50 %.2f p99 %.2f ms; bar %.2f ms; the "
        "batch job has %.1f %%\n",
        name, 1e3 * one.alone_p50, 1e3 * one.alone_p99, 1e3 * one.beside_p50, 1e3 * one.beside_p99,
        1e3 * (1.1 * one.alone_p99 + kernel_s), 100 * one.batch_share);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace regatta::gpu_time

int main(int argc, char** argv) {
  using namespace regatta::gpu_time;
  const std::string word = argc > 1 ? argv[1] : "";
  const int rounds = word.starts_with("rounds=") ? std::atoi(word.c_str() + 7) : 3;
  print_latency("kernels of 800 us", {.kernel = microseconds(800)}, 800e-6, rounds);
  print_latency("kernels of 50 us", {.kernel = microseconds(50)}, 50e-6, rounds);
  print_latency("graphs of 10 x 200 us", {.kernel = microseconds(200), .graph_kernels = 10}, 2e-3,
                rounds);
  for (int round = 0; round < rounds; ++round)
    std::printf("who comes back to half has %.1f %% of the first 100 ms\n", 100 * measure_return());
  return 0;
}
