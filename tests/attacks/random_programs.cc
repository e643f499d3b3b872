#include "tests/attacks/random_programs.h"

#include <iterator>
#include <random>
#include <vector>

#include "tests/attacks/attack_path.h"
#include "tests/hook/tenant.h"

namespace regatta::attacks {

using hook_test::DeviceProcess;
using hook_test::TenantProgram;

namespace {

// Some calls of functions that take memory fail without memory, or begin late.
std::string random_faults(std::mt19937_64& random) {
  constexpr const char* kFunctions[] = {"cuMemAlloc_v2",     "cuMemAllocPitch_v2",
                                        "cuMemCreate",       "cuArray3DCreate_v2",
                                        "cuMemAllocAsync",   "cuMemAllocFromPoolAsync",
                                        "cuModuleLoadData",  "cuModuleLoadDataEx",
                                        "cuLibraryLoadData", "cuGraphLaunch"};
  std::string faults;
  for (std::uint64_t i = 1 + random() % 5; i > 0; --i)
    faults += (faults.empty() ? "" : ",") +
              std::string(kFunctions[random() % std::size(kFunctions)]) + ":" +
              std::to_string(1 + random() % 20) + (random() % 3 == 0 ? "~2000" : "=2");
  return faults;
}

}  // namespace

std::string run_random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t quota = 20 + random() % 100;
  const std::uint64_t calls = 40 + random() % 120;
  // Some devices are full before the quota is, and some calls fail as the driver's calls may.
  const bool is_small = random() % 4 == 0;
  const std::uint64_t memory = is_small ? quota / 2 + 10 : 1024;
  const DeviceProcess device({"--memory", std::to_string(memory) + "MiB", "--context-memory",
                              random() % 2 == 0 ? "0B" : "4MiB"});
  std::vector<std::string> environment =
      hook_test::environment_on(device, hook_test::HookMode::kPreloaded);
  if (random() % 3 == 0) environment.push_back("REGATTA_STANDIN_FAULTS=" + random_faults(random));
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", quota * hook_test::kMiB,
                        {attack("random_program"), std::to_string(seed), std::to_string(calls),
                         std::to_string(quota), "1", is_small ? "1" : "0"},
                        environment);
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
