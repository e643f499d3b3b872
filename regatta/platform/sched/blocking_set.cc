#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "regatta/platform/sched/internal/blocking_search.h"
#include "regatta/platform/sched/internal/blocking_text.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {
namespace {

std::pair<std::size_t, double> cost_of(const BlockingSet& set) {
  std::pair<std::size_t, double> cost{set.jobs.size(), 0};
  const auto add = [&](const BlockingJob& job) {
    cost.second = std::max(cost.second, job.ends.value);
  };
  for (const BlockingJob& job : set.jobs)
    add(job);
  for (const BlockingLimit& limit : set.limits) {
    cost.first += limit.jobs.size();
    for (const BlockingJob& job : limit.jobs)
      add(job);
  }
  return cost;
}

// A set that can be met before one that cannot, then the fewest jobs, then those that end first.
bool is_better(const BlockingSet& a, const BlockingSet& b) {
  const auto rank = [](const BlockingSet& set) {
    return std::tuple(set.never_fits, !set.nodes.empty(), cost_of(set));
  };
  return rank(a) < rank(b);
}

// Whether the decision starts the job where it asks for this instead.
bool starts_as(const ClusterSnapshot& snapshot, JobQueue queue, const SchedulingPolicy& policy,
               const JobRequest& job) {
  for (PendingJob& pending : queue.jobs)
    if (pending.request.name == job.name) pending.request = job;
  const auto decision = decide(snapshot, queue, policy);
  return decision && std::any_of(decision->actions.begin(), decision->actions.end(),
                                 [&](const SchedulingAction& action) {
                                   return action.kind == ActionKind::kStart &&
                                          action.job == job.name;
                                 });
}

}  // namespace

Result<BlockingSet> blocking_set(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 const SchedulingPolicy& policy, std::string_view job) {
  const auto found =
      std::find_if(queue.jobs.begin(), queue.jobs.end(),
                   [&](const PendingJob& pending) { return pending.request.name == job; });
  if (found == queue.jobs.end())
    return Error{Code::kNotFound, fmt::format("job {}: it is not pending", job)};
  REGATTA_TRY(state, DecisionState::create(snapshot, queue, policy));
  const int account = state.accounts.at(&found->request);
  std::optional<BlockingFind> best;
  std::optional<JobRequest> startable;
  double startable_devices = 0;
  for (const JobRequest& on_type : by_device_type(state, found->request)) {
    BlockingFind find = find_blocking(state, on_type, account);
    if (find.startable && devices_min(*find.startable) > startable_devices) {
      startable = find.startable;
      startable_devices = devices_min(*startable);
    }
    if (!best || is_better(find.set, best->set)) best = std::move(find);
  }
  // Jobs before it, and reservations, may hold a smaller size up too.
  const bool starts_smaller = startable && starts_as(snapshot, queue, policy, *startable);
  best->set.startable_devices = starts_smaller ? static_cast<int>(startable_devices) : 0;
  best->set.sentence = blocking_sentence(best->job, best->set, snapshot.now);
  return std::move(best->set);
}

}  // namespace regatta::sched
