// report/aggregate.h: turns the events of a training run (see train/README.md) into what was
// measured. Pure; events may come in any order.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/app/report/run_result.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/workload/timeline.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::report {

class Aggregator {
 public:
  explicit Aggregator(int world_size);

  // Takes a "step", "phases" or "spans" event; others are passed over. Gives the step that is
  // complete with this event: every rank has told its time. kInvalidInput names the event that has
  // not the agreed form.
  Result<std::optional<StepRecord>> add(Rank rank, const nlohmann::json& event);

  // Tokens of one step, all ranks together; 0 before the first step.
  long long tokens_per_step() const { return tokens_; }

  // The step times of the complete steps: the slowest rank's. Leaves the first `warm_up` out of the
  // medians (fewer when there are not twice as many steps: MeasuredRun::warm_up_steps says how
  // many). `traffic` is that of the whole run. Phases: mean over ranks, median over steps, scaled
  // to sum to the step time. The timeline starts at 0.
  MeasuredRun measured(int warm_up, const std::vector<plan::LinkTraffic>& traffic) const;

 private:
  struct StepState {
    std::set<int> told;  // ranks
    StepRecord record;
    int phases_told = 0;
    workload::PhaseTimes phases;  // summed over ranks
  };
  std::optional<StepRecord> add_step(int rank, const nlohmann::json& event);
  std::vector<const StepState*> complete_steps() const;

  int world_size_;
  long long tokens_ = 0;
  std::map<int, StepState> steps_;
  workload::Timeline timeline_;
};

}  // namespace regatta::report
