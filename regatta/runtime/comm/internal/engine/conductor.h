// comm/internal/engine/conductor.h: decides how the collectives of one group go over the network.
// It writes a call's schedule when the call starts, times it, and has the ranks agree on the times,
// so that all of them always choose the same: an agreement is a small all_reduce that runs before a
// call, at a place that the calls alone determine. Used by the progress thread, but for choices().
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/model/cost/grid.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {

struct ConductorSetup {
  Place place;
  std::optional<cost::Grid> grid;
  cost::Sites sites;  // of the members
  Network network;
  Setting forced;
  Measure measure = Measure::kAll;
};

class Conductor {
 public:
  explicit Conductor(ConductorSetup setup);

  // What must run before the collective `next`: nothing, or an agreement.
  std::unique_ptr<Operation> agreement_before(const Operation& next);
  // Writes the schedule of a collective that starts now.
  void begin(Operation& operation);
  // The operation ended well.
  void end(const Operation& operation);

  // Any thread.
  std::vector<Choice> choices() const;
  bool is_settled() const;
  // Before the first call.
  void load(const std::vector<Choice>& choices);

 private:
  struct Timed {
    Tuner::Ticket ticket;
  };

  Plan plan(const Setting& setting) const;

  const ConductorSetup setup_;
  mutable std::mutex mutex_;  // guards the tuner
  Tuner tuner_;
  Tuner::Ticket under_way_;
  Seconds began_at_;
  std::vector<Timed> timed_;     // calls whose times are not agreed on yet
  std::vector<double> times_s_;  // of these, at this rank; then the agreed ones
  std::uint32_t agreements_ = 0;
};

}  // namespace regatta::comm
