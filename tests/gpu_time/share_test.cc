// Parts of a device's time among unchanged programs, as the device itself measures them.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/base/core/stats.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How far a part may be off over a second: 2 points, and as much more as the machine of the test
// took from the processes, which is what the device was idle.
double tolerance(double idle) {
  return 0.02 + idle;
}

class TimeShares : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(machine_.stop_all(), 0); }

  // The parts of the first programs, in every second of [begin, end).
  void expect_parts(const std::vector<double>& parts, Time begin, Time end) {
    const std::vector<Interval> log = machine_.log();
    double all = 0;
    double expected = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      all += share(log, machine_.pid(i), begin, end);
      expected += parts[i];
    }
    const double idle = std::max(0.0, expected - all);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double part = share(log, machine_.pid(i), begin, end);
      const double miss = worst_miss(log, machine_.pid(i), parts[i], begin, end);
      std::printf("part %.3f: %.4f, worst miss of a second %.4f; device idle %.4f\n", parts[i],
                  part, miss, idle);
      EXPECT_LT(miss, tolerance(idle)) << i;
      EXPECT_NEAR(part / all, parts[i] / expected, tolerance(idle / 2));
    }
  }
  void expect_parts_from_now(const std::vector<double>& parts, Time how_long) {
    const Time begin = clock_now();
    sleep_until(begin + how_long);
    expect_parts(parts, begin, begin + how_long);
  }

  TimeSharedMachine machine_;
};

TEST_F(TimeShares, WithoutTheHookTheDeviceIsNotSharedByParts) {
  machine_.run_outside({.kernel = milliseconds(2)});
  machine_.run({.name = "b", .compute = "10"}, {.kernel = milliseconds(2)});
  machine_.wait_until_ready();
  const Time begin = clock_now();
  sleep_until(begin + seconds(1));
  EXPECT_GT(share(machine_.log(), machine_.pid(0), begin, begin + seconds(1)), 0.85);
}

TEST_F(TimeShares, OneAloneHasItsPercentAndNoMore) {
  machine_.set_policy("fixed");
  machine_.run({.name = "a", .compute = "30"}, {.kernel = microseconds(100)});
  machine_.wait_until_ready();
  expect_parts_from_now({0.3}, milliseconds(2500));
}

TEST_F(TimeShares, FixedGivesEachItsPercent) {
  machine_.set_policy("fixed");
  machine_.run({.name = "a", .compute = "30"}, {.kernel = microseconds(100)});
  machine_.run({.name = "b", .compute = "50"}, {.kernel = milliseconds(2)});
  machine_.wait_until_ready();
  expect_parts_from_now({0.3, 0.5}, milliseconds(2500));
}

TEST_F(TimeShares, EqualDividesAmongFourWithAndWithoutGraphs) {
  machine_.set_policy("equal");
  machine_.run({.name = "a"}, {.kernel = microseconds(50)});
  machine_.run({.name = "b"}, {.kernel = microseconds(100), .graph_kernels = 20});
  machine_.run({.name = "c"}, {.kernel = milliseconds(1)});
  machine_.run({.name = "d"}, {.kernel = microseconds(300), .graph_kernels = 5, .blocks = 16});
  machine_.wait_until_ready();
  expect_parts_from_now({0.25, 0.25, 0.25, 0.25}, milliseconds(2500));
}

TEST_F(TimeShares, SwitchesFromEqualToWeightToBurstWeightWhileAllWork) {
  machine_.set_policy("equal");
  machine_.run({.name = "a"}, {.kernel = microseconds(200)});
  machine_.run({.name = "b", .weight = 3}, {.kernel = microseconds(500), .graph_kernels = 4});
  machine_.wait_until_ready();
  expect_parts_from_now({0.5, 0.5}, milliseconds(1500));
  machine_.set_policy("weight");
  expect_parts_from_now({0.25, 0.75}, milliseconds(1500));
  machine_.set_weight("a", 9);
  machine_.set_policy("burst-weight");
  expect_parts_from_now({0.75, 0.25}, milliseconds(1500));
}

TEST_F(TimeShares, LongKernelsPayTheirDebt) {
  machine_.set_policy("equal");
  machine_.run({.name = "a"}, {.kernel = milliseconds(300)});
  machine_.run({.name = "b"}, {.kernel = microseconds(500)});
  machine_.wait_until_ready();
  const Time begin = clock_now();
  const Time length = milliseconds(6000);
  sleep_until(begin + length);
  const std::vector<Interval> log = machine_.log();
  const double first = share(log, machine_.pid(0), begin, begin + length);
  const double second = share(log, machine_.pid(1), begin, begin + length);
  std::printf("300 ms kernels: %.4f, 500 us kernels: %.4f of 6 s\n", first, second);
  // 5 points for a kernel of 300 ms over 6 s. Time in which the test machine lets both wait for a
  // processor is not the scheduler's fault; the division of the rest is.
  EXPECT_NEAR(first / (first + second), 0.5, 0.1);
  EXPECT_LT(first, 0.6);
  EXPECT_GT(first + second, 0.5);
}

TEST_F(TimeShares, WhoComesBackHasItsBurstPartWithinATenthOfASecond) {
  machine_.set_policy("burst-weight");
  machine_.run({.name = "a"}, {.kernel = milliseconds(1)});
  machine_.wait_until_ready();
  expect_parts_from_now({1.0}, milliseconds(1200));
  machine_.run({.name = "b"}, {.kernel = milliseconds(1)});
  machine_.wait_until_ready();
  std::this_thread::sleep_for(milliseconds(300));
  const std::vector<Interval> log = machine_.log();
  const auto first = std::ranges::find_if(log, [&](const Interval& one) {
    return one.pid == static_cast<std::uint32_t>(machine_.pid(1));
  });
  ASSERT_NE(first, log.end());
  const Time begin = first->start;
  const Time settled = begin + milliseconds(100);
  // Its first turn makes up for what it waited for the kernels in flight, so it may have more.
  EXPECT_GT(share(log, machine_.pid(1), begin, settled), 0.5 - 0.1);
  // Then neither of the two is ahead of the other, whatever both lose to the test's machine.
  const double back = share(log, machine_.pid(1), settled, settled + milliseconds(200));
  const double other = share(log, machine_.pid(0), settled, settled + milliseconds(200));
  EXPECT_NEAR(back / (back + other), 0.5, 0.1);
}

TEST_F(TimeShares, SixteenTenantsHaveASixteenthEach) {
  machine_.set_policy("equal");
  for (int i = 0; i < 16; ++i)
    machine_.run({.name = "t" + std::to_string(i), .compute = "6"},
                 {.kernel = microseconds(100) * (1 + i % 8)});
  machine_.wait_until_ready();
  expect_parts_from_now(std::vector<double>(16, 1.0 / 16), milliseconds(2500));
}

TEST_F(TimeShares, HighPriorityWaitsForOneKernelAtMost) {
  machine_.set_policy("burst-weight");
  machine_.run({.name = "serve", .is_high = true},
               {.kernel = milliseconds(2), .pause = milliseconds(6)});
  machine_.wait_until_ready();
  const std::vector<double> alone = machine_.latencies(0, milliseconds(1500));
  machine_.run({.name = "batch"}, {.kernel = microseconds(800)});
  machine_.wait_until_ready();
  const std::vector<double> beside = machine_.latencies(0, milliseconds(2500));
  std::printf("latency alone p50 %.0f p99 %.0f us, beside a batch job p50 %.0f p99 %.0f us\n",
              quantile(alone, 0.5) * 1e6, quantile(alone, 0.99) * 1e6, quantile(beside, 0.5) * 1e6,
              quantile(beside, 0.99) * 1e6);
  EXPECT_GT(beside.size(), 100U);
  EXPECT_LT(quantile(beside, 0.5), 1.1 * quantile(alone, 0.5) + 800e-6);
  const Time now = clock_now();
  EXPECT_GT(share(machine_.log(), machine_.pid(1), now - seconds(1), now), 0.3)
      << "the batch job works";
}

}  // namespace
}  // namespace regatta::gpu_time
