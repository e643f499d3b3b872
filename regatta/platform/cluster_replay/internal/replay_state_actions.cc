// How the actions of a decision change a replay: cluster_replay/internal/replay_state.h.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/internal/replay_state.h"

namespace regatta::cluster_replay {
namespace {

// `what`: "it is started and does not wait".
Error cannot_carry_out(const sched::SchedulingAction& action, std::string_view what) {
  return Error{Code::kConflict,
               fmt::format("job {}: {}; the decision cannot be carried out", action.job, what)};
}

}  // namespace

Status ReplayState::start(int job, const sched::SchedulingAction& action) {
  Job& state = at(jobs_, job);
  if (state.pending < 0) return cannot_carry_out(action, "it is started and does not wait");
  REGATTA_TRY_DO(ledger_.take(at(queue_.jobs, state.pending).request, action.replicas));
  JobOutcome& outcome = at(result_.jobs, job);
  outcome.pending += {now_ - state.pending_since};
  sched::RunningJob running;
  running.request = take_pending(job);
  running.replicas = action.replicas;
  if (outcome.first_start == kNever) {
    outcome.first_start = {now_};
    if (options_.on_first_start) options_.on_first_start(running.request, {now_});
  }
  state.running = static_cast<int>(snapshot_.running.size());
  snapshot_.running.push_back(std::move(running));
  runs_.emplace_back();
  run_jobs_.push_back(job);
  if (at(input_.jobs, job).demand.is_service()) set_ready(job, {});
  run_from(job, state.completed, state.evictions > 0);
  log_.add(now_, "start", action.job, action.replicas);
  return {};
}

Status ReplayState::evict(int job, const sched::SchedulingAction& action) {
  Job& state = at(jobs_, job);
  if (state.running < 0) return cannot_carry_out(action, "it is evicted and does not run");
  const sched::Checkpointing& checkpointing =
      at(snapshot_.running, state.running).request.checkpointing;
  state.completed = checkpointed_work(at(runs_, state.running), checkpointing, now_);
  lose_work(job, state.completed);
  ++state.evictions;
  ++at(result_.jobs, job).evictions;
  ++result_.evictions;
  curves_.count_eviction();
  set_pending(job, take_running(job));
  log_.add(now_, "evict", action.job);
  return {};
}

Status ReplayState::change_places(int job, const sched::SchedulingAction& action) {
  Job& state = at(jobs_, job);
  if (state.running < 0) return cannot_carry_out(action, "its places change and it does not run");
  sched::RunningJob& running = at(snapshot_.running, state.running);
  const JobRun& run = at(runs_, state.running);
  const bool is_resize =
      action.kind == sched::ActionKind::kShrink || action.kind == sched::ActionKind::kGrow;
  double kept = work_at(run, now_);
  if (!is_resize) kept = checkpointed_work(run, running.request.checkpointing, now_);
  lose_work(job, kept);
  (is_resize ? result_.resizes : result_.moves) += 1;
  ledger_.give_back(running.request, running.replicas);
  REGATTA_TRY_DO(ledger_.take(running.request, action.replicas));
  const std::vector<sched::ReplicaPlacement> before =
      std::exchange(running.replicas, action.replicas);
  if (at(input_.jobs, job).demand.is_service()) set_ready(job, before);
  run_from(job, kept, true);
  log_.add(now_, is_resize ? "resize" : "move", action.job, action.replicas);
  return {};
}

Status ReplayState::apply_mixes(const sched::SchedulingDecision& decision) {
  for (const sched::MixAction& action : decision.mixes) {
    const sched::DeviceMix& mix = action.mix;
    if (mix.node < 0 || as_index(mix.node) >= snapshot_.nodes.size() || mix.device < 0 ||
        mix.device >= at(snapshot_.nodes, mix.node).devices)
      return Error{Code::kConflict, fmt::format("device {} of node {}: it does not exist; the "
                                                "decision cannot be carried out",
                                                mix.device, mix.node)};
    const auto place = std::lower_bound(
        snapshot_.mixes.begin(), snapshot_.mixes.end(), mix, [](const auto& a, const auto& b) {
          return std::pair(a.node, a.device) < std::pair(b.node, b.device);
        });
    if (place != snapshot_.mixes.end() && place->node == mix.node && place->device == mix.device)
      *place = mix;
    else
      snapshot_.mixes.insert(place, mix);
    ledger_.set_mixed(mix.node, mix.device, true);
    use_.set_mode(mix.node, mix.device, mix.mode);
    ++result_.mixes;
  }
  return {};
}

// A mix ends where the jobs on its device take no more than the whole.
void ReplayState::end_needless_mixes() {
  std::erase_if(snapshot_.mixes, [&](const sched::DeviceMix& mix) {
    if (ledger_.is_overcommitted(mix.node, mix.device)) return false;
    ledger_.set_mixed(mix.node, mix.device, false);
    use_.clear_mode(mix.node, mix.device);
    return true;
  });
}

Status ReplayState::apply(const sched::SchedulingDecision& decision) {
  REGATTA_TRY_DO(apply_mixes(decision));
  for (const sched::SchedulingAction& action : decision.actions) {
    REGATTA_TRY(job, index_of(action.job));
    switch (action.kind) {
      case sched::ActionKind::kStart:
        REGATTA_TRY_DO(start(job, action));
        break;
      case sched::ActionKind::kEvict:
        REGATTA_TRY_DO(evict(job, action));
        break;
      case sched::ActionKind::kShrink:
      case sched::ActionKind::kGrow:
      case sched::ActionKind::kReplace:
      case sched::ActionKind::kMove:
        REGATTA_TRY_DO(change_places(job, action));
        break;
    }
  }
  end_needless_mixes();
  return {};
}

}  // namespace regatta::cluster_replay
