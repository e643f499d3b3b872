#include "regatta/cli/bench_command.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/bench/lab_ground.h"
#include "regatta/bench/own_ranks.h"
#include "regatta/bench/peers.h"
#include "regatta/bench/race.h"
#include "regatta/cli/arguments.h"
#include "regatta/cli/bench_table.h"
#include "regatta/cli/load.h"
#include "regatta/core/text.h"
#include "regatta/cost/grid.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kBytesMax = std::size_t{4} << 30;

struct Options {
  std::string op;
  std::string sizes = "1K:64M";
  int ranks = 2;
  int batches = 7;
  int rounds = 3;
  std::string peers;
  std::string cluster;
  bool go_round = false;
  bool json = false;
};

Error bad_sizes(const std::string& text) {
  return {Code::kInvalidInput,
          fmt::format("--sizes: \"{}\" is no size from 4 to 4G and no range of them; write one as "
                      "64M, several as 1K,1M, or every fourfold from the first to the last as "
                      "1K:64M",
                      text)};
}

// "64M": bytes, K, M and G being powers of 1024.
Result<std::size_t> parse_size(const std::string& text) {
  std::size_t end = 0;
  std::size_t bytes = 0;
  while (end < text.size() && end < 12 && text[end] >= '0' && text[end] <= '9')
    bytes = bytes * 10 + static_cast<std::size_t>(text[end++] - '0');
  const std::string unit = text.substr(end);
  if (unit == "K")
    bytes <<= 10;
  else if (unit == "M")
    bytes <<= 20;
  else if (unit == "G")
    bytes <<= 30;
  else if (!unit.empty())
    return bad_sizes(text);
  if (bytes < sizeof(float) || bytes > kBytesMax) return bad_sizes(text);
  return bytes;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string& text) {
  std::vector<std::size_t> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> ends = split(part, ':');
    REGATTA_TRY(first, parse_size(ends.front()));
    REGATTA_TRY(last, parse_size(ends.back()));
    if (ends.size() > 2 || last < first) return bad_sizes(text);
    for (std::size_t bytes = first; bytes <= last; bytes *= 4)
      sizes.push_back(bytes);
  }
  if (sizes.size() > bench::kSizesMax) return bad_sizes(text);
  return sizes;
}

// "openmpi,mpich": peers that there are.
Result<std::vector<std::string>> parse_peers(const std::string& text) {
  std::vector<std::string> peers;
  if (text.empty()) return peers;
  for (const std::string& peer : split(text, ',')) {
    if (std::find(bench::kPeers.begin(), bench::kPeers.end(), peer) == bench::kPeers.end())
      return Error{Code::kInvalidInput,
                   fmt::format("--vs: \"{}\" is no peer; name some of openmpi, mpich, gloo, with "
                               "commas between",
                               peer)};
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

Result<BenchResult> measure(const Options& given) {
  BenchResult result;
  REGATTA_TRY(sizes, parse_sizes(given.sizes));
  bench::RaceOptions options{.rounds = given.rounds, .ground = {}, .peers = {}};
  REGATTA_TRY(peers, parse_peers(given.peers));
  options.peers = std::move(peers);
  result.task = {.op = *bench::op_named(given.op),
                 .sizes = std::move(sizes),
                 .ranks = given.ranks,
                 .batches = given.batches};
  std::optional<bench::LabGround> lab;
  if (!given.cluster.empty()) {
    if (!options.peers.empty())
      return Error{Code::kInvalidInput,
                   "--vs: the peers run on this machine only; leave --cluster or --vs out"};
    REGATTA_TRY(cluster, load_cluster(given.cluster));
    REGATTA_TRY(opened, bench::LabGround::open(cluster, given.ranks, given.go_round));
    lab.emplace(std::move(opened));
    options.ground = lab->ground();
    result.own = 1;
  }
  result.bounds = bounds_of(result.task, options.ground);
  REGATTA_TRY(race, bench::race(result.task, options, show_turn));
  result.race = std::move(race);
  return result;
}

int run(const Options& given) {
  const auto result = measure(given);
  if (!result) return report_error(result.error());
  if (given.json)
    fmt::print("{}\n", bench_json(*result).dump(2));
  else
    fmt::print("{}", bench_table(*result));
  for (const bench::Contender& contender : result->race)
    for (const bench::Timing& timing : contender.timings)
      if (timing.wrong > 0) return 1;
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_status) {
  auto* bench = app.add_subcommand("bench", "Measure the parts of Regatta on this machine");
  bench->require_subcommand(1);
  auto* command = bench->add_subcommand(
      "coll", "Time a collective between processes of this machine, and check its result");
  command->footer(
      "Example:\n"
      "  regatta bench coll all_reduce --sizes 1K:64M --ranks 2 --vs openmpi,gloo\n"
      "  regatta bench coll all_reduce --sizes 64M --ranks 4 --cluster examples/cluster.yaml\n"
      "busbw is what nccl-tests calls so: algbw times 2(n-1)/n for all_reduce. The peers are built "
      "by scripts/peers.sh.");
  auto options = std::make_shared<Options>();
  std::vector<std::string> names;
  names.reserve(std::size(bench::kOps));
  for (const bench::Op op : bench::kOps)
    names.push_back(to_string(op));
  command->add_option("op", options->op, "The collective: " + join(names, ", "))
      ->required()
      ->check(one_of(names));
  command
      ->add_option("--sizes", options->sizes,
                   "Bytes of the whole vector: 64M, 1K,1M or 1K:64M (every fourfold)")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Processes")
      ->check(whole_number(2, bench::kRanksMax))
      ->capture_default_str();
  command->add_option("--batches", options->batches, "Batches of calls for each size and round")
      ->check(whole_number(1, bench::kBatchesMax))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Rounds; all contenders take turns in each")
      ->check(whole_number(1, 100))
      ->capture_default_str();
  command->add_option("--vs", options->peers, "Peers to time beside: openmpi,mpich,gloo")
      ->check(not_empty());
  command->add_option("--cluster", options->cluster,
                      "Run on the emulated servers of this cluster file instead");
  command->add_flag("--go-round", options->go_round,
                    "In a cluster, one rank on each server in turn instead of filling them");
  command->add_flag("--json", options->json, "Print the figures as JSON");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
