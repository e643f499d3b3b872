// The cost of the hook: calls on a driver that does nothing, with and without it, and the first
// call of many processes at once. Prints a table; needs a quiet machine.
#include <cstdio>
#include <cstring>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

struct Costs {
  double launch_ns = 0;
  double small_ns = 0;
  double large_ns = 0;
  double turn_p50_ms = 0;
  double turn_p99_ms = 0;
  double burst_p50_ms = 0;
  double burst_p99_ms = 0;
};

std::vector<std::string> environment(bool is_hooked) {
  std::vector<std::string> all = {std::string("LD_LIBRARY_PATH=") + REGATTA_NULL_DRIVER};
  if (is_hooked) all.push_back(std::string("LD_PRELOAD=") + REGATTA_HOOK);
  return all;
}

Costs measure(const sharing::TestDaemon& daemon, bool is_hooked, int processes) {
  static int number = 0;
  constexpr std::uint64_t kQuota = 1ULL << 40;
  Costs costs;
  TenantProgram calls(daemon, "calls-" + std::to_string(++number), kQuota,
                      {REGATTA_PROGRAM, "cost"}, environment(is_hooked));
  const std::string line = calls.read_line();
  if (std::sscanf(line.c_str(), "launch %lf small %lf large %lf", &costs.launch_ns, &costs.small_ns,
                  &costs.large_ns) != 3 ||
      calls.finish() != 0)
    std::printf("no figures: %s\n", line.c_str());
  const auto start = [&](std::vector<std::string> words, double& p50_ms, double& p99_ms) {
    TenantProgram starts(daemon, "starts-" + std::to_string(++number), kQuota, words,
                         environment(is_hooked));
    const std::string times = starts.read_line();
    if (std::sscanf(times.c_str(), "p50 %lf p99 %lf", &p50_ms, &p99_ms) != 2 ||
        starts.finish() != 0)
      std::printf("no figures: %s\n", times.c_str());
  };
  const std::string count = std::to_string(processes);
  start({REGATTA_PROGRAM, "start-cost", count, "turns"}, costs.turn_p50_ms, costs.turn_p99_ms);
  start({REGATTA_PROGRAM, "start-cost", count}, costs.burst_p50_ms, costs.burst_p99_ms);
  return costs;
}

void print_row(const char* name, const char* unit, double plain, double hooked, double bar) {
  std::printf("%-38s %9.3f %9.3f %9.3f %6s  bar %g\n", name, plain, hooked, hooked - plain, unit,
              bar);
}

}  // namespace
}  // namespace regatta::hook_test

int main() {
  using namespace regatta::hook_test;
  constexpr int kProcesses = 256;
  const regatta::sharing::TestDaemon daemon;
  // A tenant that is alone is never held back.
  if (!daemon.query({{"request", "policy"}, {"policy", "burst-weight"}})) return 1;
  const Costs plain = measure(daemon, false, kProcesses);
  const Costs hooked = measure(daemon, true, kProcesses);
  std::printf("%-38s %9s %9s %9s\n", "", "plain", "hooked", "added");
  print_row("a launch", "ns", plain.launch_ns, hooked.launch_ns, 60);
  print_row("an allocation of 512 B and its release", "ns", plain.small_ns, hooked.small_ns, 1000);
  print_row("one of 20 MiB and its release", "ns", plain.large_ns, hooked.large_ns, 1000);
  print_row("cuInit, 256 processes in turn, p50", "ms", plain.turn_p50_ms, hooked.turn_p50_ms, 5);
  print_row("cuInit, 256 processes in turn, p99", "ms", plain.turn_p99_ms, hooked.turn_p99_ms, 5);
  print_row("cuInit, 256 at one moment, p50", "ms", plain.burst_p50_ms, hooked.burst_p50_ms, 5);
  print_row("cuInit, 256 at one moment, p99", "ms", plain.burst_p99_ms, hooked.burst_p99_ms, 5);
  return 0;
}
