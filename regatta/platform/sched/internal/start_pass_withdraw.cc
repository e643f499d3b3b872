// Starts of a decision that it takes back: sched/internal/start_pass.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/internal/service_size.h"
#include "regatta/platform/sched/internal/start_pass.h"

namespace regatta::sched {

// A start may lift its queue above its guarantee after jobs of that queue started: the next
// decision would evict them for this job. The last that started go first, and none that need not.
std::optional<GangPlacement> StartPass::withdraw_for(int pending, const JobRequest& job,
                                                     std::string& text) {
  std::vector<int> starts = starts_to_withdraw(claim_of(pending, job));
  if (starts.empty()) return std::nullopt;
  FreeCapacity free = state_.free;
  const auto each_replica = [&](int start, auto change) {
    for (const ReplicaPlacement& replica : at(state_.started, start))
      change(at(at(state_.queue.jobs, start).request.roles, replica.role), replica);
  };
  const auto give = [&](const Role& role, const ReplicaPlacement& replica) {
    free.give(role, replica);
  };
  const GangRequest gang{job, smallest_size(job), state_.weights};
  std::optional<GangPlacement> placement;
  std::size_t given = 0;
  for (; given < starts.size() && !placement; ++given) {
    each_replica(starts[given], give);
    placement = place_gang(free, gang);
  }
  if (!placement) return std::nullopt;
  starts.resize(given);
  std::vector<std::string> names;
  for (const int start : starts) {
    each_replica(start, [&](const Role& role, const ReplicaPlacement& replica) {
      free.take(role, replica);
    });
    if (auto beside = place_gang(free, gang)) {
      placement = std::move(beside);
      continue;
    }
    each_replica(start, give);
    withdraw(start);
    names.push_back(at(state_.queue.jobs, start).request.name);
  }
  text = fmt::format("; its queue is guaranteed them, and {} {} {}",
                     names.size() == 1 ? "job" : "jobs", shortened_list(names, 4),
                     names.size() == 1 ? "waits" : "wait");
  return placement;
}

// Jobs that started into free devices of their own, and may all be taken back for the claim one
// after the other; none twice, so that this ends.
std::vector<int> StartPass::starts_to_withdraw(const QuotaClaim& claim) const {
  QuotaUsage usage = state_.usage;
  std::vector<int> starts;
  for (auto start = started_free_.rbegin(); start != started_free_.rend(); ++start) {
    const JobRequest& job = at(state_.queue.jobs, *start).request;
    if (!is_started(*start) || at(was_withdrawn_, *start) != 0 ||
        follows_demand(state_.policy, job) || (state_.mixes && state_.mixes->may_share(job)))
      continue;
    const QuotaClaim victim{.leaf = leaf_of(*start),
                            .amounts = amounts_on(state_, job, at(state_.started, *start))};
    if (!state_.guarantees.allows(usage, claim, victim, ReclaimLoss::kWholeJob)) continue;
    usage.remove(account_of(*start), victim.amounts);
    starts.push_back(*start);
  }
  return starts;
}

void StartPass::withdraw(int pending) {
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  give(state_, job, at(state_.started, pending));
  at(state_.started, pending).clear();
  at(was_withdrawn_, pending) = 1;
  withdrawn_.push_back(pending);
  std::erase_if(state_.decision.actions, [&](const SchedulingAction& action) {
    return action.kind == ActionKind::kStart && action.job == job.name;
  });
}

void StartPass::add_withdrawn(std::vector<Waiting>& waiting) {
  for (const int pending : withdrawn_) {
    const bool is_known = std::any_of(waiting.begin(), waiting.end(),
                                      [&](const Waiting& job) { return job.pending == pending; });
    if (!is_known && !is_started(pending)) waiting.push_back({pending, WaitCause::kNoRoom});
  }
  withdrawn_.clear();
}

}  // namespace regatta::sched
