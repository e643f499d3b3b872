#include "regatta/app/cli/internal/bench_command.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/bench_table.h"
#include "regatta/app/cli/internal/coll_arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/model/cost/hierarchical_layout.h"
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

// "openmpi,mpich": peers that there are, each once.
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

// Told on the terminal only, where it is overwritten by the next.
void show_turn(int round, const std::string& name) {
  if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\rround {}: {:<10}\r", round + 1, name);
}

// No all_reduce of these sizes ends sooner in that environment.
std::vector<Seconds> bounds_of(const bench::BenchTask& task,
                               const bench::TestEnvironment& environment) {
  std::vector<Seconds> bounds;
  if (task.op != bench::CollectiveOp::kAllReduce || !environment.lab) return bounds;
  std::map<std::string, int> numbers;
  cost::RankLocations sites;
  for (const bench::RankHost& place : environment.places) {
    const auto next = static_cast<int>(numbers.size());
    sites.server.push_back(numbers.try_emplace(place.server, next).first->second);
    sites.rate.push_back(place.link_rate);
  }
  if (numbers.size() < 2) return bounds;
  for (const std::size_t size : task.sizes)
    bounds.push_back(all_reduce_bound(Bytes{static_cast<long long>(size)}, sites));
  return bounds;
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

struct Measured {
  BenchResult result;
  std::vector<std::string> notes;
};

Result<Measured> measure(const BenchOptions& given) {
  BenchResult result;
  REGATTA_TRY(task, task_of(given.coll));
  result.task = std::move(task);
  result.task.batches = given.batches;
  result.task.settings.compression = *comm::compress::compression_kind_named(given.compression);
  const bool is_compressed =
      result.task.settings.compression != comm::compress::CompressionKind::kNone;
  if (is_compressed && result.task.op != bench::CollectiveOp::kAllReduce)
    return Error{Code::kInvalidInput,
                 fmt::format("--compress: {} is not compressed; time all_reduce with it",
                             to_string(result.task.op))};
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
  if (is_compressed) ++result.own;
  result.bounds = bounds_of(result.task, options.environment);
  REGATTA_TRY(race, bench::run_comparison(result.task, options, show_turn));
  result.race = std::move(race.contenders);
  auto notes =
      bench::describe_unused_settings(result.task, bench::enum_choices(result.task, race.choices));
  append(notes, bench::describe_rounding(result.task));
  append(notes, bench::describe_oversubscription(result.task, options.peers, os::usable_cores()));
  return Measured{std::move(result), std::move(notes)};
}

void print_json(const BenchResult& result, const std::vector<std::string>& notes) {
  nlohmann::json json = bench_json(result);
  json["notes"] = notes;
  fmt::print("{}\n", json.dump(2));
}

void print_text(const BenchResult& result, const std::vector<std::string>& notes) {
  fmt::print("{}", bench_table(result));
  for (const std::string& note : notes)
    fmt::print("note: {}\n", note);
}

int run(const BenchOptions& given) {
  const auto measured = measure(given);
  if (!measured) return report_error(measured.error());
  const auto& [result, notes] = *measured;
  if (given.json)
    print_json(result, notes);
  else
    print_text(result, notes);
  for (const bench::Contender& contender : result.race)
    for (const bench::Timing& timing : contender.timings)
      if (timing.wrong > 0) return 1;
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  auto* bench = app.add_subcommand("bench", "Measure the parts of Regatta on this machine");
  bench->require_subcommand(1);
  bench->footer("Example:\n  regatta bench coll all_reduce --sizes 1K:64M");
  auto* command = bench->add_subcommand(
      "coll", "Time a collective between processes of this machine, and check its result");
  command->footer(
      "Example:\n"
      "  regatta bench coll all_reduce --sizes 1K:64M --ranks 2 --vs openmpi,gloo\n"
      "  regatta bench coll all_reduce --sizes 64M --ranks 4 --cluster examples/cluster.yaml\n"
      "  regatta bench coll all_reduce --sizes 64M --ranks 4 --compress int8 --cluster FILE\n"
      "busbw is what nccl-tests calls so: algbw times 2(n-1)/n for all_reduce. The peers are built "
      "by scripts/peers.sh.");
  auto options = std::make_shared<BenchOptions>();
  add_coll_arguments(*command, options->coll);
  command->add_option("--batches", options->batches, "Batches of calls for each size and round")
      ->check(whole_number(1, bench::kBatchesMax))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Rounds; all contenders take turns in each")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  command->add_option("--vs", options->peers, "Peers to time beside: openmpi,mpich,gloo")
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
