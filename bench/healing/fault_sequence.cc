#include "bench/healing/fault_sequence.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "bench/healing/sequence_switches.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/verdicts.h"
#include "regatta/network/probe/internal/simulation/scenario.h"

namespace regatta {
namespace {

// As regatta probe --heal does.
constexpr Seconds kReportEvery{1.0};  // active faults; and how long losses after the last
constexpr double kNoise = 1e-9;       // of the shares

class SequenceRun {
 public:
  SequenceRun(const FaultSuiteNetwork& network, const FaultSequence& sequence)
      : network_(network),
        graph_(network.graph),
        sequence_(sequence),
        paths_(graph_),
        switches_(paths_),
        has_carrier_(graph_.links.size(), true),
        simulation_(graph_, network.matrix, simulated(sequence), options_of(sequence)),
        locator_(graph_, network.matrix.paths) {}

  FaultSequenceOutcome run() {
    start_healer(Seconds{0});
    while (simulation_.now() < sequence_.lasts) {
      const std::vector<diag::ProbeReport> reports = simulation_.next_window();
      measure();
      see_carriers();
      locate(reports);
    }
    if (lost_of_ > 0) {
      outcome_.lost_with /= lost_of_;
      outcome_.lost_without /= lost_of_;
    }
    return std::move(outcome_);
  }

 private:
  // A pair while it is worse than without healing.
  struct Worse {
    double lasts = 0;
    double most = 0;
  };

  static std::vector<probe::SimulatedFault> simulated(const FaultSequence& sequence) {
    std::vector<probe::SimulatedFault> faults;
    for (const SequenceFault& one : sequence.faults)
      faults.push_back(one.fault);
    return faults;
  }
  static probe::SimulationOptions options_of(const FaultSequence& sequence) {
    probe::SimulationOptions options;
    options.seed = sequence.seed;
    options.noise = sequence.is_busy ? probe::busy() : probe::quiet();
    return options;
  }

  bool is_out(std::optional<NodeId> server, Seconds at) const {
    return std::ranges::any_of(sequence_.outages, [&](const SequenceOutage& one) {
      return one.server == server && one.covers(at);
    });
  }
  Seconds time_of(diag::Window window) const { return static_cast<double>(window) * Seconds{0.03}; }

  // As if the probers that are killed in its window neither sent nor answered.
  diag::ProbeReport as_reported(diag::ProbeReport report) const {
    const Seconds at = time_of(report.window);
    const auto server_of = [&](LinkId nic) { return graph_.links[nic.index()].a; };
    for (diag::SentCount& count : report.sent)
      if (is_out(server_of(network_.matrix.probes[count.probe].to), at)) count.answered = 0;
    for (diag::ArrivedCount& count : report.arrived)
      if (is_out(server_of(network_.matrix.probes[count.probe].from), at)) count.arrived = 0;
    return report;
  }

  void start_healer(Seconds now) {
    healer_.emplace(graph_, paths_, switches_, heal::HealerOptions{});
    losses_until_ = now + kReportEvery;
    for (std::size_t link = 0; link < has_carrier_.size(); ++link)
      if (!has_carrier_[link]) switches_.set_carrier(graph_, LinkId{static_cast<int>(link)}, false);
    const auto started = healer_->start(now, left_);
    REGATTA_CHECK(started.has_value());
  }

  void see_carriers() {
    const DeliveryState state = delivery_state(graph_, sequence_.faults, simulation_.now());
    for (std::size_t i = 0; i < has_carrier_.size(); ++i) {
      if (state.has_carrier[i] == has_carrier_[i]) continue;
      const LinkId link{static_cast<int>(i)};
      has_carrier_[i] = state.has_carrier[i];
      switches_.set_carrier(graph_, link, has_carrier_[i]);
      locator_.add(diag::CarrierEvent{link, has_carrier_[i]});
    }
  }

  void locate(const std::vector<diag::ProbeReport>& reports) {
    const Seconds now = simulation_.now();
    for (const diag::ProbeReport& report : reports)
      if (!is_out(report.server, now) && !is_out(report.server, time_of(report.window)))
        locator_.add(as_reported(report));
    const diag::FaultChanges changes = locator_.locate(now);
    if (is_out(std::nullopt, now)) {
      if (healer_) left_ = healer_->state();
      healer_.reset();
      return;
    }
    if (!healer_) start_healer(now);
    const bool is_due = now - reported_at_ >= kReportEvery;
    if (is_due) reported_at_ = now;
    for (const diag::FaultVerdict& verdict : is_due ? locator_.lasting_faults() : changes.begun)
      for (const heal::Fault& fault : heal::faults_of(verdict))
        healer_->report(fault, to_string(graph_, verdict), now, heal::is_probed(verdict));
    const std::vector<diag::LinkLoss> losses = locator_.link_losses(now);
    if (!losses.empty() || !locator_.active_faults().empty()) losses_until_ = now + kReportEvery;
    if (now <= losses_until_) healer_->report_losses(losses, now);
    const auto events = healer_->step(now);
    REGATTA_CHECK(events.has_value());
    if (sequence_.tells) tell(changes, *events);
    for (const heal::Event& event : *events)
      outcome_.withdrawals += event.kind == heal::EventKind::kWithdrawn ? 1 : 0;
  }

  void tell(const diag::FaultChanges& changes, const std::vector<heal::Event>& events) const {
    const std::string now = format_seconds(simulation_.now());
    for (const diag::FaultVerdict& verdict : changes.begun)
      fmt::print("{}: found {}\n", now, to_string(graph_, verdict));
    for (const diag::FaultVerdict& verdict : changes.over)
      fmt::print("{}: over {}\n", now, to_string(graph_, verdict));
    for (const heal::Event& event : events)
      fmt::print("{}: {}\n", now, to_text(graph_, event));
  }

  // Covers the window that has just ended, with the routes that were installed in it.
  void measure() {
    const DeliveryState state = delivery_state(graph_, sequence_.faults, simulation_.now());
    const bool is_same = version_ == switches_.version() && state.link == state_.link &&
                         state.node == state_.node && state.has_carrier == state_.has_carrier;
    if (!is_same) {
      state_ = state;
      version_ = switches_.version();
      with_ = pair_shares(graph_, paths_, state_, &switches_.tables());
      without_ = pair_shares(graph_, paths_, state_, nullptr);
      worse_.resize(with_.size());
    }
    const double window = (simulation_.now() - measured_at_).value;
    measured_at_ = simulation_.now();
    const bool is_broken =
        std::ranges::any_of(without_, [](const PairShare& one) { return one.share < 1; });
    for (std::size_t i = 0; i < with_.size(); ++i) {
      if (is_broken) {
        outcome_.lost_with += 1 - with_[i].share;
        outcome_.lost_without += 1 - without_[i].share;
        lost_of_ += 1;
      }
      const double difference = (without_[i].share - with_[i].share) * with_[i].ends;
      if (difference <= kNoise) {
        worse_[i] = {};
        continue;
      }
      worse_[i].lasts += window;
      worse_[i].most = std::max(worse_[i].most, difference);
      if (worse_[i].lasts > outcome_.longest_worse.value) note_worst(with_[i], worse_[i]);
    }
  }

  void note_worst(const PairShare& pair, const Worse& worse) {
    outcome_.longest_worse = Seconds{worse.lasts};
    outcome_.most_worse = worse.most;
    std::vector<std::string> broken;
    for (const auto& [fault, is_carrier] : sequence_.faults)
      if (simulation_.now() >= fault.at)
        broken.push_back(fmt::format("{}{} ({} to {})", fault_text(graph_, fault),
                                     is_carrier ? ", carrier" : "", format_seconds(fault.at),
                                     fault.until.value < 1e9 ? format_seconds(fault.until) : "-"));
    std::vector<std::string> held;
    if (healer_)
      for (const heal::HeldFault& one : healer_->held())
        held.push_back(
            fmt::format("{} since {}", to_string(graph_, one.fault), format_seconds(one.since)));
    outcome_.worst = fmt::format(
        "{} to {} until {}: broken {}; {} {}", graph_.nodes[pair.from.index()].name,
        graph_.nodes[pair.to.index()].name, format_seconds(simulation_.now()), join(broken, ", "),
        healer_ ? "held" : "no healer,", shortened_list(std::move(held), 6));
  }

  const FaultSuiteNetwork& network_;
  const topo::Graph& graph_;
  const FaultSequence& sequence_;
  heal::FabricPaths paths_;
  SequenceSwitches switches_;
  std::vector<bool> has_carrier_;  // per link, as the switches have reported it
  probe::Simulation simulation_;
  diag::Locator locator_;
  std::optional<heal::Healer> healer_;
  heal::HealerState left_;  // by the healer that was killed
  Seconds reported_at_{-1};
  Seconds losses_until_;
  Seconds measured_at_;
  DeliveryState state_;  // of with_ and without_
  int version_ = -1;
  std::vector<PairShare> with_;
  std::vector<PairShare> without_;
  std::vector<Worse> worse_;  // per pair
  double lost_of_ = 0;
  FaultSequenceOutcome outcome_;
};

}  // namespace

FaultSequenceOutcome run_fault_sequence(const FaultSuiteNetwork& network,
                                        const FaultSequence& sequence) {
  return SequenceRun(network, sequence).run();
}

}  // namespace regatta
