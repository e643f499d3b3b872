// comm/internal/engine/algorithm_selector.h: decides how the collectives of one group go over the
// network. It writes a call's schedule when the call starts, times it, and has the ranks agree on
// the times, so that all of them always choose the same: a timing exchange is a small all_reduce
// that runs before a call, at a place that the calls alone determine. Used by the progress thread,
// but for choices().
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

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

  // What must run before the collective `next`: nothing, or a timing exchange.
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
  struct Timed {
    Tuner::Ticket ticket;
  };

  CollectivePlan plan(const Setting& setting) const;

  const AlgorithmSelectorSetup setup_;
  mutable std::mutex mutex_;  // guards the tuner
  Tuner tuner_;
  Tuner::Ticket under_way_;
  Seconds began_at_;
  std::vector<Timed> timed_;     // calls whose times are not agreed on yet
  std::vector<double> times_s_;  // of these, at this rank; then the agreed ones
  std::uint32_t timing_exchanges_ = 0;
};

}  // namespace regatta::comm
