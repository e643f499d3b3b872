// regatta-linearizability: concurrent clients of a real controller that is killed and started
// again; their history is checked operation by operation. See README.md.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "bench/bench_program.h"
#include "bench/platform_proofs/linearizability_checker.h"
#include "bench/platform_proofs/object_models.h"
#include "bench/platform_proofs/platform_programs.h"
#include "bench/platform_proofs/recorded_history.h"
#include "regatta/base/os/clock.h"

namespace regatta::platform_proofs {
namespace {

constexpr const char* kUsage =
    "usage: regatta-linearizability [--operations N] [--clients N] [--seed N] [--kill-every MS]\n"
    "Example: regatta-linearizability --operations 1000000 --clients 32 --kill-every 2000\n";

struct Totals {
  std::size_t anomalies = 0;
  std::size_t undecided = 0;
  std::size_t configurations = 0;
};

template <typename Model>
void check(const std::string& name,
           const std::vector<TimedOperation<typename Model::Operation>>& history, Totals& totals) {
  const HistoryReport report = LinearizabilityChecker<Model>(history, {}).check();
  totals.configurations = std::max(totals.configurations, report.configurations);
  if (report.verdict == HistoryVerdict::kLinearizable) return;
  const bool is_anomaly = report.verdict == HistoryVerdict::kAnomaly;
  ++(is_anomaly ? totals.anomalies : totals.undecided);
  fmt::print("{}: operation {} of {} {}\n", name, report.operation, history.size(),
             is_anomaly ? "has an answer that no order explains" : "is where the search gave up");
}

Totals check_history(const RecordedHistory& history) {
  Totals totals;
  std::map<std::uint32_t, std::vector<TimedOperation<JobOperation>>> jobs;
  for (const RecordedJobOperation& each : history.jobs)
    jobs[each.job].push_back(each.timed);
  for (const auto& [job, operations] : jobs)
    check<JobModel>(fmt::format("job j{}", job), operations, totals);
  check<IntentModel>("intents of nodes", history.intents, totals);
  for (const std::string& sentence : list_anomalies(history)) {
    ++totals.anomalies;
    fmt::print("{}\n", sentence);
  }
  return totals;
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY(operations,
              bench_program::take_number(arguments, "--operations", 20'000, {1, 100'000'000}));
  REGATTA_TRY(clients, bench_program::take_number(arguments, "--clients", 16, {1, 256}));
  REGATTA_TRY(seed, bench_program::take_number(arguments, "--seed", 1, {0, 1'000'000'000}));
  REGATTA_TRY(kill_ms, bench_program::take_number(arguments, "--kill-every", 2000, {0, 3'600'000}));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 0));
  std::string folder = (std::filesystem::temp_directory_path() / "regatta-proof-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return Error{Code::kUnavailable, folder + ": cannot be made"};
  RecordingOptions options;
  options.operations = static_cast<std::size_t>(operations);
  options.clients = clients;
  options.seed = static_cast<std::uint64_t>(seed);
  options.kill_every = Seconds{kill_ms / 1000.0};
  PlatformPrograms programs(folder);
  REGATTA_TRY_DO(programs.start_controller());
  REGATTA_TRY_DO(programs.start_agents(static_cast<int>(kIntentNodes), 8));
  REGATTA_TRY(recording, record_history(programs, options));
  if (!recording.history.error.empty()) return Error{Code::kUnavailable, recording.history.error};
  const Seconds before = os::monotonic_now();
  const Totals totals = check_history(recording.history);
  std::size_t unanswered = 0;
  for (const RecordedJobOperation& each : recording.history.jobs)
    unanswered += each.timed.is_answered ? 0 : 1;
  Seconds worst{0};
  for (const Seconds recovery : recording.recoveries)
    worst = std::max(worst, recovery);
  fmt::print(
      "{} operations of {} clients in {:.0f} s, {} kills (longest recovery {:.2f} s), {} writes "
      "without an answer, {} lists: {} anomalies, {} undecided; checked in {:.1f} s with at most "
      "{} configurations\n",
      recording.history.size(), clients, recording.time.value, recording.kills_ns.size(),
      worst.value, unanswered, recording.history.lists.size(), totals.anomalies, totals.undecided,
      (os::monotonic_now() - before).value, totals.configurations);
  if (totals.anomalies + totals.undecided > 0)
    return Error{Code::kConflict, "the history is not linearizable; the logs are in " + folder};
  std::filesystem::remove_all(folder);
  return {};
}

}  // namespace
}  // namespace regatta::platform_proofs

int main(int count, char** values) {
  return regatta::bench_program::run_program(count, values, regatta::platform_proofs::kUsage, 0,
                                             regatta::platform_proofs::run);
}
