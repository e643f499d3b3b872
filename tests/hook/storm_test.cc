// Many processes at the quota, and processes that are killed at random: not a byte above the quota
// at any time, not a byte lost, nobody held up.
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_PROGRAM;
constexpr std::uint64_t kQuota = 300 * kMiB;

// Runs the storm and looks at the books whenever it stands still; returns its last line.
std::string run_storm(int workers, int deaths, bool by_steps = false) {
  const DeviceProcess device({"--memory", "1GiB"});
  const sharing::TestDaemon daemon;
  std::vector<std::string> words = {kProgram, "storm", std::to_string(workers),
                                    std::to_string(deaths)};
  if (by_steps) words.emplace_back("steps");
  TenantProgram program(daemon, "a", kQuota, words, environment_on(device, HookMode::kPreloaded));
  std::string last;
  int steps = 0;
  for (std::string line = program.read_line(); !line.empty() && !testing::Test::HasFailure();
       line = program.read_line()) {
    if (!line.starts_with("step ")) {
      last = line;
      continue;
    }
    ++steps;
    EXPECT_TRUE(accounting_matches(device, daemon, Seconds{1.0})) << line << ", step " << steps;
    if (line == "step end") {
      EXPECT_EQ(device.used_bytes(), 0U);
    }
    program.go_on();
  }
  EXPECT_GT(steps, 1);
  if (!testing::Test::HasFailure()) {
    EXPECT_EQ(program.finish(), 0);
  }
  // The stand-in device hears of a death a little after the daemon, and counts the dead until then;
  // a driver frees what a process had before anybody hears of its end.
  if (deaths == 0) {
    EXPECT_LE(device.most_used_bytes(), kQuota);
  }
  EXPECT_GE(device.most_used_bytes(), kQuota / 2);
  std::printf("%s, most %llu MiB of %llu\n", last.c_str(),
              static_cast<unsigned long long>(device.most_used_bytes() / kMiB),
              static_cast<unsigned long long>(kQuota / kMiB));
  return last;
}

long slowest_us(const std::string& line) {
  const std::size_t at = line.rfind("slowest_us ");
  return at == std::string::npos ? -1 : std::atol(line.c_str() + at + 11);
}

TEST(HookStorm, Of64ProcessesAtTheQuotaNeverPassesIt) {
  const std::string line = run_storm(64, 0);
  EXPECT_THAT(line, testing::HasSubstr("wrong 0 "));
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("refusals 0 "))) << "nobody was at the quota";
}

void expect_nobody_was_held_up(const std::string& line) {
  EXPECT_THAT(line, testing::HasSubstr("wrong 0 "));
  EXPECT_GE(slowest_us(line), 0);
  // Where the machine may be busy with other work, a second; where it was set aside, the bar.
  EXPECT_LT(slowest_us(line), std::getenv("REGATTA_STORM_ROUNDS") == nullptr ? 1'000'000 : 100'000);
}

int rounds_or(int few) {
  const char* const rounds = std::getenv("REGATTA_STORM_ROUNDS");
  return rounds == nullptr ? few : std::atoi(rounds);
}

TEST(HookStorm, OfKilledProcessesLosesNothingAndHoldsNobodyUp) {
  expect_nobody_was_held_up(run_storm(8, rounds_or(300)));
}

TEST(HookStorm, OfProcessesThatDieAtACertainInstructionLosesNothingAndHoldsNobodyUp) {
  expect_nobody_was_held_up(run_storm(3, rounds_or(500), true));
}

TEST(HookedProcess, ThatForksGoesOnAndItsChildIsToldAtOnce) {
  const DeviceProcess device({"--memory", "1GiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "fork"},
                        environment_on(device, HookMode::kPreloaded));
  EXPECT_EQ(program.read_line(), "step forked");
  EXPECT_EQ(device.used_bytes(), 40 * kMiB);
  EXPECT_TRUE(accounting_matches(device, daemon, Seconds{1.0}));
  EXPECT_EQ(program.finish(), 0);
}

TEST(HookedProcess, ThatBecomesAnotherProgramStartsWithNothing) {
  const DeviceProcess device({"--memory", "1GiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, "become"},
                        environment_on(device, HookMode::kPreloaded));
  EXPECT_EQ(program.read_line(), "50, then 2");
  EXPECT_EQ(device.used_bytes(), 100 * kMiB);
  EXPECT_TRUE(accounting_matches(device, daemon, Seconds{1.0}));
  EXPECT_EQ(program.finish(), 0);
}

}  // namespace
}  // namespace regatta::hook_test
