// A program of the CUDA runtime library as a tenant: it sees its quota, is held to it, and what the
// books say is what the device says after each of its parts.
#include <gmock/gmock.h>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_CUDART_PROGRAM;
const std::string kOwn = REGATTA_CUDART_OWN;
const std::string kReal = REGATTA_CUDART_REAL;

// With the runtime library of a folder, and the driver or what takes its place.
std::vector<std::string> with(const std::string& runtime, const DeviceProcess& device,
                              HookMode how) {
  std::vector<std::string> environment = environment_on(device, how);
  for (std::string& one : environment)
    if (one.starts_with("LD_LIBRARY_PATH=")) one += ":" + runtime;
  return environment;
}

TEST(CudaRuntimeProgram, WorksOnTheStandInDriver) {
  const DeviceProcess device({"--memory", "128MiB", "--context-memory", "10MiB"});
  const ProgramResult done = run({kProgram}, with(kOwn, device, HookMode::kPlain));
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.output,
            "runtime 11080, total 134217728, free 123731968\n"
            "took 7 pieces of 16777216, then 2\n"
            "launches: not held\n"
            "0 wrong\n");
}

class HookedCudaRuntime : public testing::TestWithParam<HookMode> {};

TEST_P(HookedCudaRuntime, IsCountedAsTheDeviceCountsItAndEndsAtTheQuota) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "steps"},
                        with(kOwn, device, GetParam()));
  std::string said;
  const int steps = follow_steps(
      program,
      [&](const std::string& line) {
        EXPECT_EQ(daemon.memory("used_bytes"), static_cast<long long>(device.used_bytes())) << line;
      },
      &said);
  EXPECT_EQ(program.finish(), 0);
  EXPECT_EQ(steps, 12);
  // 3 launches, 2 of a graph, 100 in two threads, 1 after the reset.
  EXPECT_EQ(said,
            "runtime 11080, total 104857600, free 94371840\n"
            "took 5 pieces of 16777216, then 2\n"
            "launches: 106 held\n"
            "0 wrong\n");
}

INSTANTIATE_TEST_SUITE_P(Ways, HookedCudaRuntime,
                         testing::Values(HookMode::kPreloaded, HookMode::kReplaced),
                         [](const auto& way) {
                           return way.param == HookMode::kPreloaded ? "preloaded" : "replaced";
                         });

// It tests whether the driver is NVIDIA's, by a table that the stand-in does not have. Up to there
// it comes, and the hook changes nothing of that.
TEST(NvidiasRuntime, ComesToItsTestOfTheDriverAndTakesNoOther) {
  if (::access((kReal + "/libcudart.so.11.0").c_str(), R_OK) != 0)
    GTEST_SKIP() << "no libcudart.so.11.0 in " << kReal << "; scripts/cuda-runtime.sh fetches it";
  const DeviceProcess device({"--memory", "128MiB"});
  const sharing::TestDaemon daemon;
  const ProgramResult plain = run({kProgram}, with(kReal, device, HookMode::kPlain));
  EXPECT_EQ(plain.output,
            "not run: the library takes no driver here: 500, named symbol not found\n");
  EXPECT_EQ(plain.status, 77);
  for (const HookMode how : {HookMode::kPreloaded, HookMode::kReplaced}) {
    TenantProgram program(daemon, "a", 100 * kMiB, {kProgram}, with(kReal, device, how));
    EXPECT_EQ(program.read_line() + "\n", plain.output);
    EXPECT_EQ(program.finish(), 77);
  }
}

}  // namespace
}  // namespace regatta::hook_test
