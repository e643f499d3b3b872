#include "tests/attacks/random_programs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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

// The last text on standard error.
std::string last_said(int errors) {
  constexpr off_t kMost = 2000;
  const off_t end = ::lseek(errors, 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::min(end, kMost)), '\0');
  const ssize_t count = ::pread(errors, text.data(), text.size(), std::max<off_t>(0, end - kMost));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  return text.empty() ? "" : "\n  said: " + text;
}

// In a process of its own, which takes along all that it started, after a minute or two at the
// latest. `body` returns what went wrong.
std::string run_apart(const std::function<std::string(RandomTotals&)>& body, RandomTotals& totals) {
  auto output = os::make_pipe();
  const pid_t pid = sharing::start_process([&] {
    const os::UniqueFd errors(::memfd_create("errors", MFD_CLOEXEC));
    ::dup2(errors.get(), STDERR_FILENO);
    ::fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
    ::alarm(150);
    RandomTotals own;
    std::string wrong = body(own);
    if (!wrong.empty()) wrong += last_said(errors.get());
    [[maybe_unused]] ssize_t sent = ::write(output->write_end.get(), &own, sizeof own);
    sent = ::write(output->write_end.get(), wrong.data(), wrong.size());
    return 0;
  });
  output->write_end.reset();
  RandomTotals own;
  std::string wrong;
  const bool has_totals = ::read(output->read_end.get(), &own, sizeof own) == sizeof own;
  if (has_totals) totals += own;
  char part[4096];
  for (ssize_t count = 0;
       has_totals && (count = ::read(output->read_end.get(), part, sizeof part)) > 0;)
    wrong.append(part, static_cast<std::size_t>(count));
  const int status = sharing::wait_status(pid);
  return status == 0 ? wrong : "the test itself ended with status " + std::to_string(status);
}

std::string run_alone(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ProgramOptions options{.seed = seed};
  options.quota_mib = 20 + random() % 100;
  options.calls = 40 + random() % 120;
  // Some devices are full before the quota is, and some calls fail as the driver's calls may.
  options.is_small = random() % 4 == 0 ? 1 : 0;
  const std::uint64_t memory = options.is_small != 0 ? options.quota_mib / 2 + 10 : 1024;
  const DeviceProcess device({"--memory", std::to_string(memory) + "MiB", "--context-memory",
                              random() % 2 == 0 ? "0B" : "4MiB"});
  std::vector<std::string> environment =
      hook_test::environment_on(device, hook_test::HookMode::kPreloaded);
  if (random() % 3 == 0) environment.push_back("REGATTA_STANDIN_FAULTS=" + random_faults(random));
  const sharing::TestDaemon daemon;
  TenantProgram program(daemon, "a", options.quota_mib * hook_test::kMiB, command_of(options),
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

}  // namespace

std::string run_random_program(std::uint64_t seed, RandomTotals& totals) {
  return run_apart(
      [&](RandomTotals& own) {
        own.programs = 1;
        return run_alone(seed);
      },
      totals);
}

std::string run_random_round(std::uint64_t seed, int tenants, RandomTotals& totals) {
  return run_apart(
      [&](RandomTotals& own) {
        RandomMachine machine(draw_round(seed, tenants), seed);
        std::string wrong = machine.run();
        own = machine.totals();
        return wrong;
      },
      totals);
}

}  // namespace regatta::attacks
