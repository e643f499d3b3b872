#include "tests/attacks/random_programs.h"

#include <random>

#include "tests/hook/tenant.h"

namespace regatta::attacks {

using hook_test::DeviceProcess;
using hook_test::TenantProgram;

std::string run_random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t quota = 20 + random() % 100;
  const std::uint64_t calls = 40 + random() % 120;
  const DeviceProcess device(
      {"--memory", "1GiB", "--context-memory", random() % 2 == 0 ? "0B" : "4MiB"});
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", quota * hook_test::kMiB,
                        {std::string(REGATTA_ATTACKS) + "/regatta-attack-random_program",
                         std::to_string(seed), std::to_string(calls), std::to_string(quota), "1"},
                        hook_test::environment_on(device, hook_test::HookMode::kPreloaded));
  std::string failure;
  for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
    if (!line.starts_with("step ")) {
      failure += line + "; ";
      continue;
    }
    const auto matches = hook_test::accounting_matches(device, daemon, Seconds{5.0});
    if (!matches) failure += "after " + line.substr(5) + ": " + matches.message() + "; ";
    if (!failure.empty()) break;
    program.go_on();
  }
  if (!failure.empty()) {
    program.kill();
    return failure;
  }
  const int status = program.finish();
  return status == 0 ? "" : "it ended with status " + std::to_string(status);
}

}  // namespace regatta::attacks
