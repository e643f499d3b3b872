// Random sequences of faults, repairs and kills, or sets of dead links, through simulated probers,
// the locator and the healer: healing may leave no pair of servers worse than doing nothing
// (README.md). Exit status 1 when it does for too long.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "bench/healing/fault_sequence.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta {
namespace {

struct Options {
  int sequences = 100;
  std::uint64_t seed = 1;
  int faults = 6;
  int links = 0;         // in sets of dead links instead; 0: random sequences
  double limit_s = 0.2;  // that a pair may be worse
  int threads = 2;
  bool verbose = false;
  bool events = false;
};

struct Trial {
  std::string name;  // "seed 12 on eight-rails"
  const FaultSuiteNetwork* network = nullptr;
  FaultSequence sequence;
};

// Sequences of 1 to `faults` faults, on each network in turn.
std::vector<Trial> random_trials(const std::vector<const FaultSuiteNetwork*>& networks,
                                 const Options& options) {
  std::vector<Trial> trials;
  const int count = static_cast<int>(kFaultSuiteClusters.size());
  for (int i = 0; i < options.sequences; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    const int cluster = static_cast<int>(seed % static_cast<std::uint64_t>(count));
    const FaultSuiteNetwork& network = *at(networks, cluster);
    FaultSequence sequence = draw_fault_sequence(
        network, seed,
        1 + static_cast<int>(seed / static_cast<std::uint64_t>(count)) % options.faults);
    sequence.is_busy = seed % 3 == 2;
    sequence.tells = options.events;
    trials.push_back({fmt::format("seed {} on {}", seed, at(kFaultSuiteClusters, cluster)),
                      &network, std::move(sequence)});
  }
  return trials;
}

// All sets of so many of the cables between switches; more than `most`: random ones of these.
std::vector<std::vector<LinkId>> link_sets(const topo::Graph& graph, std::size_t size,
                                           std::size_t most, std::uint64_t seed) {
  std::vector<LinkId> cables;
  for (std::size_t i = 0; i < graph.links.size(); ++i)
    if (graph.links[i].a_nic < 0) cables.push_back(LinkId{static_cast<int>(i)});
  double sets = 1;
  for (std::size_t i = 0; i < size; ++i)
    sets *= static_cast<double>(cables.size() - i) / static_cast<double>(i + 1);
  std::vector<std::vector<LinkId>> all;
  if (sets > static_cast<double>(most)) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < most; ++i)
      std::ranges::sample(cables, std::back_inserter(all.emplace_back()),
                          static_cast<std::ptrdiff_t>(size), random);
    return all;
  }
  std::vector<bool> is_member(cables.size(), false);
  std::fill_n(is_member.begin(), size, true);
  do {
    std::vector<LinkId>& set = all.emplace_back();
    for (std::size_t i = 0; i < cables.size(); ++i)
      if (is_member[i]) set.push_back(cables[i]);
  } while (std::prev_permutation(is_member.begin(), is_member.end()));
  return all;
}

std::vector<Trial> dead_link_trials(const std::vector<const FaultSuiteNetwork*>& networks,
                                    const Options& options) {
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < networks.size(); ++i)
    for (const std::vector<LinkId>& set :
         link_sets(networks[i]->graph, static_cast<std::size_t>(options.links),
                   static_cast<std::size_t>(options.sequences), options.seed)) {
      std::vector<std::string> names;
      for (const LinkId link : set)
        names.push_back(networks[i]->graph.links[link.index()].name);
      const auto seed = options.seed + trials.size();
      trials.push_back(
          {fmt::format("{} dead, on {}", join(names, ", "),
                       i < kFaultSuiteClusters.size() ? kFaultSuiteClusters[i] : "heal-2x4"),
           networks[i], dead_links(set, seed)});
    }
  return trials;
}

// Sums of what has been told, in the order of the trials.
class Score {
 public:
  Score(const std::vector<Trial>& trials, const Options& options)
      : trials_(trials), options_(options), outcomes_(trials.size()) {}

  // From any thread.
  void set(std::size_t trial, FaultSequenceOutcome outcome) {
    const std::lock_guard lock(mutex_);
    outcomes_[trial] = std::move(outcome);
    for (; told_ < outcomes_.size() && outcomes_[told_]; ++told_)
      tell(trials_[told_], *outcomes_[told_]);
  }

  // Whether the bar holds.
  bool print() const {
    const auto count = static_cast<double>(trials_.size());
    fmt::print(
        "{} sequences: {} with a pair of servers worse for more than {}, the longest {}; lost "
        "between leaves {} with healing, {} without; {} withdrawals\n",
        trials_.size(), bad_, format_seconds({options_.limit_s}), format_seconds(longest_),
        format_percent(with_ / count), format_percent(without_ / count), withdrawals_);
    return bad_ == 0;
  }

 private:
  void tell(const Trial& trial, const FaultSequenceOutcome& outcome) {
    const bool is_bad = outcome.longest_worse.value > options_.limit_s;
    bad_ += is_bad ? 1 : 0;
    longest_ = std::max(longest_, outcome.longest_worse);
    with_ += outcome.lost_with;
    without_ += outcome.lost_without;
    withdrawals_ += outcome.withdrawals;
    if (!is_bad && !options_.verbose) return;
    fmt::print("{}: worse for {} by {}: {}\n", trial.name, format_seconds(outcome.longest_worse),
               format_percent(outcome.most_worse), outcome.worst);
    std::fflush(stdout);
  }

  const std::vector<Trial>& trials_;
  const Options& options_;
  std::mutex mutex_;
  std::vector<std::optional<FaultSequenceOutcome>> outcomes_;
  std::size_t told_ = 0;
  int bad_ = 0;
  double with_ = 0;
  double without_ = 0;
  int withdrawals_ = 0;
  Seconds longest_;
};

Result<std::vector<const FaultSuiteNetwork*>> load(FaultSuiteNetworks& drawn_on,
                                                   FaultSuiteNetworks& others) {
  std::vector<const FaultSuiteNetwork*> networks;
  for (const char* const name : kFaultSuiteClusters) {
    REGATTA_TRY(network, drawn_on.get(name));
    networks.push_back(network);
  }
  REGATTA_TRY(network, others.get("heal-2x4"));
  networks.push_back(network);
  return networks;
}

Result<bool> run(const Options& options) {
  FaultSuiteNetworks drawn_on(std::string(REGATTA_BENCH) + "/faults/clusters");
  FaultSuiteNetworks others(std::string(REGATTA_BENCH) + "/clusters");
  REGATTA_TRY(networks, load(drawn_on, others));
  const std::vector<Trial> trials =
      options.links > 0 ? dead_link_trials(networks, options) : random_trials(networks, options);
  Score score(trials, options);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < trials.size(); i = next++)
      score.set(i, run_fault_sequence(*trials[i].network, trials[i].sequence));
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < options.threads; ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  return score.print();
}

}  // namespace
}  // namespace regatta

int main(int count, char** values) {
  using namespace regatta;
  CLI::App app("Sequences of faults through simulated probers, the locator and the healer.");
  app.footer(
      "Examples:\n  regatta-healing-suite --sequences 1000 --seed 1\n"
      "  regatta-healing-suite --links 3 --sequences 200 --limit 0");
  Options options;
  app.add_option("--sequences", options.sequences, "How many; with --links, of each network")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the first; each later one has the next")
      ->capture_default_str();
  app.add_option("--faults", options.faults, "Faults in a sequence, at most")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--links", options.links,
                 "Sets of so many dead links instead: all of them, or --sequences random ones")
      ->check(CLI::Range(1, 8));
  app.add_option("--limit", options.limit_s, "Seconds for which a pair of servers may be worse")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "How many sequences run at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "Tell of each sequence");
  app.add_flag("--events", options.events, "Print what the locator finds and the healer does");
  CLI11_PARSE(app, count, values);
  const auto good = run(options);
  if (good) return *good ? 0 : 1;
  fmt::print(stderr, "regatta-healing-suite: {}\n", good.error().message);
  return exit_status(good.error());
}
