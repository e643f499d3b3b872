// bench/cluster_replay/main.cc: replays public traces with policies of the scheduler and prints
// tables.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "bench/bench_program.h"
#include "bench/cluster_replay/replay_table.h"
#include "regatta/base/core/text.h"

namespace regatta::cluster_replay {
namespace {

constexpr std::size_t kMostArguments = 100;
constexpr const char* kUsage =
    "usage: regatta-cluster-replay FOLDER [--json] [--jobs N] [--predict-every N] [--policy NAME]\n"
    "       [--curves FILE] [--interference K] [REPLAY...]\n"
    "FOLDER holds philly/, dlrm/ and gentd/. REPLAY is philly, philly692, philly626, philly786,\n"
    "spot or mixed;\n"
    "by default all. NAME is a policy of philly, or part of a label of spot. One waiting job in 20 "
    "is\n"
    "predicted; 0: none\n";

Status run(bench_program::Arguments arguments) {
  BenchOptions bench;
  bench.as_json = bench_program::take_flag(arguments, "--json");
  const IntRange counts{0, std::numeric_limits<int>::max()};
  REGATTA_TRY(jobs, bench_program::take_number(arguments, "--jobs", bench.jobs, counts));
  REGATTA_TRY(every, bench_program::take_number(arguments, "--predict-every", bench.predicted_every,
                                                counts));
  REGATTA_TRY(policy, bench_program::take_option(arguments, "--policy"));
  REGATTA_TRY(curves, bench_program::take_option(arguments, "--curves"));
  REGATTA_TRY(interference, bench_program::take_option(arguments, "--interference"));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, kMostArguments));
  if (arguments.empty()) return Error{Code::kInvalidInput, "no folder of traces; see --help"};
  bench.jobs = jobs;
  bench.predicted_every = every;
  bench.policy = policy.value_or("");
  bench.curves = curves.value_or("");
  if (interference) {
    const auto factor = parse_number<double>(*interference);
    if (!factor || !(*factor >= 0 && *factor <= 2))
      return Error{Code::kInvalidInput, "--interference: give a number from 0 to 2"};
    bench.interference = *factor;
  }
  bench.folder = arguments.front();
  bench.only.assign(arguments.begin() + 1, arguments.end());
  const bool has_philly = bench.only.empty() ||
                          std::any_of(bench.only.begin(), bench.only.end(),
                                      [](const auto& name) { return name.starts_with("philly"); });
  if (has_philly) REGATTA_TRY_DO(replay_philly(bench));
  const bool has_spot =
      bench.only.empty() || std::any_of(bench.only.begin(), bench.only.end(),
                                        [](const auto& name) { return name.starts_with("spot"); });
  if (has_spot) REGATTA_TRY_DO(replay_spot(bench));
  if (bench.has("mixed")) REGATTA_TRY_DO(replay_mixed(bench));
  return {};
}

}  // namespace
}  // namespace regatta::cluster_replay

int main(int argc, char** argv) {
  return regatta::bench_program::run_program(argc, argv, regatta::cluster_replay::kUsage, 1,
                                             regatta::cluster_replay::run);
}
