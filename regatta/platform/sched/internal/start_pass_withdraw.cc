// Starts of a decision that it takes back: sched/internal/start_pass.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/internal/service_size.h"
#include "regatta/platform/sched/internal/start_pass.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kWithdrawnMax = 16;  // starts that are looked at for one job

}  // namespace

// A start may lift its queue above its guarantee after jobs of that queue started: the next
// decision would evict them for this job. The last that started go first, and none that need not.
std::optional<GangPlacement> StartPass::withdraw_for(int pending, const JobRequest& job,
                                                     std::string& text) {
  const QuotaClaim claim = claim_of(pending, job);
  const std::vector<OwnStart> starts = starts_to_withdraw(claim);
  if (starts.empty()) return std::nullopt;
  const GangRequest gang{job, smallest_size(job), state_.weights};
  FreeCapacity free = state_.free;
  for (const OwnStart& start : starts)
    give_start(free, start.pending);
  if (!place_gang(free, gang)) return std::nullopt;
  for (const OwnStart& start : starts)
    take_start(free, start.pending);
  // One may be taken back at the cost of another, which brings its queue down to the guarantee.
  for (std::size_t first = 0; first < starts.size(); ++first)
    if (auto placement = withdraw_among(std::span(starts).subspan(first), claim, gang, free, text))
      return placement;
  return std::nullopt;
}

// `free` is state_.free, and again in the end where there is no room.
std::optional<GangPlacement> StartPass::withdraw_among(std::span<const OwnStart> starts,
                                                       const QuotaClaim& claim,
                                                       const GangRequest& gang, FreeCapacity& free,
                                                       std::string& text) {
  QuotaUsage usage = state_.usage;
  std::optional<GangPlacement> placement;
  std::vector<int> given;
  for (auto start = starts.begin(); start != starts.end() && !placement; ++start) {
    if (!state_.guarantees.allows(usage, claim, start->claim, ReclaimLoss::kWholeJob)) continue;
    usage.remove(account_of(start->pending), start->claim.amounts);
    give_start(free, start->pending);
    given.push_back(start->pending);
    placement = place_gang(free, gang);
  }
  std::vector<std::string> names;
  for (const int start : given) {
    take_start(free, start);
    if (!placement) continue;
    if (auto beside = place_gang(free, gang)) {
      placement = std::move(beside);
      continue;
    }
    give_start(free, start);
    withdraw(start);
    names.push_back(at(state_.queue.jobs, start).request.name);
  }
  if (!placement) return std::nullopt;
  text = fmt::format("; its queue is guaranteed them, and {} {} {}",
                     names.size() == 1 ? "job" : "jobs", shortened_list(names, 4),
                     names.size() == 1 ? "waits" : "wait");
  return placement;
}

// Jobs that started into free devices of their own, each of which may be taken back for the claim;
// none twice, so that this ends.
std::vector<StartPass::OwnStart> StartPass::starts_to_withdraw(const QuotaClaim& claim) const {
  std::vector<OwnStart> starts;
  for (auto start = started_free_.rbegin();
       start != started_free_.rend() && starts.size() < kWithdrawnMax; ++start) {
    const JobRequest& job = at(state_.queue.jobs, *start).request;
    if (!is_started(*start) || at(was_withdrawn_, *start) != 0 || leaf_of(*start) == claim.leaf ||
        follows_demand(state_.policy, job) || (state_.mixes && may_share_devices(job)))
      continue;
    QuotaClaim own{.leaf = leaf_of(*start),
                   .amounts = amounts_on(state_, job, at(state_.started, *start))};
    if (state_.guarantees.allows(state_.usage, claim, own, ReclaimLoss::kWholeJob))
      starts.push_back({.pending = *start, .claim = std::move(own)});
  }
  return starts;
}

void StartPass::give_start(FreeCapacity& free, int pending) const {
  for (const ReplicaPlacement& replica : at(state_.started, pending))
    free.give(at(at(state_.queue.jobs, pending).request.roles, replica.role), replica);
}

void StartPass::take_start(FreeCapacity& free, int pending) const {
  for (const ReplicaPlacement& replica : at(state_.started, pending))
    free.take(at(at(state_.queue.jobs, pending).request.roles, replica.role), replica);
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
