// A driver that fails, is slow, or loses its device: the program hears what the driver said, the
// books hold what the device holds, and nobody else is touched.
#include <gmock/gmock.h>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

using testing::StartsWith;

const std::string kProgram = REGATTA_PROGRAM;

std::vector<std::string> with_faults(const DeviceProcess& device, const std::string& faults) {
  std::vector<std::string> environment = environment_on(device, HookMode::kPreloaded);
  environment.push_back("REGATTA_STANDIN_FAULTS=" + faults);
  return environment;
}

// Its tenant ends with a program.
bool is_gone(const sharing::TestDaemon& daemon) {
  const Seconds end = os::monotonic_now() + Seconds{20.0};
  while (daemon.memory("used_bytes") != -1 && os::monotonic_now() < end)
    os::sleep_for(Seconds{0.01});
  return daemon.memory("used_bytes") == -1;
}

class DriverFault : public testing::Test {
 protected:
  // The program's output at its three stops; at each the ledger has what the device has, or more by
  // at most the allowed difference.
  std::vector<std::string> run(const std::string& faults, long long more = 0) {
    TenantProgram program(daemon_, "a", 100 * kMiB, {kProgram, "faults"},
                          with_faults(device_, faults));
    std::vector<std::string> lines;
    for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
      lines.push_back(line);
      const long long beyond =
          daemon_.memory("used_bytes") - static_cast<long long>(device_.used_bytes());
      EXPECT_TRUE(beyond >= 0 && beyond <= more) << beyond << ", " << faults << ": " << line;
      program.go_on();
    }
    EXPECT_EQ(program.finish(), 0) << faults;
    EXPECT_TRUE(is_gone(daemon_)) << faults;
    lines.resize(3);
    return lines;
  }

  const DeviceProcess device_{{"--memory", "1GiB", "--context-memory", "10MiB"}};
  const sharing::TestDaemon daemon_;
};

TEST_F(DriverFault, NoneLeavesNothingBehind) {
  const auto lines = run("");
  EXPECT_EQ(lines[0], "start 0 0");
  EXPECT_EQ(lines[1], "addresses 0 0 0 0, pool 0 0, handles 0 0, arrays 0 0");
  EXPECT_EQ(lines[2], "addresses 0 0 0 0, pool 0 0 0, handles 0 0, arrays 0 0");
}

TEST_F(DriverFault, OfAnAllocationIsTheDriversAndTakesNothing) {
  const auto lines =
      run("cuMemAlloc_v2:3=2,cuMemAllocAsync:1=2,cuMemCreate:2=2,cuArrayCreate_v2:1=2");
  EXPECT_EQ(lines[1], "addresses 0 0 2 0, pool 2 0, handles 0 2, arrays 2 0");
  EXPECT_EQ(lines[2], "addresses 0 0 0, pool 0 0, handles 0, arrays 0");
}

TEST_F(DriverFault, OfAReleaseLeavesTheMemoryInTheLedger) {
  const auto lines =
      run("cuMemFree_v2:2=999,cuMemFreeAsync:1=999,cuMemRelease:1=999,cuArrayDestroy:2=999");
  EXPECT_EQ(lines[2], "addresses 0 999 0 0, pool 999 0 0, handles 999 0, arrays 0 999");
}

TEST_F(DriverFault, OfAContextTakesNothing) {
  EXPECT_EQ(run("cuCtxCreate_v2:1=2")[0], "start 0 2");
}

// The hook asks the driver for the size of a pool; where the driver does not tell, the requested
// size counts.
TEST_F(DriverFault, ToSayWhatAPoolHoldsCountsWhatWasAskedOfIt) {
  const auto lines =
      run("cuMemPoolGetAttribute:1+=999,cuMemPoolTrimTo:1+=999", 2 * 4 * static_cast<int>(kMiB));
  EXPECT_THAT(lines[1], testing::HasSubstr("pool 0 0"));
}

TEST_F(DriverFault, OfOneTenantIsNotAnothers) {
  TenantProgram other(daemon_, "b", 50 * kMiB, {kProgram, "faults"},
                      with_faults(device_, "cuMemAlloc_v2:1+=2"));
  EXPECT_EQ(other.read_line(), "start 0 0");
  other.go_on();
  EXPECT_THAT(other.read_line(), StartsWith("addresses 2 2 2 2, pool 0 0"));
  TenantProgram healthy(daemon_, "a", 100 * kMiB, {kProgram, "faults"}, with_faults(device_, ""));
  EXPECT_EQ(healthy.read_line(), "start 0 0");
  healthy.go_on();
  EXPECT_EQ(healthy.read_line(), "addresses 0 0 0 0, pool 0 0, handles 0 0, arrays 0 0");
}

TEST_F(DriverFault, ByWhichACallIsSlowHoldsNoOtherThreadUp) {
  TenantProgram program(daemon_, "a", 100 * kMiB, {kProgram, "slow"},
                        with_faults(device_, "cuMemAlloc_v2:1~5000000"));
  EXPECT_EQ(program.read_line(), "100 beside it");
  EXPECT_EQ(daemon_.memory("used_bytes"), static_cast<long long>(device_.used_bytes()));
  program.go_on();
  EXPECT_EQ(program.finish(), 0);
}

// The driver tells its size only while nothing else changes; a waiting program changes nothing.
TEST(LostDaemon, LetsAContextBeCountedWhileAnotherThreadWaitsForIt) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "waits"}, with_faults(device, ""));
  EXPECT_EQ(program.read_line(), "20 MiB spare");
  daemon.kill();
  program.go_on();
  EXPECT_EQ(program.read_line(), "90");
  daemon.start();
  program.go_on();
  EXPECT_EQ(program.read_line(), "0 30");
  EXPECT_EQ(daemon.memory("used_bytes"), static_cast<long long>(device.used_bytes()));
  program.go_on();
  EXPECT_EQ(program.finish(), 0);
}

// Memory that was allowed is held, so it counts as soon as there is a daemon to count it, up to the
// quota, and no more can be had beside it.
TEST(DaemonFault, LetsMemoryPassThatIsCountedWhenTheDaemonIsThereAgain) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  sharing::TestDaemon daemon;
  for (const long long quota : {44, 30}) {
    TenantProgram program(daemon, "a", static_cast<std::uint64_t>(quota) * kMiB,
                          {kProgram, "outage"}, environment_on(device, HookMode::kPreloaded));
    ASSERT_EQ(program.read_line(), "ready");
    ASSERT_TRUE(daemon.query({{"request", "set"}, {"name", "a"}, {"on_fault", "open"}}));
    daemon.kill();
    program.go_on();
    EXPECT_EQ(program.read_line(), "taken 0 0 0");
    daemon.start();
    const auto before = daemon.memory("used_bytes");
    EXPECT_LT(before, static_cast<long long>(device.used_bytes()));
    program.go_on();
    EXPECT_EQ(program.read_line(), "waited 0");
    if (quota == 44) {
      EXPECT_TRUE(accounting_matches(device, daemon, Seconds{5.0}));
    } else {
      EXPECT_EQ(daemon.memory("used_bytes"), quota * static_cast<long long>(kMiB));
    }
    program.go_on();
    EXPECT_EQ(program.read_line(), "more 2");
    program.go_on();
    EXPECT_EQ(program.read_line(), "freed");
    EXPECT_TRUE(accounting_matches(device, daemon, Seconds{5.0}));
    program.go_on();  // what was owed is not taken for part of a context
    EXPECT_EQ(program.read_line(), "context 0");
    EXPECT_TRUE(accounting_matches(device, daemon, Seconds{5.0}));
    program.go_on();  // the daemon has our ends of its pipes, too, so their end says nothing
    EXPECT_EQ(program.finish(), 0);
    EXPECT_TRUE(is_gone(daemon));
  }
}

// It is there, so its socket is, too, and nobody hears what is asked. It may be kept busy by
// the program itself, so nothing is given.
TEST(DaemonFault, ByWhichItHangsGivesNothing) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "hang"},
                        environment_on(device, HookMode::kPreloaded));
  ASSERT_EQ(program.read_line(), "ready");
  ASSERT_TRUE(daemon.query({{"request", "set"}, {"name", "a"}, {"on_fault", "open"}}));
  daemon.stop();
  program.go_on();
  EXPECT_EQ(program.read_line(), "taken 2");
  daemon.go_on();
}

TEST(DaemonFault, ByWhichItHangsHoldsNobodyUpWhoWaitsForWork) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "hang"},
                        environment_on(device, HookMode::kPreloaded));
  ASSERT_EQ(program.read_line(), "ready");
  ASSERT_TRUE(daemon.query({{"request", "set"}, {"name", "a"}, {"on_fault", "open"}}));
  daemon.kill();
  program.go_on();
  EXPECT_EQ(program.read_line(), "taken 0");
  daemon.start();
  daemon.stop();
  program.go_on();
  const std::string longest_ms = program.read_line();
  EXPECT_LT(std::atoi(longest_ms.c_str()), 1000);
  daemon.go_on();
  program.go_on();
  EXPECT_EQ(program.read_line(), "waited 0");
  EXPECT_TRUE(accounting_matches(device, daemon, Seconds{5.0}));
  program.go_on();
  EXPECT_EQ(program.finish(), 0);
}

TEST(DaemonFault, LetsNoThreadHaveTheQuotaBesideWhatAnotherOneIsPaying) {
  const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
  sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 44 * kMiB, {kProgram, "debts"},
                        environment_on(device, HookMode::kPreloaded));
  ASSERT_EQ(program.read_line(), "ready");
  ASSERT_TRUE(daemon.query({{"request", "set"}, {"name", "a"}, {"on_fault", "open"}}));
  daemon.kill();
  program.go_on();
  EXPECT_EQ(program.read_line(), "taken");
  daemon.start();
  daemon.stop();
  program.go_on();
  EXPECT_EQ(program.read_line(), "asked");
  daemon.go_on();
  program.go_on();
  EXPECT_EQ(program.read_line(), "2 2");
  EXPECT_TRUE(accounting_matches(device, daemon, Seconds{5.0}));
  program.go_on();
  EXPECT_EQ(program.finish(), 0);
}

// The device of a call ends with the call, as a GPU falls off its bus: the program hears that, can
// end, and the daemon takes back what it had.
TEST(LostDevice, IsToldToTheProgramAndItsTenantEnds) {
  const sharing::TestDaemon daemon;
  for (const char* const call : {"cuMemAlloc_v2:3!", "cuMemAllocAsync:1!", "cuMemCreate:1!",
                                 "cuArrayDestroy:1!", "cuCtxSynchronize:1!"}) {
    const DeviceProcess device({"--memory", "1GiB", "--context-memory", "10MiB"});
    TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "faults"}, with_faults(device, call));
    EXPECT_EQ(program.read_line(), "start 0 0");
    program.go_on();
    std::string said;
    for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
      said += line + "; ";
      program.go_on();
    }
    EXPECT_THAT(said, testing::HasSubstr("999")) << call;
    EXPECT_THAT(said, testing::Not(testing::HasSubstr("wrong"))) << call;
    EXPECT_EQ(program.finish(), 0) << call << ": " << said;
    EXPECT_TRUE(is_gone(daemon)) << call;
  }
}

}  // namespace
}  // namespace regatta::hook_test
