// diag/internal/active_faults.h: the faults that have begun and are not over, and the changes that
// new verdicts make. Pure.
#pragma once

#include <functional>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/internal/locator_options.h"

namespace regatta::diag {

class ActiveFaults {
 public:
  ActiveFaults(const topo::Graph& graph, const LocatorOptions& options)
      : graph_(graph), options_(options) {}

  // Splits the verdicts of one evaluation into new, lasting and ended faults. A fault that is not
  // found any more lasts while `is_observed` denies that probes have crossed it: silence of servers
  // is not health of the network.
  using IsObserved = std::function<bool(const FaultVerdict&)>;
  FaultChanges update(std::vector<FaultVerdict> found, Seconds now,
                      const IsObserved& is_observed = {});

  // Forgets faults that have just begun.
  void take_back(const std::vector<FaultVerdict>& begun);

  const std::vector<FaultVerdict>& verdicts() const { return verdicts_; }
  // Those that the last update found, or that nobody observes.
  std::vector<FaultVerdict> lasting() const;
  std::vector<KnownFault> known() const;
  // Culprits whose verdicts wait for LocatorOptions::confirmation_delay.
  std::vector<Culprit> unconfirmed() const;

 private:
  // State of an active fault besides its verdict.
  struct State {
    Seconds held_at;          // when it was last found
    bool is_settled = false;  // other packets have ruled out its alternatives
    Symptom reported = Symptom::kLoss;
    Seconds reported_at;  // when the reported symptom last held
  };
  struct Unconfirmed {
    Culprit culprit;
    Seconds since;
    Seconds held_at;  // when it was last found
  };

  bool is_unconfirmed(const FaultVerdict& verdict, Seconds now);
  void update_one(FaultVerdict verdict, Seconds now, FaultChanges& changes);
  bool is_replaced(const FaultVerdict& old, const std::vector<FaultVerdict>& begun) const;
  void end_old(Seconds now, const IsObserved& is_observed, FaultChanges& changes);

  const topo::Graph& graph_;
  LocatorOptions options_;
  std::vector<FaultVerdict> verdicts_;
  std::vector<State> states_;  // of each verdict
  std::vector<Unconfirmed> unconfirmed_;
  Seconds updated_;
};

}  // namespace regatta::diag
