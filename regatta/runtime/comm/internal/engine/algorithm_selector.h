// comm/internal/engine/algorithm_selector.h: chooses the algorithm and the settings of the
// collectives of one group over the network. It writes the schedule of a call when the call starts,
// times it, and makes the ranks agree on the times, so that all of them choose the same: a timing
// exchange is a small all_reduce before a call, at a place that the calls alone determine. Progress
// thread only, but for choices(), is_settled() and load().
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/units.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/model/cost/hierarchical_layout.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {

struct AlgorithmSelectorSetup {
  GroupPosition self;
  std::optional<cost::HierarchicalLayout> grid;
  cost::RankLocations sites;  // of the members
  NetworkParameters network;
  Setting forced;
  Measure measure = Measure::kAll;
};

class AlgorithmSelector {
 public:
  explicit AlgorithmSelector(AlgorithmSelectorSetup setup);

  // The timing exchange that must run before the collective `next`; null: none.
  std::unique_ptr<Operation> timing_exchange_before(const Operation& next);
  // Writes the schedule of a collective that starts now.
  void begin(Operation& operation);
  // The operation ended well.
  void end(const Operation& operation);

  // Any thread.
  std::vector<TuningChoice> choices() const;
  bool is_settled() const;
  // Before the first call.
  void load(const std::vector<TuningChoice>& choices);

 private:
  CollectivePlan plan(const Setting& setting) const;

  const AlgorithmSelectorSetup setup_;
  mutable Mutex mutex_;
  Tuner tuner_ REGATTA_GUARDED_BY(mutex_);
  Tuner::Ticket current_;  // of the collective that runs
  Seconds began_at_;
  std::vector<Tuner::Ticket> timed_;  // calls whose times are not agreed on yet
  std::vector<double> times_s_;  // their times at this rank, and after the exchange the agreed ones
  std::uint32_t timing_exchanges_ = 0;
};

}  // namespace regatta::comm
