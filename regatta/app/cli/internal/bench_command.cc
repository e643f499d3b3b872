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
#include "regatta/app/cli/internal/load.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/model/cost/grid.h"
#include "regatta/runtime/bench/lab_ground.h"
#include "regatta/runtime/bench/notes.h"
#include "regatta/runtime/bench/own_ranks.h"
#include "regatta/runtime/bench/peers.h"
#include "regatta/runtime/bench/race.h"

namespace regatta::cli {
namespace {

struct Options {
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

// No all_reduce of these sizes ends sooner on that ground.
std::vector<Seconds> bounds_of(const bench::Task& task, const bench::Ground& ground) {
  std::vector<Seconds> bounds;
  if (task.op != bench::Op::kAllReduce || !ground.lab) return bounds;
  std::map<std::string, int> numbers;
  cost::Sites sites;
  for (const bench::Place& place : ground.places) {
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

Result<Measured> measure(const Options& given) {
  BenchResult result;
  REGATTA_TRY(task, task_of(given.coll));
  result.task = std::move(task);
  result.task.batches = given.batches;
  result.task.how.compression = *comm::compress::kind_named(given.compression);
  const bool is_compressed = result.task.how.compression != comm::compress::Kind::kNone;
  if (is_compressed && result.task.op != bench::Op::kAllReduce)
    return Error{Code::kInvalidInput,
                 fmt::format("--compress: {} is not compressed; time all_reduce with it",
                             to_string(result.task.op))};
  bench::RaceOptions options{.rounds = given.rounds, .ground = {}, .peers = {}};
  REGATTA_TRY(peers, parse_peers(given.peers));
  options.peers = std::move(peers);
  if (!given.coll.cluster.empty() && !options.peers.empty())
    return Error{Code::kInvalidInput,
                 "--vs: the peers run on this machine only; leave --cluster or --vs out"};
  REGATTA_TRY(lab, open_ground(given.coll, result.task));
  if (lab) {
    options.ground = lab->ground();
    result.own = 1;
  }
  if (is_compressed) ++result.own;
  result.bounds = bounds_of(result.task, options.ground);
  REGATTA_TRY(race, bench::race(result.task, options, show_turn));
  result.race = std::move(race.contenders);
  auto notes = bench::tell_unused(result.task, bench::choices_of(result.task, race.choices));
  append(notes, bench::tell_rounded(result.task));
  append(notes, bench::tell_unfair(result.task, options.peers, os::usable_cores()));
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

int run(const Options& given) {
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
  auto options = std::make_shared<Options>();
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
  kinds.reserve(comm::compress::kKinds.size());
  for (const auto kind : comm::compress::kKinds)
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
