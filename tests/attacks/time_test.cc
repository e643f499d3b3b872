// Programs that try to get more of the device's time than their tenant's part, beside one that
// launches without a pause. The device's own log says what each got.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string attack(const std::string& name) {
  return std::string(REGATTA_ATTACKS) + "/regatta-attack-" + name;
}

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
  // What the neighbour lost of half of the device, in points of the time that the device worked.
  void expect_half(Time how_long, double tolerance) {
    machine_.wait_until_ready();
    os::sleep_for(Seconds{0.5});
    const Time begin = clock_now();
    const Time end = begin + how_long;
    sleep_until(end);
    const std::vector<Interval> log = machine_.log();
    Time all{};
    for (const Interval& one : log)
      all += std::max(Time{}, std::min(one.end, end) - std::max(one.start, begin));
    const double busy =
        std::chrono::duration<double>(all) / std::chrono::duration<double>(how_long);
    const double honest = share(log, machine_.pid(0), begin, end);
    std::printf("honest %.4f, attack %.4f, idle %.4f\n", honest, busy - honest, 1 - busy);
    EXPECT_NEAR(honest / busy, 0.5, tolerance);
  }

  TimeSharedMachine machine_;
};

TEST_F(TimeAttack, DISABLED_ProcessesThatEndAfterOneKernelAreCharged) {
  run_flood();
  run_attack("short_processes", {"20000000", "1"});
  expect_half(seconds(3), 0.02);
}

}  // namespace
}  // namespace regatta::gpu_time
