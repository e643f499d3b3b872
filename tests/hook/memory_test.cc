// Programs that know nothing of a quota are held to it, and what the books say is what the device
// says, after each way to take memory or to give it back.
#include <gmock/gmock.h>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_PROGRAM;
const std::string kLinked = kProgram + "-linked";

struct Way {
  const char* name;
  HookMode how;
  std::string program;
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

class HookedMemory : public testing::TestWithParam<Way> {};

TEST_P(HookedMemory, IsCountedAsTheDeviceCountsIt) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {GetParam().program, "memory"},
                        environment_on(device, GetParam().how));
  const int steps = follow_steps(program, [&](const std::string& line) {
    EXPECT_EQ(daemon.memory("used_bytes"), static_cast<long long>(device.used_bytes())) << line;
  });
  EXPECT_GT(steps, 25);
  EXPECT_EQ(program.finish(), 0);
}

TEST_P(HookedMemory, EndsAtTheQuota) {
  const DeviceProcess device({"--memory", "1GiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB,
                        {GetParam().program, "take", std::to_string(2 * kMiB)},
                        environment_on(device, GetParam().how));
  EXPECT_EQ(program.read_line(), "50, then 2");
  EXPECT_EQ(device.used_bytes(), 100 * kMiB);
  EXPECT_EQ(daemon.memory("used_bytes"), static_cast<long long>(100 * kMiB));
  EXPECT_EQ(program.finish(), 0);
}

TEST_P(HookedMemory, ComesFromTheWrappersAsLaunchesDo) {
  const DeviceProcess device({"--memory", "1GiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {GetParam().program, "use"},
                        environment_on(device, GetParam().how));
  EXPECT_EQ(program.read_line(), "7");  // as the gate counts them
  EXPECT_EQ(program.finish(), 0);
}

TEST_P(HookedMemory, ThatProcessesShowEachOtherIsCountedOnceAsTheDeviceDoes) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {GetParam().program, "share"},
                        environment_on(device, GetParam().how));
  const int steps = follow_steps(program, [&](const std::string& line) {
    EXPECT_TRUE(accounting_matches(device, daemon, Seconds{20.0})) << line;
  });
  EXPECT_EQ(steps, 17);
  EXPECT_EQ(program.finish(), 0);
}

TEST_P(HookedMemory, ThatTheRuntimeLibraryTakesByItsTableIsCountedAsTheDeviceCountsIt) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {GetParam().program, "runtime"},
                        environment_on(device, GetParam().how));
  const int steps = follow_steps(program, [&](const std::string& line) {
    EXPECT_EQ(daemon.memory("used_bytes"), static_cast<long long>(device.used_bytes())) << line;
  });
  EXPECT_EQ(steps, 8);
  EXPECT_EQ(program.finish(), 0);
}

TEST_P(HookedMemory, IsNotToBeHadInAContextThatIsMoreThanTheQuota) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 8 * kMiB, {GetParam().program, "too-large"},
                        environment_on(device, GetParam().how));
  EXPECT_EQ(program.read_line(), "0 wrong");
  EXPECT_EQ(program.finish(), 0);
}

// As the runtime library loads them, which nobody can undo: their kernels are not to be had.
TEST_P(HookedMemory, IsMissedByAModuleThatIsMoreThanTheQuota) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 14 * kMiB, {GetParam().program, "large-module"},
                        environment_on(device, GetParam().how));
  EXPECT_EQ(program.read_line(), "0 wrong");
  EXPECT_EQ(program.finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, HookedMemory,
                         testing::Values(Way{"opened", HookMode::kPreloaded, kProgram},
                                         Way{"linked", HookMode::kPreloaded, kLinked},
                                         Way{"replaced", HookMode::kReplaced, kProgram},
                                         Way{"replaced and linked", HookMode::kReplaced, kLinked}));

TEST(HookedProgram, OutsideAnyTenantMayNotUseTheDriver) {
  const DeviceProcess device({"--memory", "1GiB"});
  const ProgramResult done = run({kProgram, "take", std::to_string(2 * kMiB)},
                                 environment_on(device, HookMode::kPreloaded));
  EXPECT_THAT(done.output, testing::StartsWith("0, then 800\n"));
  EXPECT_EQ(device.used_bytes(), 0U);
}

}  // namespace
}  // namespace regatta::hook_test
