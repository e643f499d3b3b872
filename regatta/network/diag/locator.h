// diag/locator.h: from the reports of probers to verdicts, window by window. Pure: the caller says
// what time it is.
//
// What is late is not lost: a loss counts once both ends have reported on its window and enough
// time has passed for the worst gap that either of them had then; windows in which one of them
// stood still, or lost packets to itself, do not count. A server that says nothing is dead when
// others get no answer from it for longer than a busy one stands still.
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
  Seconds worst_gap{0.4};       // a server that stood still for longer says nothing of its paths
  Seconds longest_pause{1.75};  // of a server that is only busy
  double confidence = 0.99;     // least, to be told
  Seconds clean_time{1.0};      // without a new loss until a fault is over
  Seconds changes{0.5};         // until another symptom is told
  // Until a switch or link is told that loses all packets of some flows only: where a switch has
  // changed its hash, something else that is broken looks like it; routers may tell meanwhile.
  // 0: nobody asks them.
  Seconds confirmation_delay{0};
  Seconds routes_back{2.0};  // from a carrier that is back until routes lead over it again
  ExplainOptions explain;
};

// At 10 ms of period what the defaults are, and in proportion; `confirmation_delay` is as it is.
LocatorOptions options_for(Seconds period, Seconds confirmation_delay = {});

struct FaultChanges {
  std::vector<FaultVerdict> begun;  // also host noise
  std::vector<FaultVerdict> over;
  std::vector<FaultVerdict> changed;  // goes on, with another symptom than was told
  bool is_empty() const { return begun.empty() && over.empty() && changed.empty(); }
};

class Locator {
 public:
  // `paths`: of probe k there 2 k, of its answer 2 k + 1, from the cable of one NIC to that of
  // another. Graph and paths must outlive this.
  Locator(const topo::Graph& graph, const fabric::Paths& paths, const LocatorOptions& options = {});

  // What is out of memory, or from the future by more than that, is left out.
  void add(const ProbeReport& report);
  void add(const CarrierEvent& event);
  void add(const PassiveCount& count);

  // Paths that do not lead where `paths` has them, by their number: what is lost on them says
  // nothing.
  void leave_out(std::vector<bool> paths) { is_left_out_ = std::move(paths); }

  // What is new at `now`, of the clock that windows are numbered by. Cost: all probes times the
  // windows in memory where something was lost, nothing else otherwise.
  FaultChanges locate(Seconds now);

  // Faults that have begun and are not over.
  const std::vector<FaultVerdict>& active_faults() const { return active_faults_; }
  // What is held back for now, as LocatorOptions::confirmation_delay has it.
  std::vector<Culprit> unconfirmed() const;
  // Paths on which something that counts was lost, as the last look saw it.
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
    std::vector<Window> window;  // per slot: whose state it is
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
  Window first_ = 0;                 // anybody's
  Window newest_ = -1;
  std::vector<bool> has_no_carrier_;   // per link
  std::vector<bool> lacks_a_link_;     // per node: a switch with such a link
  std::vector<Window> unsure_link_;    // per link: the last window in which routes may not be back
  std::vector<Window> unsure_switch_;  // per node: the same
  std::vector<PassiveCount> passive_counts_;  // in memory
  std::vector<std::uint32_t> lossy_paths_;
  std::vector<bool> is_left_out_;  // per path; empty: none
  std::vector<FaultVerdict> active_faults_;
  // Of a fault that stands, besides its verdict.
  struct ActiveFaultState {
    Seconds held_at;          // when it was last found
    bool is_settled = false;  // other packets have told it from its look-alikes
    Symptom told = Symptom::kLoss;
    Seconds told_at;  // when that was still so
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
