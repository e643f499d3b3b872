// Random sequences of faults, repairs and kills, through simulated probers, the locator and the
// healer: healing may leave no pair of leaves worse than doing nothing (README.md). Exit status 1
// when it does for too long.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "bench/healing/fault_sequence.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/fabric/routes.h"

namespace regatta {
namespace {

constexpr std::array kClusters = {"two-tiers", "three-tiers", "two-nics-a-leaf", "eight-rails"};

struct Options {
  int sequences = 100;
  std::uint64_t seed = 1;
  int faults = 4;
  double limit_s = 0.2;  // that a pair may be worse
  bool verbose = false;
};

struct Network {
  topo::Graph graph;
  probe::Matrix matrix;
  probe::Coverage coverage;
};

Result<Network> load(const std::string& name) {
  const std::string path = std::string(REGATTA_FAULTS) + "/clusters/" + name + ".yaml";
  REGATTA_TRY(text, os::read_file(path));
  REGATTA_TRY(cluster, topo::parse_cluster(text, path));
  Network network;
  network.graph = build_graph(cluster);
  const fabric::Routes routes(network.graph);
  network.matrix =
      probe::plan_matrix(network.graph, routes, topo::hash_seeds(cluster, network.graph));
  network.coverage = cover(network.graph, network.matrix);
  return network;
}

Result<bool> run(const Options& options) {
  std::vector<Network> networks;
  for (const char* const name : kClusters) {
    REGATTA_TRY(network, load(name));
    networks.push_back(std::move(network));
  }
  int bad = 0;
  double with = 0;
  double without = 0;
  int withdrawals = 0;
  Seconds longest;
  for (int i = 0; i < options.sequences; ++i) {
    const Network& network = at(networks, i % std::ssize(networks));
    const FaultSequenceOptions sequence{
        .seed = options.seed + static_cast<std::uint64_t>(i),
        .faults = 1 + i / static_cast<int>(networks.size()) % options.faults,
        .is_busy = i % 3 == 2};
    const FaultSequenceOutcome outcome =
        run_fault_sequence(network.graph, network.matrix, network.coverage, sequence);
    const bool is_bad = outcome.longest_worse.value > options.limit_s;
    bad += is_bad ? 1 : 0;
    longest = std::max(longest, outcome.longest_worse);
    with += outcome.lost_with;
    without += outcome.lost_without;
    withdrawals += outcome.withdrawals;
    if (is_bad || options.verbose)
      fmt::print("sequence {} on {}: worse for {} by {}: {}\n", sequence.seed,
                 at(kClusters, i % std::ssize(kClusters)), format_seconds(outcome.longest_worse),
                 format_percent(outcome.most_worse), outcome.worst);
    std::fflush(stdout);
  }
  fmt::print(
      "{} sequences: {} with a pair of leaves worse for more than {}, the longest {}; lost "
      "between leaves {} with healing, {} without; {} withdrawals\n",
      options.sequences, bad, format_seconds({options.limit_s}), format_seconds(longest),
      format_percent(with / options.sequences), format_percent(without / options.sequences),
      withdrawals);
  return bad == 0;
}

}  // namespace
}  // namespace regatta

int main(int count, char** values) {
  using namespace regatta;
  CLI::App app("Sequences of faults through simulated probers, the locator and the healer.");
  app.footer("Example:\n  regatta-healing-suite --sequences 1000 --seed 1");
  Options options;
  app.add_option("--sequences", options.sequences, "How many")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the first; each later one has the next")
      ->capture_default_str();
  app.add_option("--faults", options.faults, "Faults in a sequence, at most")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--limit", options.limit_s, "Seconds for which a pair of leaves may be worse")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "Tell of each sequence");
  CLI11_PARSE(app, count, values);
  const auto good = run(options);
  if (good) return *good ? 0 : 1;
  fmt::print(stderr, "regatta-healing-suite: {}\n", good.error().message);
  return exit_status(good.error());
}
