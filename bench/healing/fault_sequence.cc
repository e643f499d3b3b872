#include "bench/healing/fault_sequence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/heal/healer.h"
#include "regatta/network/heal/verdicts.h"
#include "regatta/network/probe/internal/simulation/scenario.h"
#include "regatta/network/probe/internal/simulation/simulation.h"

namespace regatta {
namespace {

constexpr Seconds kReportEvery{1.0};  // as regatta probe --heal does
constexpr double kNoise = 1e-9;       // of the shares below

// Switches that do at once what they are told.
class ImmediateSwitches final : public heal::Switches {
 public:
  explicit ImmediateSwitches(const heal::FabricPaths& paths) : tables(paths), paths_(paths) {}

  Result<std::vector<heal::Installed>> installed() override {
    std::vector<heal::Installed> all;
    for (std::size_t i = 0; i < paths_.switches.size(); ++i)
      for (const NodeId node : paths_.switches[i]) {
        const NodeId leaf = paths_.routes.leaves()[i];
        all.push_back({node, leaf, tables.parts(node, leaf), {}, {}});
      }
    return all;
  }
  Status apply(std::span<const heal::RouteChange> changes) override {
    tables.apply(changes);
    return {};
  }
  Result<std::vector<heal::CarrierChange>> carriers() override {
    return std::vector<heal::CarrierChange>();
  }
  int fd() const override { return -1; }

  heal::Tables tables;

 private:
  const heal::FabricPaths& paths_;
};

// A time in which something does not run.
struct Outage {
  Seconds from;
  Seconds until;
  std::optional<NodeId> server;  // whose reports are lost; none: the healer

  bool covers(Seconds now) const { return now >= from && now < until; }
};

class FaultSequence {
 public:
  FaultSequence(const topo::Graph& graph, const probe::Matrix& matrix,
                const probe::Coverage& coverage, const FaultSequenceOptions& options)
      : graph_(graph),
        options_(options),
        paths_(graph),
        switches_(paths_),
        faults_(draw_faults(coverage)),
        outages_(draw_outages()),
        simulation_(graph, matrix, faults_, simulation_options()),
        locator_(graph, matrix.paths) {}

  FaultSequenceOutcome run() {
    start_healer(Seconds{0});
    while (simulation_.now() < options_.lasts) {
      step();
      measure();
    }
    if (lost_of_ > 0) {
      outcome_.lost_with /= lost_of_;
      outcome_.lost_without /= lost_of_;
    }
    return std::move(outcome_);
  }

 private:
  using Pair = std::pair<int, int>;

  double draw(double from, double to) {
    return from + (to - from) * std::uniform_real_distribution<double>(0, 1)(random_);
  }

  std::vector<probe::SimulatedFault> draw_faults(const probe::Coverage& coverage) {
    auto faults = random_faults(graph_, coverage, options_.faults, random_);
    for (probe::SimulatedFault& fault : faults) {
      fault.at = Seconds{draw(2.5, options_.lasts.value - 8)};
      const bool is_server = fault.culprit.kind == diag::CulpritKind::kServer;
      if (!is_server) fault.until = fault.at + Seconds{draw(1, 20)};
    }
    return faults;
  }

  std::vector<Outage> draw_outages() {
    std::vector<Outage> outages;
    if (!options_.kills) return outages;
    const auto servers =
        std::ranges::count(graph_.nodes, topo::NodeKind::kServer, &topo::Node::kind);
    for (int i = 0; i < 3; ++i) {
      const Seconds from{draw(2.5, options_.lasts.value)};
      const Seconds until = from + Seconds{draw(0.5, 4)};
      const bool is_healer = i == 0;
      const NodeId server{static_cast<int>(random_() % static_cast<std::uint64_t>(servers))};
      outages.push_back({from, until, is_healer ? std::nullopt : std::optional(server)});
    }
    return outages;
  }

  probe::SimulationOptions simulation_options() const {
    probe::SimulationOptions options;
    options.seed = options_.seed;
    options.noise = options_.is_busy ? probe::busy() : probe::quiet();
    return options;
  }

  bool is_out(std::optional<NodeId> server) const {
    return std::ranges::any_of(outages_, [&](const Outage& one) {
      return one.server == server && one.covers(simulation_.now());
    });
  }

  void start_healer(Seconds now) {
    healer_.emplace(graph_, paths_, switches_, heal::HealerOptions{});
    const auto started = healer_->start(now);
    REGATTA_CHECK(started.has_value());
  }

  void step() {
    for (const diag::ProbeReport& report : simulation_.next_window())
      if (!is_out(report.server)) locator_.add(report);
    const Seconds now = simulation_.now();
    const diag::FaultChanges changes = locator_.locate(now);
    if (is_out(std::nullopt)) {
      healer_.reset();
      return;
    }
    if (!healer_) start_healer(now);
    const bool is_due = now - reported_at_ >= kReportEvery;
    if (is_due) reported_at_ = now;
    for (const diag::FaultVerdict& verdict : is_due ? locator_.active_faults() : changes.begun)
      for (const heal::Fault& fault : heal::faults_of(verdict))
        healer_->report(fault, to_string(graph_, verdict), now);
    const auto events = healer_->step(now);
    REGATTA_CHECK(events.has_value());
    for (const heal::Event& event : *events)
      outcome_.withdrawals += event.kind == heal::EventKind::kWithdrawn ? 1 : 0;
  }

  // The share that gets through what is broken now: per directed link, and per switch.
  struct Passing {
    std::vector<double> link;
    std::vector<double> node;
  };
  Passing passing() const {
    Passing passing{std::vector<double>(2 * graph_.links.size(), 1.0),
                    std::vector<double>(graph_.nodes.size(), 1.0)};
    for (const probe::SimulatedFault& fault : faults_) {
      if (!fault.is_broken(simulation_.now())) continue;
      const double share = fault.some_flows ? 0.5 : 1 - fault.loss;
      const diag::Culprit& culprit = fault.culprit;
      if (culprit.kind == diag::CulpritKind::kSwitch) passing.node[culprit.node.index()] *= share;
      if (culprit.kind == diag::CulpritKind::kLink)
        for (const std::uint32_t link : links_to_avoid(graph_, culprit))
          passing.link[link] *= share;
    }
    return passing;
  }

  // The share of packets between leaves that arrives, by pair. `tables`: null: as designed.
  std::map<Pair, double> arriving(const Passing& passing, const heal::Tables* tables) const {
    std::map<Pair, double> shares;
    for (std::size_t i = 0; i < paths_.switches.size(); ++i) {
      const NodeId leaf = paths_.routes.leaves()[i];
      std::vector<double> of_node(graph_.nodes.size(), 0);
      of_node[leaf.index()] = 1;
      for (const NodeId node : paths_.switches[i]) {
        const auto parts = tables != nullptr
                               ? tables->parts(node, leaf)
                               : heal::even_parts(paths_.routes.next_hops(node, leaf));
        double sum = 0;
        double weights = 0;
        for (const heal::Part& part : parts) {
          const NodeId next = paths_.end_of[part.hop];
          sum += part.weight * passing.link[part.hop] * passing.node[next.index()] *
                 of_node[next.index()];
          weights += part.weight;
        }
        of_node[node.index()] = weights > 0 ? sum / weights : 0;
      }
      for (const NodeId from : paths_.routes.leaves())
        if (from != leaf)
          shares[{from.value, leaf.value}] = of_node[from.index()] * passing.node[from.index()];
    }
    return shares;
  }

  void measure() {
    const Passing now = passing();
    const auto with = arriving(now, &switches_.tables);
    const auto without = arriving(now, nullptr);
    const double window = (simulation_.now() - measured_at_).value;
    measured_at_ = simulation_.now();
    const bool is_broken =
        std::ranges::any_of(without, [](const auto& one) { return one.second < 1; });
    for (const auto& [pair, share] : without) {
      if (is_broken) {
        outcome_.lost_with += 1 - with.at(pair);
        outcome_.lost_without += 1 - share;
        lost_of_ += 1;
      }
      double& worse = worse_since_[pair];
      const double difference = share - with.at(pair);
      worse = difference > kNoise ? worse + window : 0;
      if (worse > outcome_.longest_worse.value) note_worst(pair, worse, difference);
    }
  }

  void note_worst(const Pair& pair, double worse, double difference) {
    outcome_.longest_worse = Seconds{worse};
    outcome_.most_worse = std::max(outcome_.most_worse, difference);
    std::vector<std::string> broken;
    for (const probe::SimulatedFault& fault : faults_)
      if (simulation_.now() >= fault.at)
        broken.push_back(fmt::format("{} ({} to {})", fault_text(graph_, fault),
                                     format_seconds(fault.at),
                                     fault.until.value < 1e9 ? format_seconds(fault.until) : "-"));
    std::vector<std::string> held;
    if (healer_)
      for (const heal::HeldFault& one : healer_->held())
        held.push_back(to_string(graph_, one.fault));
    outcome_.worst = fmt::format(
        "{} to {} at {}: broken {}; held {}", graph_.nodes[NodeId{pair.first}.index()].name,
        graph_.nodes[NodeId{pair.second}.index()].name, format_seconds(simulation_.now()),
        join(broken, ", "), held.empty() ? "nothing" : join(held, ", "));
  }

  const topo::Graph& graph_;
  const FaultSequenceOptions options_;
  std::mt19937_64 random_{options_.seed};
  heal::FabricPaths paths_;
  ImmediateSwitches switches_;
  std::vector<probe::SimulatedFault> faults_;
  std::vector<Outage> outages_;
  probe::Simulation simulation_;
  diag::Locator locator_;
  std::optional<heal::Healer> healer_;
  Seconds reported_at_{-1};
  Seconds measured_at_;
  std::map<Pair, double> worse_since_;
  double lost_of_ = 0;
  FaultSequenceOutcome outcome_;
};

}  // namespace

FaultSequenceOutcome run_fault_sequence(const topo::Graph& graph, const probe::Matrix& matrix,
                                        const probe::Coverage& coverage,
                                        const FaultSequenceOptions& options) {
  return FaultSequence(graph, matrix, coverage, options).run();
}

}  // namespace regatta
