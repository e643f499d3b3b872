// diag/locator.h: turns the reports of probers into verdicts, window by window. Pure: time is an
// argument.
//
// A late packet is not a lost one: a loss counts once both ends have reported on its window and the
// larger of their worst gaps has passed. Windows in which either end stalled, or lost packets to
// itself, do not count. A silent server is dead when others get no answer from it for longer than a
// busy server stalls.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

struct LocatorOptions {
  Seconds window{0.03};
  Seconds grace{0.03};          // after the end of a window, for answers and reports in flight
  int memory = 62;              // windows that count, at most 62
  Seconds worst_gap{0.4};       // reports of a server that stalled for longer do not count
  Seconds longest_pause{1.75};  // of a server that is only busy
  double confidence = 0.99;     // least confidence of a reported verdict
  Seconds clean_time{1.0};      // without a new loss until a fault is over
  Seconds changes{0.5};         // until another symptom is reported
  // Delay of a verdict about a switch or link that loses all packets of some flows only: behind a
  // switch with another hash, other faults look the same, and traceroutes may show that meanwhile.
  // 0: there are no traceroutes.
  Seconds confirmation_delay{0};
  Seconds routes_back{2.0};  // from the return of a carrier to that of its routes
  ExplainOptions explain;
};

// The defaults for a period of 10 ms, scaled for other periods; `confirmation_delay` is not scaled.
LocatorOptions options_for(Seconds period, Seconds confirmation_delay = {});

struct FaultChanges {
  std::vector<FaultVerdict> begun;  // includes host noise
  std::vector<FaultVerdict> over;
  std::vector<FaultVerdict> changed;  // last with another symptom than was reported
  bool is_empty() const { return begun.empty() && over.empty() && changed.empty(); }
};

class Locator {
 public:
  // `paths`: 2k is the path of probe k and 2k + 1 that of its answer, from the cable of one NIC to
  // that of another. Graph and paths must outlive this.
  Locator(const topo::Graph& graph, const fabric::Paths& paths, const LocatorOptions& options = {});

  // Ignores windows that are older than the memory, or equally far in the future.
  void add(const ProbeReport& report);
  void add(const CarrierEvent& event);
  void add(const PassiveCount& count);

  // Excludes paths that differ from `paths`, by number: losses on them do not count.
  void leave_out(std::vector<bool> paths) { is_left_out_ = std::move(paths); }

  // Changes of the verdicts up to `now`, by the clock that numbers the windows. Cost: all probes
  // times the windows in memory with losses.
  FaultChanges locate(Seconds now);

  // Faults that have begun and are not over.
  const std::vector<FaultVerdict>& active_faults() const { return active_faults_; }
  // Culprits whose verdicts wait for LocatorOptions::confirmation_delay.
  std::vector<Culprit> unconfirmed() const;
  // Paths with losses that count, as of the last locate().
  const std::vector<std::uint32_t>& lossy() const { return lossy_paths_; }

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::uint16_t kUnknown = 0xffff;
  struct Cell {
    std::uint16_t sent = kUnknown;
    std::uint16_t answered = 0;
    std::uint16_t arrived = kUnknown;
  };
  struct Host {
    Window newest = -1;
    std::vector<Window> window;  // per slot: the window of its state
    std::vector<HostState> state;
  };
  struct Tally;

  static std::size_t slot(Window window);
  Cell& cell(std::uint32_t probe, Window window);
  const Cell& cell(std::uint32_t probe, Window window) const;
  const HostState* state_of(NodeId server, Window window) const;
  bool is_in_memory(Window window) const { return window > newest_ - Window{kSlots}; }
  Window first_window(Window last) const { return std::max(first_, last - options_.memory + 1); }
  void advance(Window window);
  bool is_usable(std::uint32_t probe, Window window, Seconds now, std::vector<NodeId>& noisy) const;
  bool counts(std::uint32_t path) const { return is_left_out_.empty() || !is_left_out_[path]; }
  bool is_rerouted(std::span<const std::uint32_t> links) const;
  Window unsure_until(std::span<const std::uint32_t> links) const;
  void count(Seconds now, Tally& tally) const;
  void count_passive(Tally& tally) const;
  void find_silent(Window last, std::vector<FaultVerdict>& found) const;
  void find_carriers(std::vector<FaultVerdict>& found);
  std::vector<FaultVerdict> find(Seconds now, Window last);
  bool is_unconfirmed(const FaultVerdict& verdict, Seconds now);
  FaultChanges compare(std::vector<FaultVerdict> found, Seconds now);

  const topo::Graph& graph_;
  const fabric::Paths& paths_;
  LocatorOptions options_;
  std::vector<NodeId> from_;  // per probe: server
  std::vector<NodeId> to_;
  std::vector<Cell> cells_;          // slot * probes + probe
  std::array<int, kSlots> lossy_{};  // cells with losses
  std::vector<Host> hosts_;          // per node
  Window first_ = 0;                 // of any server
  Window newest_ = -1;
  std::vector<bool> has_no_carrier_;   // per link
  std::vector<bool> lacks_a_link_;     // per node: a switch with such a link
  std::vector<Window> unsure_link_;    // per link: the last window in which routes may not be back
  std::vector<Window> unsure_switch_;  // per node: the same
  std::vector<PassiveCount> passive_counts_;  // in memory
  std::vector<std::uint32_t> lossy_paths_;
  std::vector<bool> is_left_out_;  // per path; empty: none
  std::vector<FaultVerdict> active_faults_;
  // State of an active fault besides its verdict.
  struct ActiveFaultState {
    Seconds held_at;          // when it was last found
    bool is_settled = false;  // other packets have ruled out its alternatives
    Symptom told = Symptom::kLoss;
    Seconds told_at;  // when the symptom last held
  };
  std::vector<ActiveFaultState> fault_states_;  // of each in active_faults_
  struct UnconfirmedFault {
    Culprit culprit;
    Seconds since;
    Seconds held_at;  // when it was last found
  };
  std::vector<UnconfirmedFault> unconfirmed_;
};

}  // namespace regatta::diag
