#include "regatta/app/cli/internal/bench_command.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/coll_arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/measure_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/runtime/bench/caveats.h"
#include "regatta/runtime/bench/comparison_run.h"
#include "regatta/runtime/bench/lab_environment.h"
#include "regatta/runtime/bench/peers.h"
#include "regatta/runtime/bench/regatta_ranks.h"

namespace regatta::cli {
namespace {

struct BenchOptions {
  CollArguments coll;
  int batches = 7;
  int rounds = 3;
  std::string peers;
  std::string compression = "none";
  bool json = false;
};

// "openmpi,mpich": known peers, each once.
Result<std::vector<std::string>> parse_peers(const std::string& text) {
  std::vector<std::string> peers;
  if (text.empty()) return peers;
  for (const std::string& peer : split(text, ',')) {
    if (std::find(bench::kPeers.begin(), bench::kPeers.end(), peer) == bench::kPeers.end())
      return Error{Code::kInvalidInput,
                   fmt::format("--vs: \"{}\" is no peer; name some of openmpi, mpich, gloo, with "
                               "commas between",
                               peer)};
    if (std::find(peers.begin(), peers.end(), peer) != peers.end())
      return Error{Code::kInvalidInput, "--vs: " + peer + " is named twice; name it once"};
    peers.push_back(peer);
  }
  return peers;
}

// On a terminal only: the next line overwrites it.
void show_turn(int round, const std::string& name) {
  if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\rround {}: {:<10}\r", round + 1, name);
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

struct Measured {
  report::BenchResult result;
  std::size_t sizes_asked = 0;  // more than were measured when a signal ended the run
};

Result<bench::BenchTask> bench_task(const BenchOptions& given) {
  REGATTA_TRY(task, task_of(given.coll));
  task.batches = given.batches;
  task.settings.compression = *comm::compress::compression_kind_named(given.compression);
  const bool is_compressed = task.settings.compression != comm::compress::CompressionKind::kNone;
  if (is_compressed && task.op != bench::CollectiveOp::kAllReduce)
    return Error{Code::kInvalidInput,
                 fmt::format("--compress: {} is not compressed; time all_reduce with it",
                             to_string(task.op))};
  return task;
}

// Adds the run of one more size.
void add_size(report::BenchResult& result, std::vector<bench::Contender> race) {
  if (result.race.empty()) {
    result.race = std::move(race);
    return;
  }
  for (std::size_t i = 0; i < race.size(); ++i)
    result.race[i].timings.push_back(std::move(race[i].timings.front()));
}

// Measures size by size, so that each row is printed as it comes and a signal loses only the round
// under way. Fails when the first size does.
Status measure_sizes(bench::ComparisonOptions options, bool prints_rows,
                     report::BenchResult& result, std::vector<comm::TuningChoice>& choices) {
  const std::atomic<bool>& stop = watch_stop_signals({SIGINT});
  options.stop = &stop;
  const std::vector<std::size_t> sizes = result.task.sizes;
  for (std::size_t i = 0; i < sizes.size() && !stop; ++i) {
    bench::BenchTask one = result.task;
    one.sizes = {sizes[i]};
    auto race = bench::run_comparison(one, options, show_turn);
    if (!race && stop) break;
    if (!race) return race.error();
    add_size(result, std::move(race->contenders));
    std::move(race->choices.begin(), race->choices.end(), std::back_inserter(choices));
    if (!prints_rows) continue;
    fmt::print("{}{}", i == 0 ? report::bench_heading(result) : "", report::bench_row(result, i));
    std::fflush(stdout);
  }
  if (result.race.empty())
    return Error{Code::kUnavailable, "bench coll: ended by a signal before a size was measured"};
  result.task.sizes.resize(result.race.front().timings.size());
  return {};
}

Result<Measured> measure(const BenchOptions& given) {
  report::BenchResult result;
  REGATTA_TRY(task, bench_task(given));
  result.task = std::move(task);
  bench::ComparisonOptions options{.rounds = given.rounds, .environment = {}, .peers = {}};
  REGATTA_TRY(peers, parse_peers(given.peers));
  options.peers = std::move(peers);
  if (!given.coll.cluster.empty() && !options.peers.empty())
    return Error{Code::kInvalidInput,
                 "--vs: the peers run on this machine only; leave --cluster or --vs out"};
  REGATTA_TRY(lab, open_ground(given.coll, result.task));
  if (lab) {
    options.environment = lab->environment();
    result.own = 1;
  }
  if (result.task.settings.compression != comm::compress::CompressionKind::kNone) ++result.own;
  result.bounds = bench::all_reduce_bounds(result.task, options.environment);
  const std::size_t sizes_asked = result.task.sizes.size();
  std::vector<comm::TuningChoice> choices;
  REGATTA_TRY_DO(measure_sizes(options, !given.json, result, choices));
  result.notes =
      bench::describe_unused_settings(result.task, bench::choices_for_task(result.task, choices));
  append(result.notes, bench::describe_rounding(result.task));
  append(result.notes,
         bench::describe_oversubscription(result.task, options.peers, os::usable_cores()));
  return Measured{std::move(result), sizes_asked};
}

int run(const BenchOptions& given) {
  const auto measured = measure(given);
  if (!measured) return report_error(measured.error());
  const auto& [result, sizes_asked] = *measured;
  fmt::print(
      "{}", given.json ? report::bench_json(result).dump(2) + "\n" : report::bench_summary(result));
  if (const std::size_t done = result.task.sizes.size(); done < sizes_asked)
    return report_error(
        {Code::kUnavailable,
         fmt::format("bench coll: ended by a signal after {} of {} sizes", done, sizes_asked)});
  for (const bench::Contender& contender : result.race)
    for (const bench::Timing& timing : contender.timings)
      if (timing.wrong > 0) return 1;
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  auto* bench = app.add_subcommand("bench", "Measure parts of Regatta on this machine");
  bench->require_subcommand(1);
  bench->footer("Example:\n  regatta bench coll all_reduce --sizes 1K:64M");
  auto* command =
      bench->add_subcommand("coll", "Time a collective between processes and check its result");
  command->footer(
      "Example:\n"
      "  regatta bench coll all_reduce --sizes 1K:64M --ranks 2 --vs openmpi,gloo\n"
      "  regatta bench coll all_reduce --sizes 64M --ranks 4 --cluster examples/cluster.yaml\n"
      "  regatta bench coll all_reduce --sizes 64M --ranks 4 --compress int8 --cluster FILE\n"
      "busbw as in nccl-tests: algbw times 2(n-1)/n for all_reduce. scripts/peers.sh builds the "
      "peers. Ctrl-C ends the run and keeps the sizes that were measured.");
  auto options = std::make_shared<BenchOptions>();
  add_coll_arguments(*command, options->coll);
  command->add_option("--batches", options->batches, "Batches of calls for each size and round")
      ->check(whole_number(1, bench::kBatchesMax))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Rounds; all contenders take turns in each")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  command->add_option("--vs", options->peers, "Other libraries to time as well: openmpi,mpich,gloo")
      ->check(not_empty());
  std::vector<std::string> kinds;
  kinds.reserve(comm::compress::kCompressionKinds.size());
  for (const auto kind : comm::compress::kCompressionKinds)
    kinds.push_back(to_string(kind));
  command
      ->add_option("--compress", options->compression,
                   "Time compressed calls beside the plain ones: " + join(kinds, ", "))
      ->check(one_of(kinds))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the figures as JSON");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
