// bench/fault_simulation/main.cc: the controller and its agents in virtual time under drawn faults.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "regatta/platform/fault_simulation/fault_simulation.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::fault_simulation {
namespace {

constexpr const char* kUsage =
    "usage: regatta-fault-simulation [--nodes N] [--jobs N] [--hours H] [--seeds N] [--first-seed "
    "S] [--calm]\n"
    "Faults are drawn for each hour: 120 kills of the controller, and for each 8 nodes 240 kills "
    "of\n"
    "agents, 20 reboots, 240 cuts and 40 partitions, at most 10 times so many; --calm: none.\n"
    "Example: regatta-fault-simulation --nodes 10000 --jobs 20000 --seeds 1\n";

FaultRates faults_of(int nodes) {
  const double scale = std::min(10.0, nodes / 8.0);
  return {.controller_kills = 120,
          .agent_kills = 240 * scale,
          .reboots = 20 * scale,
          .cut_connections = 240 * scale,
          .partitions = 40 * scale,
          .partition_time = Seconds{40},
          .double_sends = 0.2};
}

Status run(bench_program::Arguments arguments) {
  FaultSimulationOptions options;
  REGATTA_TRY(nodes, bench_program::take_number(arguments, "--nodes", 8, {1, 100'000}));
  REGATTA_TRY(jobs, bench_program::take_number(arguments, "--jobs", 100, {1, 1'000'000}));
  REGATTA_TRY(hours, bench_program::take_number(arguments, "--hours", 1, {1, 1000}));
  REGATTA_TRY(seeds, bench_program::take_number(arguments, "--seeds", 10, {1, 1'000'000'000}));
  REGATTA_TRY(first, bench_program::take_number(arguments, "--first-seed", 1, {0, 1'000'000'000}));
  const bool is_calm = bench_program::take_flag(arguments, "--calm");
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 0));
  REGATTA_TRY(policy, sched::find_scheduling_policy("regatta"));
  options.nodes = nodes;
  options.jobs = jobs;
  options.length = Seconds{3600.0 * hours};
  // The controller gives its scheduler a fifth of a core: at 10,000 nodes a decision in 2 s.
  options.decision_interval = Seconds{std::max(0.5, nodes / 5000.0)};
  if (!is_calm) options.faults = faults_of(nodes);
  for (int i = 0; i < seeds; ++i) {
    options.seed = static_cast<std::uint64_t>(first + i);
    const std::clock_t before = std::clock();
    REGATTA_TRY(result, simulate(options, policy));
    fmt::print(
        "seed {}: {:.0f} s virtual, {} jobs ({} succeeded, {} failed, {} cancelled), {} attempts; "
        "kills {} controller, {} agent; {} reboots, {} cuts, {} partitions; {} events in {:.2f} s; "
        "hash {:016x}\n",
        options.seed, result.ended.value, result.acknowledged, result.succeeded, result.failed,
        result.cancelled, result.attempts, result.controller_kills, result.agent_kills,
        result.reboots, result.cuts, result.partitions, result.events,
        static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, result.state_hash);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace regatta::fault_simulation

int main(int count, char** values) {
  return regatta::bench_program::run_program(count, values, regatta::fault_simulation::kUsage, 0,
                                             regatta::fault_simulation::run);
}
