// diag/internal/variant_locator.h: faults that take packets of one variant only: large ones, or
// those with the users' type of service. Pure.
//
// A lost packet counts only where all probes of the same 5-tuple got through around it: then
// neither the path nor a busy server can have lost it, and one packet in a cycle says as much as a
// black hole. Losses of some of the packets, as at a full queue, are no fault of this kind.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/ended_faults.h"
#include "regatta/network/diag/internal/locator_options.h"
#include "regatta/network/diag/internal/probe_windows.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

class VariantLocator {
 public:
  // `symptom`: of its verdicts. Graph and paths must outlive this.
  VariantLocator(const topo::Graph& graph, const fabric::Paths& paths, Symptom symptom,
                 const LocatorOptions& options);

  // Ignores cycles that have been counted.
  void add(const VariantReport& report);

  // Whether packets of this variant surely take this path as planned.
  using IsPlanned = std::function<bool(std::uint32_t path)>;
  // Counts the cycles that are complete when `last` is the last window, and returns the verdicts,
  // without the time `at`. `active`: the faults that have begun and are not over.
  const std::vector<FaultVerdict>& evaluate(const ProbeWindows& probes,
                                            std::span<const FaultVerdict> active,
                                            const IsPlanned& is_planned, Window last);

  // Whether packets have crossed the culprit of a verdict of this symptom lately, or nobody has
  // seen it for so long that it is to be tried again.
  bool is_observed(const FaultVerdict& verdict) const;
  Symptom symptom() const { return symptom_; }

 private:
  static constexpr std::size_t kSlots = 64;  // cycles in memory
  static constexpr std::uint8_t kUnknown = 0xff;

  struct Cell {  // of a probe in a cycle
    std::uint8_t sent = kUnknown;
    std::uint8_t answered = 0;
    std::uint8_t arrived = kUnknown;
  };
  struct Counted {  // of a path in a cycle: 0 or 1
    std::uint8_t sent = 0;
    std::uint8_t lost = 0;
  };

  static std::size_t slot(Window cycle) { return static_cast<std::size_t>(cycle) % kSlots; }
  bool makes_room(Window cycle);
  void count_cycle(Window cycle, const ProbeWindows& probes, const IsPlanned& is_planned);
  bool has_losses() const;
  void explain_all(std::span<const FaultVerdict> active);

  const topo::Graph& graph_;
  const fabric::Paths& paths_;
  Symptom symptom_;
  LocatorOptions options_;
  Seconds cycle_length_;
  EndedFaults ended_faults_;
  std::size_t probes_;
  std::vector<Cell> cells_;       // slot * probes + probe
  std::vector<Counted> counted_;  // slot * paths + path, of counted cycles
  Window first_ = -1;             // the first cycle that counts
  Window newest_ = -1;            // the last one with room
  Window counted_until_ = -1;
  std::vector<FaultVerdict> found_;
  std::vector<std::pair<Culprit, Window>> last_found_;  // the last cycle in which it was found
};

}  // namespace regatta::diag
