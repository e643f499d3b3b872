// Parts of a device's time between real processes, measured by the device itself.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <time.h>

#include "tests/gpu_time/tenant.h"

namespace regatta::gpu_time {
namespace {

using namespace regatta::literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using vgpu::Shared;
using vgpu::TestDaemon;

Time clock_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return seconds(now.tv_sec) + Time(now.tv_nsec);
}

void sleep_until(Time end) {
  os::sleep_for(Seconds{std::chrono::duration<double>(end - clock_now()).count()});
}

// How far a part may be off over a second: 2 points, and as much more as the machine of the test
// took from the processes, which is what the device was idle.
double tolerance(double idle) {
  return 0.02 + idle;
}

class TimeShares : public testing::Test {
 protected:
  void SetUp() override {
    if (standin::is_real_driver()) GTEST_SKIP() << "asks the stand-in device";
  }
  void TearDown() override {
    board_->stop = true;
    for (const pid_t pid : pids_)
      EXPECT_EQ(vgpu::wait_status(pid), 0);
  }

  pid_t add(const std::string& name, unsigned compute_percent, unsigned weight, const Work& work,
            bool is_high = false) {
    EXPECT_TRUE(daemon_.ask({{"ask", "policy"}}));
    const pid_t pid = vgpu::start_process([&, this] {
      os::UniqueFd page;
      const nlohmann::json request{{"ask", "join"},
                                   {"name", name},
                                   {"memory", {{"0", 1 << 30}}},
                                   {"weight", weight},
                                   {"priority", is_high ? "high" : "normal"},
                                   {"compute_ppm", compute_percent * 10'000}};
      const auto answer = vgpu::ask_daemon(daemon_.socket(), request.dump(), &page);
      if (!answer) return 99;
      return work_on_device(device_, page.get(), work, *board_);
    });
    pids_.push_back(pid);
    return pid;
  }
  void wait_until_ready() {
    while (board_->ready < static_cast<int>(pids_.size()))
      os::sleep_for(1.0_ms);
    os::sleep_for(Seconds{0.3});
  }
  void set_policy(const char* policy) {
    ASSERT_TRUE(daemon_.ask({{"ask", "policy"}, {"policy", policy}}));
  }

  // The parts of all processes, in every second of [begin, end).
  void expect_parts(const std::vector<double>& parts, Time begin, Time end) {
    const std::vector<Interval> log = device_.log();
    double all = 0;
    double expected = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      all += share(log, pids_[i], begin, end);
      expected += parts[i];
    }
    const double idle = std::max(0.0, expected - all);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double miss = worst_miss(log, pids_[i], parts[i], begin, end);
      std::printf("part %.3f: %.4f, worst miss of a second %.4f; device idle %.4f\n", parts[i],
                  share(log, pids_[i], begin, end), miss, idle);
      EXPECT_LT(miss, tolerance(idle)) << i;
      EXPECT_NEAR(share(log, pids_[i], begin, end) / all, parts[i] / expected, tolerance(idle / 2));
    }
  }
  void expect_parts_from_now(const std::vector<double>& parts, Time how_long) {
    const Time begin = clock_now();
    sleep_until(begin + how_long);
    expect_parts(parts, begin, begin + how_long);
  }

  TestDevice device_{{}};
  TestDaemon daemon_;
  Shared<Board> board_;
  std::vector<pid_t> pids_;
};

TEST_F(TimeShares, WithoutTheGateTheDeviceIsNotSharedByParts) {
  set_policy("fixed");
  add("a", 30, 1, {.kernel = milliseconds(2), .is_bare = true});
  add("b", 70, 1, {.kernel = milliseconds(2), .is_bare = true});
  wait_until_ready();
  const Time begin = clock_now();
  sleep_until(begin + seconds(1));
  EXPECT_NEAR(share(device_.log(), pids_[0], begin, begin + seconds(1)), 0.5, 0.02);
}

TEST_F(TimeShares, FixedGivesEachItsPercent) {
  set_policy("fixed");
  add("a", 30, 1, {.kernel = microseconds(100)});
  add("b", 50, 1, {.kernel = milliseconds(2)});
  wait_until_ready();
  expect_parts_from_now({0.3, 0.5}, milliseconds(2500));
}

TEST_F(TimeShares, EqualDividesAmongFourWithAndWithoutGraphs) {
  set_policy("equal");
  add("a", 10, 1, {.kernel = microseconds(50)});
  add("b", 10, 1, {.kernel = microseconds(100), .graph_kernels = 20});
  add("c", 10, 1, {.kernel = milliseconds(1)});
  add("d", 10, 1, {.kernel = microseconds(300), .graph_kernels = 5, .blocks = 16});
  wait_until_ready();
  expect_parts_from_now({0.25, 0.25, 0.25, 0.25}, milliseconds(2500));
}

TEST_F(TimeShares, SwitchesFromEqualToWeightToBurstWeightWhileAllWork) {
  set_policy("equal");
  add("a", 10, 1, {.kernel = microseconds(200)});
  add("b", 10, 3, {.kernel = microseconds(500), .graph_kernels = 4});
  wait_until_ready();
  expect_parts_from_now({0.5, 0.5}, milliseconds(1500));
  set_policy("weight");
  expect_parts_from_now({0.25, 0.75}, milliseconds(1500));
  ASSERT_TRUE(daemon_.ask({{"ask", "set"}, {"name", "a"}, {"weight", 9}}));
  set_policy("burst-weight");
  expect_parts_from_now({0.75, 0.25}, milliseconds(1500));
}

TEST_F(TimeShares, LongKernelsPayTheirDebt) {
  set_policy("equal");
  add("a", 10, 1, {.kernel = milliseconds(300)});
  add("b", 10, 1, {.kernel = microseconds(500)});
  wait_until_ready();
  const Time begin = clock_now();
  sleep_until(begin + milliseconds(6000));
  const std::vector<Interval> log = device_.log();
  const double first = share(log, pids_[0], begin, begin + milliseconds(6000));
  const double second = share(log, pids_[1], begin, begin + milliseconds(6000));
  std::printf("300 ms kernels: %.4f, 500 us kernels: %.4f of 6 s\n", first, second);
  EXPECT_NEAR(first, 0.5, 0.07);  // 2 points and a kernel of 300 ms over 6 s
  EXPECT_GT(first + second, 0.95);
}

TEST_F(TimeShares, WhoComesBackHasItsBurstPartWithinATenthOfASecond) {
  set_policy("burst-weight");
  add("a", 10, 1, {.kernel = milliseconds(1)});
  wait_until_ready();
  expect_parts_from_now({1.0}, milliseconds(1200));
  add("b", 10, 1, {.kernel = milliseconds(1)});
  wait_until_ready();
  const std::vector<Interval> log = device_.log();
  const auto first = std::find_if(log.begin(), log.end(), [&](const Interval& one) {
    return one.pid == static_cast<std::uint32_t>(pids_[1]);
  });
  ASSERT_NE(first, log.end());
  EXPECT_NEAR(share(log, pids_[1], first->start, first->start + milliseconds(100)), 0.5, 0.1);
}

TEST_F(TimeShares, SixteenTenantsHaveASixteenthEach) {
  set_policy("equal");
  for (int i = 0; i < 16; ++i)
    add("t" + std::to_string(i), 6, 1, {.kernel = microseconds(100) * (1 + i % 8)});
  wait_until_ready();
  expect_parts_from_now(std::vector<double>(16, 1.0 / 16), milliseconds(2500));
}

TEST_F(TimeShares, HighPriorityWaitsForOneKernelAtMost) {
  set_policy("burst-weight");
  add("serve", 50, 1, {.kernel = milliseconds(2), .pause = milliseconds(6)}, true);
  wait_until_ready();
  board_->latency_count = 0;
  os::sleep_for(Seconds{1.5});
  const auto quantile = [&](double part) {
    const std::size_t count = board_->latency_count;
    std::vector<double> values(board_->latency_s, board_->latency_s + count);
    std::sort(values.begin(), values.end());
    return count == 0 ? 0.0
                      : values[static_cast<std::size_t>(part * static_cast<double>(count - 1))];
  };
  const double alone_p50 = quantile(0.5);
  const double alone_p99 = quantile(0.99);
  add("batch", 50, 1, {.kernel = microseconds(800)});
  wait_until_ready();
  board_->latency_count = 0;
  os::sleep_for(Seconds{2.5});
  std::printf("latency alone p50 %.0f p99 %.0f us, beside a batch job p50 %.0f p99 %.0f us\n",
              alone_p50 * 1e6, alone_p99 * 1e6, quantile(0.5) * 1e6, quantile(0.99) * 1e6);
  EXPECT_GT(board_->latency_count, 100U);
  EXPECT_LT(quantile(0.5), 1.1 * alone_p50 + 800e-6);
  const Time now = clock_now();
  EXPECT_GT(share(device_.log(), pids_[1], now - seconds(1), now), 0.3) << "the batch job works";
}

}  // namespace
}  // namespace regatta::gpu_time
