// Programs that try to get more of the device's time than their tenant's part, beside one that
// launches without a pause. The device's own log says what each got.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/attacks/attack_path.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TimeAttack : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(machine_.stop_all(), 0); }

  // The honest neighbour, the first program.
  void run_flood() {
    machine_.run({.name = "honest", .compute = "50"}, {.kernel = microseconds(500)});
  }
  void run_attack(const std::string& name, std::vector<std::string> words) {
    words.insert(words.begin(), attack(name));
    machine_.run_program({.name = "attack", .compute = "50", .is_unprivileged = true}, words);
  }
  // The neighbour has half of the time that the device worked.
  void expect_half(Time how_long, double tolerance) {
    machine_.wait_until_ready();
    os::sleep_for(Seconds{0.5});
    const Time begin = clock_now();
    const Time end = begin + how_long;
    sleep_until(end);
    const std::vector<Interval> log = machine_.log();
    const double busy = busy_share(log, begin, end);
    const double honest = share(log, machine_.pid(0), begin, end);
    std::printf("honest %.4f, attack %.4f, idle %.4f\n", honest, busy - honest, 1 - busy);
    EXPECT_NEAR(honest / busy, 0.5, tolerance);
  }

  // The first programs have these parts of the whole time.
  void expect_parts(const std::vector<double>& parts, Time how_long) {
    machine_.wait_until_ready();
    const Time begin = clock_now();
    sleep_until(begin + how_long);
    const std::vector<Interval> log = machine_.log();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double part = share(log, machine_.pid(i), begin, begin + how_long);
      std::printf("part %.3f: %.4f\n", parts[i], part);
      EXPECT_NEAR(part, parts[i], 0.05) << i;
    }
  }

  TimeSharedMachine machine_;
};

TEST_F(TimeAttack, ProcessesThatEndAfterOneKernelAreCharged) {
  run_flood();
  run_attack("short_processes", {"20000000", "1"});
  expect_half(seconds(3), 0.04);
}

TEST_F(TimeAttack, KernelsOfTwoLengthsInTheBeatOfSamplesAreChargedForAllOfThem) {
  run_flood();
  run_attack("launch_pattern", {"every-8th-short"});
  expect_half(seconds(2), 0.05);
}

TEST_F(TimeAttack, ATenantOfSeveralProcessesHasItsPartAndNoMore) {
  machine_.set_policy("equal");
  run_flood();
  run_attack("many_processes", {"200000", "8"});
  expect_half(seconds(2), 0.04);
}

// Its own waits count as its time, so it has its part of what it reaches alone.
TEST_F(TimeAttack, WhoWaitsForEachKernelHasItsPartBesideOneThatNeverWaits) {
  machine_.set_policy("burst-weight");
  machine_.run({.name = "waits", .compute = "1", .weight = 9},
               {.kernel = microseconds(500), .pause = microseconds(1)});
  machine_.wait_until_ready();
  const Time begin = clock_now();
  sleep_until(begin + milliseconds(700));
  const double alone = share(machine_.log(), machine_.pid(0), begin, clock_now());
  machine_.run({.name = "flood", .compute = "1"}, {.kernel = microseconds(500)});
  expect_parts({0.9 * alone, 0.1}, seconds(2));
}

TEST_F(TimeAttack, AKernelThatNeverEndsIsReportedAsBusy) {
  machine_.run_program({.name = "endless", .is_unprivileged = true}, {attack("endless_kernel")});
  os::sleep_for(Seconds{2.0});
  const auto listing = machine_.daemon().query({{"request", "ps"}});
  ASSERT_TRUE(listing);
  EXPECT_GT((*listing)["tenants"][0]["time"][0]["last_second_percent"].get<double>(), 90);
}

TEST_F(TimeAttack, AStoppedProcessLosesItsTurnWithin20Milliseconds) {
  machine_.set_policy("burst-weight");  // the others may use all of the time
  run_flood();
  machine_.run({.name = "stops", .compute = "1"}, {.kernel = milliseconds(1)});
  machine_.wait_until_ready();
  ASSERT_EQ(::kill(machine_.pid(1), SIGSTOP), 0);
  const Time stopped = clock_now();
  sleep_until(stopped + milliseconds(500));
  ASSERT_EQ(::kill(machine_.pid(1), SIGCONT), 0);
  sleep_until(stopped + milliseconds(1500));
  const std::vector<Interval> log = machine_.log();
  EXPECT_LT(longest_wait(log, machine_.pid(0), stopped, stopped + milliseconds(500)),
            milliseconds(20));
  // Then it goes on as before.
  EXPECT_GT(share(log, machine_.pid(1), stopped + milliseconds(700), stopped + milliseconds(1500)),
            0.4);
}

}  // namespace
}  // namespace regatta::gpu_time
