// diag/locator.h: turns the reports of probers into verdicts, window by window. Pure: time is an
// argument.
//
// A late packet is not a lost one: a loss counts once both ends have reported on its window and the
// larger of their worst gaps has passed. Windows in which either end stalled, or lost packets to
// itself, do not count. A silent server is dead when others get no answer from it for longer than a
// busy server stalls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/active_faults.h"
#include "regatta/network/diag/internal/carrier_states.h"
#include "regatta/network/diag/internal/counter_evidence.h"
#include "regatta/network/diag/internal/diverted_links.h"
#include "regatta/network/diag/internal/ended_faults.h"
#include "regatta/network/diag/internal/locator_options.h"
#include "regatta/network/diag/internal/loss_suspicions.h"
#include "regatta/network/diag/internal/misconfigurations.h"
#include "regatta/network/diag/internal/path_tally.h"
#include "regatta/network/diag/internal/probe_windows.h"
#include "regatta/network/diag/internal/variant_locator.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

// The defaults for a period of 10 ms, scaled for other periods; `confirmation_delay` is not scaled.
LocatorOptions options_for(Seconds period, Seconds confirmation_delay = {});

class Locator {
 public:
  // `paths`: 2k is the path of probe k and 2k + 1 that of its answer, from the cable of one NIC to
  // that of another. Graph and paths must outlive this.
  Locator(const topo::Graph& graph, const fabric::Paths& paths, const LocatorOptions& options = {});

  // Ignores windows that are older than the memory, or equally far in the future.
  void add(const ProbeReport& report);
  void add(const VariantReport& report);
  void add(const CarrierEvent& event);
  void add(const PassiveCount& count);
  void add(const HeardPort& port) { misconfigurations_.add(port, settled()); }
  void add(const ServerAddresses& addresses) { misconfigurations_.add(addresses, settled()); }
  void add(const PortReading& reading) { counters_.add(reading); }

  // Excludes paths that differ from `paths`, by number: losses on them do not count.
  void leave_out(std::vector<bool> paths) { is_left_out_ = std::move(paths); }

  // Changes of the verdicts up to `now`, by the clock that numbers the windows. A fault is over
  // when probes have crossed it without a loss for a while. Cost: all probes times the windows in
  // memory with losses, and times the faults that are not found any more.
  FaultChanges locate(Seconds now);
  // After locate(): takes back the faults in `changes` that have begun and evaluates again, with
  // what was added since because of them. Returns the changes since before both.
  FaultChanges reconsider(FaultChanges changes, Seconds now);

  // Faults that have begun and are not over.
  const std::vector<FaultVerdict>& active_faults() const { return faults_.verdicts(); }
  // Those of them that the last locate() found again, or that nobody observes: what repeats them
  // to a healer keeps traffic off no longer than needed.
  std::vector<FaultVerdict> lasting_faults() const { return faults_.lasting(); }
  // As of the last locate(), for those who keep traffic off links: where probes lose anything.
  std::vector<LinkLoss> link_losses(Seconds now) const;
  // The time that LinkLoss::now covers.
  Seconds loss_span() const { return static_cast<double>(kLossWindows) * options_.window; }
  // Culprits whose verdicts wait for LocatorOptions::confirmation_delay.
  std::vector<Culprit> unconfirmed() const { return faults_.unconfirmed(); }
  // The evidence of the counters of ports.
  CounterEvidence& counters() { return counters_; }
  // Paths with losses that count, as of the last locate().
  const std::vector<std::uint32_t>& lossy() const { return lossy_paths_; }

 private:
  bool counts(std::uint32_t path) const { return is_left_out_.empty() || !is_left_out_[path]; }
  // The last window that is over by then.
  Window last_window(Seconds now) const;
  PathTally tally(Seconds now, Window last) const;
  void count_probe(std::uint32_t probe, Seconds now, PathTally& tally) const;
  void count_passive(PathTally& tally) const;
  bool can_count(std::uint32_t probe) const;
  // The last window in which the routes over these links may not have been settled; -1: none.
  Window unsure_until(std::span<const std::uint32_t> links) const {
    return std::max(carriers_.unsure_until(links), misconfigurations_.unsure_until(links));
  }
  // Whether packets planned over these links may be lost or go elsewhere for a known reason.
  bool is_explained(std::span<const std::uint32_t> links) const {
    return carriers_.is_rerouted(links) || misconfigurations_.is_affected(links);
  }
  // The last window that may still suffer from what is corrected now.
  Window settled() const;
  bool is_observed(const FaultVerdict& verdict, Window last) const;
  void add_variants(Window last, std::vector<FaultVerdict>& found);
  std::vector<FaultVerdict> evaluate(Seconds now, Window last);

  const topo::Graph& graph_;
  const fabric::Paths& paths_;
  LocatorOptions options_;
  ProbeWindows windows_;
  CarrierStates carriers_;
  Misconfigurations misconfigurations_;
  CounterEvidence counters_;
  std::vector<PassiveCount> passive_counts_;  // in memory
  std::vector<std::uint32_t> lossy_paths_;
  std::vector<bool> is_left_out_;  // per path; empty: none
  ActiveFaults faults_;
  EndedFaults ended_faults_;
  std::vector<VariantLocator> variants_;  // by PacketVariant
  DivertedLinks diverted_;                // around which a healer may lead users' packets
};

}  // namespace regatta::diag
