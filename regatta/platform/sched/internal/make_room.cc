#include "regatta/platform/sched/internal/make_room.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/service_size.h"
#include "regatta/platform/sched/internal/victim_search.h"

namespace regatta::sched {
namespace {

constexpr double kNeverEvicted = 1e12;  // rank of a job that may shrink and not be evicted
constexpr std::size_t kOtherVictimSetsMax =
    16;  // further sets of one search, where guarantees forbid one

bool has_surplus(const JobRequest& job, std::span<const ReplicaPlacement> replicas) {
  const std::vector<int> counts = replica_counts(job, replicas);
  for (std::size_t role = 0; role < counts.size(); ++role)
    if (counts[role] > job.roles[role].replicas_min) return true;
  return false;
}

// Replicas beyond the smallest size, the last first; none of roles with subgroups.
std::vector<int> surplus(const JobRequest& job, std::span<const ReplicaPlacement> replicas) {
  std::vector<int> counts = replica_counts(job, replicas);
  std::vector<int> indices;
  for (int i = static_cast<int>(replicas.size()) - 1; i >= 0; --i) {
    const int role = at(replicas, i).role;
    if (at(job.roles, role).subgroup_replicas > 1) continue;
    if (at(counts, role) <= at(job.roles, role).replicas_min) continue;
    --at(counts, role);
    indices.push_back(i);
  }
  return indices;
}

QuotaClaim claim_of(const DecisionState& state, const RoomRequest& request) {
  return {.leaf = request.leaf,
          .amounts = amounts_wanted(state, request.job, request.size),
          .was_evicted = request.was_evicted};
}

// The terms on which a search takes victims.
struct VictimTerms {
  const RoomRequest& request;
  QuotaClaim claim;
  ReclaimLoss loss = ReclaimLoss::kSurplus;
  bool has_guarantees = false;
  bool takes_back = false;  // a queue of the gang is entitled to what it takes
};

// Else it takes nothing back.
bool may_reclaim(const DecisionState& state, const QuotaClaim& claim) {
  return state.policy.reclaims && claim.leaf >= 0 && state.guarantees.is_any() &&
         state.guarantees.is_entitled(state.usage, claim, -1);
}

VictimTerms terms_of(const DecisionState& state, const RoomRequest& request, ReclaimLoss loss) {
  VictimTerms terms{
      .request = request,
      .claim = claim_of(state, request),
      .loss = loss,
      .has_guarantees = request.leaf >= 0 && state.guarantees.is_any(),
  };
  terms.takes_back = may_reclaim(state, terms.claim);
  return terms;
}

VictimFacts facts_of(const DecisionState& state, const RunningJob& job) {
  return {.claim = {.leaf = state.usage.leaf_of(state.accounts.at(&job.request)),
                    .amounts = amounts_on(state, job.request, job.replicas)},
          .loss = eviction_loss(state.snapshot, job),
          .level = service_level(state.policy.service_levels, job.request,
                                 work_done(state.snapshot, job)),
          .is_degraded = is_degraded(state.snapshot, job),
          .has_surplus = has_surplus(job.request, job.replicas)};
}

// Whether a job's priority, or its level of service, is before that of the victim. Levels only
// rise, and priorities stay, so that no two jobs evict each other in turn.
bool has_right(const DecisionState& state, const RoomRequest& request, int victim) {
  const int priority = at(state.snapshot.running, victim).request.priority;
  if (priority != request.job.priority) return priority < request.job.priority;
  const VictimFacts& facts = at(state.victim_facts, victim);
  // A degraded gang keeps its places until its nodes return.
  return !facts.is_degraded &&
         facts.level > service_level(state.policy.service_levels, request.job, request.work);
}

// `usage` is without the victims that were chosen before this one.
bool is_protected(const DecisionState& state, const VictimTerms& terms, const QuotaUsage& usage,
                  int victim) {
  return terms.has_guarantees &&
         state.guarantees.protects(usage, terms.claim, at(state.victim_facts, victim).claim);
}

bool may_be_evicted(const DecisionState& state, const VictimTerms& terms, const QuotaUsage& usage,
                    int victim) {
  const RunningJob& job = at(state.snapshot.running, victim);
  if (!job.request.is_preemptible) return false;
  if (state.snapshot.now - job.started < state.policy.protected_run_time) return false;
  if (state.policy.preempts && has_right(state, terms.request, victim) &&
      !is_protected(state, terms, usage, victim))
    return true;
  return terms.takes_back &&
         state.guarantees.allows(usage, terms.claim, at(state.victim_facts, victim).claim,
                                 terms.loss);
}

double eviction_cost(const DecisionState& state, int victim, int lowest_priority) {
  const RunningJob& job = at(state.snapshot.running, victim);
  const VictimFacts& facts = at(state.victim_facts, victim);
  if (state.policy.victims == VictimRule::kLowestPriority)
    return std::max(1.0, (state.snapshot.now - job.started).value);
  return facts.loss * (1.0 + job.request.priority - lowest_priority);
}

// Higher priorities go last where the rule says so: by whole steps, which stay exact in sums.
double eviction_rank(const DecisionState& state, const RunningJob& job, int lowest_priority) {
  return state.policy.victims == VictimRule::kLowestPriority
             ? static_cast<double>(job.request.priority) - lowest_priority
             : 0;
}

// Device-seconds that a service without its replicas costs: in each interval of a hold time it
// misses what they would have served.
double missed_demand_loss(const DecisionState& state, const RunningJob& job) {
  return devices_of(job.request, job.replicas) * state.policy.budget.missed_price *
         state.policy.service_hold.value;
}

std::vector<VictimOption> victim_options(const DecisionState& state, const VictimTerms& terms) {
  const RoomRequest& request = terms.request;
  const auto& running = state.snapshot.running;
  int lowest = std::numeric_limits<int>::max();
  for (const RunningJob& job : running)
    lowest = std::min(lowest, job.request.priority);
  std::vector<VictimOption> options;
  for (int i = 0; i < static_cast<int>(running.size()); ++i) {
    const RunningJob& job = at(running, i);
    if (&job.request == &request.job || at(state.running, i).is_changed) continue;
    const VictimFacts& facts = at(state.victim_facts, i);
    const bool is_service = follows_demand(state.policy, job.request);
    // A service needs its replicas: those of its own priority take none.
    const bool is_before = is_service ? job.request.priority < request.job.priority
                                      : job.request.priority <= request.job.priority;
    const bool can_shrink = state.policy.resizes && is_before && facts.has_surplus &&
                            !is_protected(state, terms, state.usage, i);
    const bool can_evict = may_be_evicted(state, terms, state.usage, i);
    if (!can_evict && !can_shrink) continue;
    VictimOption option{.job = i};
    option.eviction_cost = can_evict ? eviction_cost(state, i, lowest) : 0;
    option.eviction_rank = can_evict ? eviction_rank(state, job, lowest) : kNeverEvicted;
    if (can_shrink) {
      option.sheddable = surplus(job.request, job.replicas);
      // One restart of the job if it gives all of them up: never more than its eviction.
      option.shrink_cost = devices_of(job.request, job.replicas) *
                           job.request.checkpointing.restart.value /
                           static_cast<double>(std::max<std::size_t>(1, option.sheddable.size()));
    }
    if (is_service) {
      const double missed = missed_demand_loss(state, job);
      option.eviction_cost += missed;
      option.shrink_cost += missed / static_cast<double>(job.replicas.size());
    }
    options.push_back(std::move(option));
  }
  return options;
}

void evict(DecisionState& state, int job, const JobRequest& gang) {
  const RunningJob& victim = at(state.snapshot.running, job);
  JobChange& change = at(state.running, job);
  give(state, victim.request, change.replicas);
  change.replicas.clear();
  change.is_evicted = change.is_changed = true;
  add_action(state, ActionKind::kEvict, victim.request, {},
             fmt::format("makes room for job {} of priority {}; it loses {}", gang.name,
                         gang.priority, lost_work_text(state.snapshot, victim)));
}

void shed(DecisionState& state, const Victim& victim, const JobRequest& gang) {
  const RunningJob& job = at(state.snapshot.running, victim.job);
  JobChange& change = at(state.running, victim.job);
  std::vector<ReplicaPlacement> given;
  std::vector<ReplicaPlacement> left;
  for (int i = 0; i < static_cast<int>(change.replicas.size()); ++i) {
    const bool is_shed = std::find(victim.shed.begin(), victim.shed.end(), i) != victim.shed.end();
    (is_shed ? given : left).push_back(at(change.replicas, i));
  }
  give(state, job.request, given);
  change.replicas = left;
  change.is_changed = true;
  add_action(state, ActionKind::kShrink, job.request, std::move(left),
             fmt::format("gives {} of {} replicas up for job {}", given.size(),
                         given.size() + change.replicas.size(), gang.name));
}

// A victim that may not be evicted once as many of the others as possible are gone; -1: all may,
// one after the other. Each was allowed alone. Small ones go first: the last of a queue may be one
// that its queue borrows in part.
int victim_too_many(const DecisionState& state, const VictimTerms& terms,
                    const std::vector<Victim>& victims) {
  if (!terms.has_guarantees) return -1;
  const auto amounts = [&](int job) -> const ResourceAmounts& {
    return at(state.victim_facts, job).claim.amounts;
  };
  std::vector<int> left;
  for (const Victim& victim : victims)
    if (victim.is_evicted) left.push_back(victim.job);
  std::stable_sort(left.begin(), left.end(), [&](int a, int b) {
    return amounts(a)[Resource::kCompute] < amounts(b)[Resource::kCompute];
  });
  QuotaUsage usage = state.usage;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](int job) {
      return may_be_evicted(state, terms, usage, job);
    });
    if (next == left.end()) return left.front();
    usage.remove(state.accounts.at(&at(state.snapshot.running, *next).request), amounts(*next));
    left.erase(next);
  }
  return -1;
}

struct VictimTrial {
  std::vector<int> left_out;  // running jobs
  bool is_other = false;      // not only those that were too many
};

std::vector<VictimOption> options_without(const std::vector<VictimOption>& options,
                                          const std::vector<int>& left_out) {
  std::vector<VictimOption> kept;
  for (const VictimOption& option : options)
    if (std::find(left_out.begin(), left_out.end(), option.job) == left_out.end())
      kept.push_back(option);
  return kept;
}

// The cheapest victims that all may be evicted one after the other. Where those of a set may not,
// one that is too many is left out; where that ends without room, another one of the set.
std::optional<VictimSet> find_room_by(const DecisionState& state, const RoomRequest& request,
                                      ReclaimLoss loss) {
  const VictimTerms terms = terms_of(state, request, loss);
  const std::vector<VictimOption> all = victim_options(state, terms);
  std::size_t others = 0;
  std::vector<VictimTrial> trials = {{}};  // the last is next
  while (!trials.empty()) {
    const VictimTrial trial = std::move(trials.back());
    trials.pop_back();
    if (trial.is_other && ++others > kOtherVictimSetsMax) return std::nullopt;
    std::vector<VictimOption> fewer;
    if (!trial.left_out.empty()) fewer = options_without(all, trial.left_out);
    const std::vector<VictimOption>& options = trial.left_out.empty() ? all : fewer;
    if (options.empty()) continue;
    auto found =
        find_victims(state.free, {request.job, request.size, state.weights, request.kept}, options);
    if (!found || found->rank >= kNeverEvicted) continue;
    const int too_many = victim_too_many(state, terms, found->victims);
    if (too_many < 0) return found;
    const auto leave_out = [&](int job, bool is_other) {
      trials.push_back({trial.left_out, is_other});
      trials.back().left_out.push_back(job);
    };
    for (const Victim& victim : found->victims)
      if (victim.is_evicted && victim.job != too_many && trials.size() < kOtherVictimSetsMax)
        leave_out(victim.job, true);
    leave_out(too_many, trial.is_other);
  }
  return std::nullopt;
}

std::optional<VictimSet> find_victims_for(DecisionState& state, const RoomRequest& request) {
  find_victim_facts(state);
  auto found = find_room_by(state, request, ReclaimLoss::kSurplus);
  if (!found && may_reclaim(state, claim_of(state, request)))
    found = find_room_by(state, request, ReclaimLoss::kWholeJob);
  return found;
}

}  // namespace

void find_victim_facts(DecisionState& state) {
  if (!state.victim_facts.empty()) return;
  state.victim_facts.reserve(state.snapshot.running.size());
  for (const RunningJob& job : state.snapshot.running)
    state.victim_facts.push_back(facts_of(state, job));
}

std::string names_of(const DecisionState& state, const std::vector<Victim>& victims) {
  std::vector<std::string> names;
  for (const Victim& victim : victims)
    names.push_back(at(state.snapshot.running, victim.job).request.name);
  return (names.size() == 1 ? "job " : "jobs ") + shortened_list(names, 4);
}

bool can_make_room(DecisionState& state, const RoomRequest& request) {
  return find_victims_for(state, request).has_value();
}

std::optional<GangPlacement> make_room(DecisionState& state, const RoomRequest& request,
                                       std::string& text) {
  auto found = find_victims_for(state, request);
  if (!found) return std::nullopt;
  for (const Victim& victim : found->victims) {
    if (victim.is_evicted)
      evict(state, victim.job, request.job);
    else
      shed(state, victim, request.job);
  }
  if (!found->victims.empty())
    text = fmt::format("; {} {} room", names_of(state, found->victims),
                       found->victims.size() == 1 ? "makes" : "make");
  return std::move(found->placement);
}

bool has_free_devices(const DecisionState& state, const RoomRequest& request) {
  if (state.free.nodes() == 0) return false;
  const auto free_milli = static_cast<double>(state.free.free_milli(TopologyLevel::kCluster, 0));
  return free_milli >= kDeviceMilli * (devices_of(request.job, request.size) -
                                       devices_of(request.job, request.kept));
}

}  // namespace regatta::sched
