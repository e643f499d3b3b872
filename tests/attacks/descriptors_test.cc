// Programs without descriptors of their own for the hook, or that take the hook's.
#include <string>

#include <gmock/gmock.h>

#include "tests/attacks/attack_path.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DescriptorAttack : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(machine_.stop_all(), 0); }

  // The part of a second that a program without descriptors has beside a flood; its own is 10 %.
  double share_without_descriptors(const std::string& limit) {
    machine_.run({.name = "honest", .compute = "90"}, {.kernel = milliseconds(1)});
    machine_.wait_until_ready();
    machine_.run_program({.name = "attack", .compute = "10", .is_unprivileged = true},
                         {attack("no_descriptors"), "1000000", "4000", limit});
    os::sleep_for(Seconds{1.5});  // a second after its daemon is dead a gate is open
    const Time begin = clock_now();
    const Time end = begin + seconds(2);
    sleep_until(end);
    const std::vector<Interval> log = machine_.log();
    const double honest = share(log, machine_.pid(0), begin, end);
    const double others = busy_share(log, begin, end) - honest;
    std::printf("honest %.4f, attack %.4f\n", honest, others);
    return others;
  }

  TimeSharedMachine machine_;
};

// A leak of an honest program: it goes on, within its part.
TEST_F(DescriptorAttack, AfterALeakAProgramHasItsPart) {
  const double part = share_without_descriptors("leak");
  EXPECT_GT(part, 0.05);
  EXPECT_LT(part, 0.12);
}

TEST_F(DescriptorAttack, ALimitOfDescriptorsOpensNoGate) {
  // It launches or is refused, as the descriptors are that it inherited.
  EXPECT_LT(share_without_descriptors("9"), 0.12);
}

TEST_F(DescriptorAttack, SocketsUnderTheLibrarysNumbersAreLeftAlone) {
  const pid_t program = machine_.run_program(
      {.name = "attack", .compute = "50", .is_unprivileged = true}, {attack("reused_descriptors")});
  EXPECT_EQ(sharing::wait_status(program), 0);
}

}  // namespace
}  // namespace regatta::gpu_time
