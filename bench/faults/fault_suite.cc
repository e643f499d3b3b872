// Runs the labelled faults of this folder through the simulated probers and the locator, and says
// who was blamed for what: README.md. Exit status 1 when a bar is missed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "bench/faults/fault_suite_network.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/file.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/internal/simulation/repair_scenario.h"
#include "regatta/network/probe/internal/simulation/scenario.h"

namespace regatta {
namespace {

constexpr std::array kGroups = {"single", "double", "triple", "quadruple"};  // by faults - 1
constexpr std::array kBars = {0.99, 0.97, 0.90, 0.0};                        // right; of each
constexpr double kVariantBar = 0.99;  // of single faults of one packet variant

probe::SimulationOptions options_of(const probe::Scenario& scenario) {
  probe::SimulationOptions options;
  options.seed = scenario.seed;
  options.noise = scenario.is_busy ? probe::busy() : probe::quiet();
  return options;
}

// Rough places in the confusion matrix.
std::string place(const topo::Graph& graph, const diag::Culprit& culprit) {
  const std::string kind(to_string(culprit.kind));
  if (culprit.kind == diag::CulpritKind::kSwitch) {
    const bool is_leaf = graph.nodes[culprit.node.index()].kind == topo::NodeKind::kLeaf;
    return is_leaf ? "leaf" : "spine";
  }
  if (culprit.kind != diag::CulpritKind::kLink) return kind;
  return culprit.forward == culprit.backward ? "cable" : "link";
}

// A baseline that names cables only is right about a switch or server when it names some of its
// cables and no others; one direction counts as the cable.
bool is_right_roughly(const topo::Graph& graph, const std::vector<diag::Culprit>& truth,
                      const std::vector<diag::Culprit>& said) {
  const auto meets = [&](const diag::Culprit& one, const diag::Culprit& other) {
    for (const std::uint32_t a : links_to_avoid(graph, one))
      for (const std::uint32_t b : links_to_avoid(graph, other))
        if (a / 2 == b / 2) return true;
    return false;
  };
  const auto among = [&](const diag::Culprit& one, const std::vector<diag::Culprit>& others) {
    return std::ranges::any_of(others,
                               [&](const diag::Culprit& other) { return meets(one, other); });
  };
  return std::ranges::all_of(truth, [&](const auto& one) { return among(one, said); }) &&
         std::ranges::all_of(said, [&](const auto& one) { return among(one, truth); }) &&
         (truth.size() > 1 || said.size() <= 1 || truth[0].kind == diag::CulpritKind::kSwitch ||
          truth[0].kind == diag::CulpritKind::kServer);
}

// The row of the scores that scenarios with these faults belong to.
std::string group_of(const std::vector<probe::SimulatedFault>& faults) {
  if (faults[0].only)
    return *faults[0].only == diag::PacketVariant::kLarge ? "large packets" : "users' packets";
  return at(kGroups, std::min(faults.size(), kGroups.size()) - 1);
}

double bar_of(const std::string& group) {
  const auto place = std::ranges::find(kGroups, group);
  return place == kGroups.end() ? kVariantBar : at(kBars, place - kGroups.begin());
}

struct SuiteScore {
  int all = 0;
  int right = 0;
  int vote = 0;
  int threshold = 0;
  std::vector<double> after;
};

class Suite {
 public:
  Suite(FaultSuiteNetworks& networks, bool verbose, bool traces)
      : networks_(networks), verbose_(verbose), traces_(traces) {}

  Status run(const probe::Scenario& scenario) {
    REGATTA_TRY(network, networks_.get(scenario.cluster));
    if (scenario.faults.empty()) return run_healthy(scenario, *network);
    std::vector<probe::SimulatedFault> faults;
    for (const std::string& text : scenario.faults) {
      REGATTA_TRY(fault, probe::parse_fault(network->graph, text));
      faults.push_back(fault);
    }
    const probe::Planned planned{network->routes, network->seeds};
    const probe::Outcome outcome = try_scenario(network->graph, network->matrix, faults,
                                                options_of(scenario), traces_ ? &planned : nullptr);
    const std::string group =
        fmt::format("{}, {}", group_of(faults), scenario.is_busy ? "busy" : "quiet");
    SuiteScore& score = scores_[group];
    ++score.all;
    score.right += outcome.is_right ? 1 : 0;
    score.vote += is_right_roughly(network->graph, outcome.truth, outcome.vote) ? 1 : 0;
    score.threshold += is_right_roughly(network->graph, outcome.truth, outcome.threshold) ? 1 : 0;
    for (const Seconds after : outcome.after)
      if (after.value >= 0) score.after.push_back(after.value);
    confuse(network->graph, outcome);
    if (!outcome.is_right || verbose_) tell(scenario, network->graph, outcome);
    return {};
  }

  void run_repair(const FaultSuiteNetwork& network, const probe::SimulatedFault& fault,
                  const probe::SimulationOptions& options) {
    const probe::Planned planned{network.routes, network.seeds};
    const probe::RepairOutcome outcome =
        try_repair(network.graph, network.matrix, fault, options, traces_ ? &planned : nullptr);
    ++repairs_;
    repairs_named_ += outcome.is_named ? 1 : 0;
    repairs_not_over_ += outcome.is_named && outcome.over_after.value < 0 ? 1 : 0;
    repairs_blamed_ += outcome.blamed.empty() ? 0 : 1;
    for (const diag::FaultVerdict& verdict : outcome.blamed)
      fmt::print("repair of {}, seed {}: blamed {} at {}\n", fault_text(network.graph, fault),
                 options.seed, to_string(network.graph, verdict), format_seconds(verdict.at));
  }

  // Whether the bars hold.
  bool print() const {
    bool good = true;
    std::map<std::string, SuiteScore> sums;
    std::vector<std::vector<std::string>> rows = {
        {"faults", "scenarios", "right within 2 s", "007 vote", "Pingmesh", "median", "slowest"}};
    for (const auto& [group, score] : scores_) {
      auto after = score.after;
      std::ranges::sort(after);
      const auto share = [&](int count) { return format_percent(1.0 * count / score.all); };
      rows.push_back({group, std::to_string(score.all), share(score.right), share(score.vote),
                      share(score.threshold),
                      after.empty() ? "-" : format_seconds({after[after.size() / 2]}),
                      after.empty() ? "-" : format_seconds({after.back()})});
      SuiteScore& whole = sums[group.substr(0, group.find(','))];
      whole.all += score.all;
      whole.right += score.right;
    }
    if (!scores_.empty()) std::fputs(format_table(rows).c_str(), stdout);
    for (const auto& [group, whole] : sums) {
      const double bar = bar_of(group);
      fmt::print("{}: {} of {} right, at least {} wanted\n", group, whole.right, whole.all,
                 format_percent(bar));
      good = good && whole.right >= bar * whole.all;
    }
    fmt::print("\n");
    std::vector<std::vector<std::string>> matrix = {{"truth \\ blamed"}};
    std::map<std::string, bool> columns;
    for (const auto& [truth, blamed] : confusion_)
      for (const auto& [name, count] : blamed)
        columns[name] = true;
    for (const auto& [name, ignored] : columns)
      matrix[0].push_back(name);
    for (const auto& [truth, blamed] : confusion_) {
      matrix.push_back({truth});
      for (const auto& [name, ignored] : columns)
        matrix.back().push_back(blamed.contains(name) ? std::to_string(blamed.at(name)) : "-");
    }
    if (!confusion_.empty()) std::fputs(format_table(matrix).c_str(), stdout);
    if (healthy_.value > 0) {
      fmt::print(
          "\nnothing broken, busy servers: {} simulated, {} verdicts, {} told as host noise\n",
          format_duration(healthy_), false_verdicts_, noise_told_);
    }
    if (repairs_ > 0)
      fmt::print(
          "\nrepairs: {}, {} of the faults named before, {} held for 6 s after, {} with a "
          "verdict after\n",
          repairs_, repairs_named_, repairs_not_over_, repairs_blamed_);
    return good && false_verdicts_ == 0 && repairs_blamed_ == 0;
  }

 private:
  Status run_healthy(const probe::Scenario& scenario, const FaultSuiteNetwork& network) {
    probe::Simulation simulation(network.graph, network.matrix, {}, options_of(scenario));
    diag::Locator locator(network.graph, network.matrix.paths,
                          {.confirmation_delay = traces_ ? probe::kDoubt : Seconds{0}});
    probe::SimulatedTraces traces(network.graph, {network.routes, network.seeds}, network.matrix);
    while (simulation.now() < scenario.lasts) {
      simulate_window(simulation, locator);
      if (traces_) traces.go_on(simulation, locator);
      for (const diag::FaultVerdict& verdict : locator.locate(simulation.now()).begun) {
        ++(diag::is_fault(verdict) ? false_verdicts_ : noise_told_);
        if (diag::is_fault(verdict))
          fmt::print("{}: false: {}\n", scenario.name, to_string(network.graph, verdict));
      }
    }
    healthy_ += simulation.now();
    return {};
  }

  void confuse(const topo::Graph& graph, const probe::Outcome& outcome) {
    for (std::size_t i = 0; i < outcome.truth.size(); ++i)
      ++confusion_[place(graph, outcome.truth[i])]
                  [outcome.after[i].value >= 0 ? place(graph, outcome.truth[i]) : "nothing"];
    for (const diag::FaultVerdict& verdict : outcome.blamed)
      if (std::ranges::find(outcome.truth, verdict.culprit) == outcome.truth.end())
        ++confusion_["(not broken)"][place(graph, verdict.culprit)];
  }

  static void tell(const probe::Scenario& scenario, const topo::Graph& graph,
                   const probe::Outcome& outcome) {
    fmt::print("{} {}: {}\n", scenario.name, outcome.is_right ? "right" : "WRONG",
               join(scenario.faults, "; "));
    for (const diag::FaultVerdict& verdict : outcome.blamed)
      fmt::print("    {} at {}\n", to_string(graph, verdict), format_seconds(verdict.at));
  }

  FaultSuiteNetworks& networks_;
  bool verbose_;
  bool traces_;  // routers are asked too
  std::map<std::string, SuiteScore> scores_;
  std::map<std::string, std::map<std::string, int>> confusion_;
  Seconds healthy_;
  int false_verdicts_ = 0;
  int repairs_ = 0;
  int repairs_named_ = 0;
  int repairs_not_over_ = 0;
  int repairs_blamed_ = 0;  // somebody, after them
  int noise_told_ = 0;
};

// Lines of random faults: how the files here came about.
Result<std::string> generate(FaultSuiteNetworks& networks, int faults, int count,
                             std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string cluster = at(kFaultSuiteClusters, i % std::ssize(kFaultSuiteClusters));
    REGATTA_TRY(network, networks.get(cluster));
    std::vector<std::string> texts;
    for (const auto& fault : random_faults(network->graph, network->coverage, faults, random))
      texts.push_back(fault_text(network->graph, fault));
    lines +=
        fmt::format("{}{:03} {} {} {} {}\n", at(kGroups, faults - 1), i, cluster,
                    random() % 1'000'000, i / 4 % 2 == 0 ? "quiet" : "busy", join(texts, "; "));
  }
  return lines;
}

// The same of single faults that take the packets of one variant.
Result<std::string> generate_variants(FaultSuiteNetworks& networks, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string cluster = at(kFaultSuiteClusters, i % std::ssize(kFaultSuiteClusters));
    REGATTA_TRY(network, networks.get(cluster));
    const auto fault = random_variant_fault(network->graph, network->coverage, random);
    lines += fmt::format("variant{:03} {} {} {} {}\n", i, cluster, random() % 1'000'000,
                         i / 4 % 2 == 0 ? "quiet" : "busy", fault_text(network->graph, fault));
  }
  return lines;
}

// Runs each Nth scenario of a text.
Status run_text(Suite& suite, const std::string& text, const std::string& file, int every = 1) {
  REGATTA_TRY(scenarios, probe::parse_scenarios(text, file));
  for (std::size_t i = 0; i < scenarios.size(); i += static_cast<std::size_t>(every)) {
    const probe::Scenario& scenario = scenarios[i];
    const Status status = suite.run(scenario);
    if (!status) return Error{status.error().code, scenario.name + ": " + status.error().message};
  }
  return {};
}

// Black holes of all or of some flows, drawn anew until there are enough.
Status run_repairs(FaultSuiteNetworks& networks, Suite& suite, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < count;) {
    REGATTA_TRY(network,
                networks.get(at(kFaultSuiteClusters, i % std::ssize(kFaultSuiteClusters))));
    const auto faults = random_faults(network->graph, network->coverage, 1, random);
    const bool is_black_hole = faults[0].loss >= 1 || faults[0].some_flows;
    if (!is_black_hole || faults[0].culprit.kind == diag::CulpritKind::kServer) continue;
    probe::SimulationOptions options;
    options.seed = random() % 1'000'000;
    options.noise = i / std::ssize(kFaultSuiteClusters) % 2 == 0 ? probe::quiet() : probe::busy();
    suite.run_repair(*network, faults[0], options);
    ++i;
  }
  return {};
}

struct Options {
  std::vector<std::string> files;
  int every = 1;                     // scenario of the files
  std::vector<std::uint64_t> seeds;  // of scenarios that nobody has seen yet
  int count = 200;                   // / N scenarios of N faults for each seed
  std::vector<int> faults = {1, 2};  // at once
  int repairs = 0;                   // for each seed
  int variants = 0;                  // for each seed
  bool verbose = false;
  bool traces = false;
};

Status run_suite(FaultSuiteNetworks& networks, const Options& options, bool& good) {
  Suite suite(networks, options.verbose, options.traces);
  for (const std::string& file : options.files) {
    REGATTA_TRY(text, os::read_file(file));
    REGATTA_TRY_DO(run_text(suite, text, file, options.every));
  }
  for (const std::uint64_t seed : options.seeds)
    for (const int faults : options.faults) {
      REGATTA_TRY(text, generate(networks, faults, std::max(1, options.count / faults), seed));
      REGATTA_TRY_DO(run_text(suite, text, fmt::format("seed {}", seed)));
    }
  for (const std::uint64_t seed : options.seeds) {
    REGATTA_TRY(text, generate_variants(networks, options.variants, seed));
    REGATTA_TRY_DO(run_text(suite, text, fmt::format("seed {}", seed)));
  }
  for (const std::uint64_t seed : options.seeds)
    REGATTA_TRY_DO(run_repairs(networks, suite, options.repairs, seed));
  good = suite.print();
  return {};
}

int report(const Status& status, bool good) {
  if (status) return good ? 0 : 1;
  fmt::print(stderr, "regatta-fault-suite: {}\n", status.error().message);
  return exit_status(status.error());
}

}  // namespace
}  // namespace regatta

int main(int count, char** values) {
  using namespace regatta;
  CLI::App app("Labelled faults through simulated probers and the locator: who was blamed.");
  app.footer(
      "Examples:\n  regatta-fault-suite bench/faults/single.txt bench/faults/double.txt\n"
      "  regatta-fault-suite --seeds 1 2 3 --count 400");
  Options options;
  app.add_option("FILE", options.files, "Scenarios (bench/faults/README.md)");
  app.add_option("--every", options.every, "Run each Nth scenario of the files alone")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seeds", options.seeds, "Random scenarios instead, or as well, of these seeds");
  app.add_option("--count", options.count, "For each seed: COUNT / N scenarios of N faults")
      ->check(CLI::Range(2, 1'000'000))
      ->capture_default_str();
  app.add_option("--faults", options.faults, "Faults at once in the scenarios of --seeds (1 2)")
      ->check(CLI::Range(1, 4));
  app.add_option("--repairs", options.repairs,
                 "Also repair N black holes for each seed: nobody may be blamed afterwards")
      ->check(CLI::Range(1, 1'000'000))
      ->needs("--seeds");
  app.add_option("--variants", options.variants,
                 "Also try N faults of large packets or of users' packets alone for each seed")
      ->check(CLI::Range(1, 1'000'000))
      ->needs("--seeds");
  app.add_flag("--verbose", options.verbose, "Tell of each scenario, not only of those gone wrong");
  app.add_flag("--traces", options.traces, "Weigh simulated traceroutes, too");
  int faults = 1;
  std::uint64_t seed = 1;
  CLI::App* prints = app.add_subcommand("generate", "Print COUNT random scenarios");
  prints->add_option("FAULTS", faults, "In each of them: 1 to 4")
      ->required()
      ->check(CLI::Range(1, 4));
  prints->add_option("COUNT", options.count)->required()->check(CLI::Range(1, 1'000'000));
  prints->add_option("SEED", seed)->required();
  CLI11_PARSE(app, count, values);
  FaultSuiteNetworks networks(std::string(REGATTA_FAULTS) + "/clusters");
  if (prints->parsed()) {
    const auto lines = generate(networks, faults, options.count, seed);
    if (lines) fmt::print("{}", *lines);
    return report(lines ? Status() : Status(lines.error()), true);
  }
  if (options.files.empty() && options.seeds.empty())
    return report(Error{Code::kInvalidInput, "name a FILE, or --seeds"}, true);
  bool good = true;
  const Status status = run_suite(networks, options, good);
  return report(status, good);
}
