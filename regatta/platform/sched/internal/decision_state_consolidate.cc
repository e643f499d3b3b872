// Where nothing waits for room, jobs move together, so that whole nodes and whole leaves become
// free for gangs to come: sched/internal/decision_state.h.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

constexpr int kTriesMax = 16;  // searches for other places of one decision

// Devices of wholly free nodes, and of leaves of which all nodes are.
struct WhollyFree {
  double node_devices = 0;
  double leaf_devices = 0;
};

bool is_wholly_free(const FreeCapacity& free, int node) {
  return std::popcount(free.free(node).whole_free) == free.node(node).devices;
}

// A node or a leaf that moves may make wholly free.
struct Emptied {
  TopologyLevel level = TopologyLevel::kServer;
  NodeRange range;
  std::vector<int> jobs;  // running, with replicas in the range; the largest first
  double loss = 0;        // device-seconds that the moves lose
  double gain_most = 0;   // and that they gain at most
};

struct ConsolidatingMove {
  int job = 0;
  std::vector<ReplicaPlacement> given;     // in the range
  std::vector<ReplicaPlacement> taken;     // instead of them
  std::vector<ReplicaPlacement> replicas;  // all then
};

class ConsolidationPass {
 public:
  explicit ConsolidationPass(DecisionState& state)
      : state_(state),
        rule_(state.policy.consolidation),
        domains_(state.free.domains()),
        jobs_on_(as_index(state.free.nodes())),
        is_stuck_(as_index(state.free.nodes()), 0),
        moves_left_(rule_.moves) {}

  void run();

 private:
  void index_jobs();
  bool may_move(int job) const;
  std::optional<Emptied> emptied(TopologyLevel level, NodeRange range) const;
  std::vector<Emptied> candidates() const;
  bool is_in(const Emptied& one, const ReplicaPlacement& replica) const;
  TopologyLevel level_of(const std::vector<ReplicaPlacement>& replicas) const;
  FreeCapacity places_beside(const Emptied& one) const;
  std::optional<std::vector<ConsolidatingMove>> find_places(const Emptied& one) const;
  WhollyFree wholly_free(const FreeCapacity& free) const;
  double gain_of(const std::vector<ConsolidatingMove>& moves) const;
  void carry_out(const Emptied& one, const std::vector<ConsolidatingMove>& moves, double gain);

  DecisionState& state_;
  const Consolidation& rule_;
  const ClusterDomains& domains_;
  std::vector<std::vector<int>> jobs_on_;  // running jobs of each node
  std::vector<char> is_stuck_;             // nodes with a job that stays
  int moves_left_ = 0;
};

// A job that moves starts anew, so that `rest` keeps jobs from moving in circles.
bool ConsolidationPass::may_move(int index) const {
  const RunningJob& job = at(state_.snapshot.running, index);
  const auto is_elastic = [](const Role& role) { return role.replicas_max > role.replicas_min; };
  return !at(state_.running, index).is_changed && !is_degraded(state_.snapshot, job) &&
         state_.snapshot.now - job.started >= rule_.rest &&
         (job.request.is_preemptible ||
          std::any_of(job.request.roles.begin(), job.request.roles.end(), is_elastic));
}

void ConsolidationPass::index_jobs() {
  for (int i = 0; i < static_cast<int>(state_.running.size()); ++i) {
    const bool moves = may_move(i);
    for (const ReplicaPlacement& replica : at(state_.running, i).replicas) {
      std::vector<int>& jobs = at(jobs_on_, replica.node);
      if (jobs.empty() || jobs.back() != i) jobs.push_back(i);
      if (!moves) at(is_stuck_, replica.node) = 1;
    }
  }
  for (const std::vector<ReplicaPlacement>& replicas : state_.started)
    for (const ReplicaPlacement& replica : replicas)
      at(is_stuck_, replica.node) = 1;
}

std::optional<Emptied> ConsolidationPass::emptied(TopologyLevel level, NodeRange range) const {
  Emptied one{.level = level, .range = range, .jobs = {}, .loss = 0, .gain_most = 0};
  double leaf_devices = 0;
  for (int i = range.begin; i < range.end; ++i) {
    const int node = at(domains_.order, i);
    if (state_.free.node(node).devices == 0) continue;
    leaf_devices += state_.free.node(node).devices;
    const bool is_whole = is_wholly_free(state_.free, node);
    if (is_whole) continue;
    // A failed device keeps its node from ever being wholly free.
    if (!state_.free.free(node).is_open || at(is_stuck_, node) != 0 ||
        state_.free.node(node).failed_devices != 0)
      return std::nullopt;
    one.gain_most += rule_.node.value * state_.free.node(node).devices;
    one.jobs.insert(one.jobs.end(), at(jobs_on_, node).begin(), at(jobs_on_, node).end());
  }
  if (one.jobs.empty()) return std::nullopt;
  std::sort(one.jobs.begin(), one.jobs.end());
  one.jobs.erase(std::unique(one.jobs.begin(), one.jobs.end()), one.jobs.end());
  if (static_cast<int>(one.jobs.size()) > moves_left_) return std::nullopt;
  for (const int job : one.jobs)
    one.loss += eviction_loss(state_.snapshot, at(state_.snapshot.running, job));
  if (level == TopologyLevel::kLeaf) one.gain_most += rule_.leaf.value * leaf_devices;
  if (one.gain_most <= one.loss) return std::nullopt;
  const auto devices = [&](int job) {
    return devices_of(at(state_.snapshot.running, job).request, at(state_.running, job).replicas);
  };
  std::stable_sort(one.jobs.begin(), one.jobs.end(),
                   [&](int a, int b) { return devices(a) > devices(b); });
  return one;
}

// Those with the largest gain beyond the loss first.
std::vector<Emptied> ConsolidationPass::candidates() const {
  std::vector<Emptied> found;
  for (const TopologyLevel level : {TopologyLevel::kLeaf, TopologyLevel::kServer}) {
    // A cluster of one leaf has no other.
    if (level == TopologyLevel::kLeaf && domains_.of(level).size() < 2) continue;
    for (const NodeRange& range : domains_.of(level))
      if (auto one = emptied(level, range)) found.push_back(std::move(*one));
  }
  std::stable_sort(found.begin(), found.end(), [](const Emptied& a, const Emptied& b) {
    return a.gain_most - a.loss > b.gain_most - b.loss;
  });
  return found;
}

bool ConsolidationPass::is_in(const Emptied& one, const ReplicaPlacement& replica) const {
  const int position = at(domains_.position, replica.node);
  return one.range.begin <= position && position < one.range.end;
}

TopologyLevel ConsolidationPass::level_of(const std::vector<ReplicaPlacement>& replicas) const {
  const auto is_within = [&](TopologyLevel level) {
    return std::all_of(replicas.begin(), replicas.end(), [&](const ReplicaPlacement& replica) {
      return domains_.domain_at(level, at(domains_.position, replica.node)) ==
             domains_.domain_at(level, at(domains_.position, replicas.front().node));
    });
  };
  for (const TopologyLevel level :
       {TopologyLevel::kServer, TopologyLevel::kLeaf, TopologyLevel::kGroup})
    if (is_within(level)) return level;
  return TopologyLevel::kCluster;
}

// Other nodes that are begun already; for a leaf also whole nodes of leaves that are begun.
FreeCapacity ConsolidationPass::places_beside(const Emptied& one) const {
  FreeCapacity free = state_.free;
  for (const NodeRange& leaf : domains_.of(TopologyLevel::kLeaf)) {
    bool is_begun = false;
    for (int i = leaf.begin; i < leaf.end; ++i)
      is_begun |= !is_wholly_free(free, at(domains_.order, i));
    for (int i = leaf.begin; i < leaf.end; ++i) {
      const int node = at(domains_.order, i);
      const bool is_left = one.range.begin <= i && i < one.range.end;
      const bool is_kept_whole =
          is_wholly_free(free, node) && (one.level == TopologyLevel::kServer || !is_begun);
      if (is_left || is_kept_whole) free.set_open(node, false);
    }
  }
  return free;
}

std::optional<std::vector<ConsolidatingMove>> ConsolidationPass::find_places(
    const Emptied& one) const {
  FreeCapacity free = places_beside(one);
  std::vector<ConsolidatingMove> moves;
  for (const int job : one.jobs) {
    const JobRequest& request = at(state_.snapshot.running, job).request;
    ConsolidatingMove move{.job = job, .given = {}, .taken = {}, .replicas = {}};
    const std::vector<ReplicaPlacement>& before = at(state_.running, job).replicas;
    for (const ReplicaPlacement& replica : before)
      (is_in(one, replica) ? move.given : move.replicas).push_back(replica);
    const auto placement =
        place_gang(free, {request, replica_counts(request, before), state_.weights, move.replicas});
    if (!placement) return std::nullopt;
    move.taken = placement->replicas;
    move.replicas.insert(move.replicas.end(), move.taken.begin(), move.taken.end());
    order_gang(domains_, request, move.replicas);
    if (at(request.slowdown, static_cast<int>(level_of(move.replicas))) >
        at(request.slowdown, static_cast<int>(level_of(before))))
      return std::nullopt;
    for (const ReplicaPlacement& replica : move.taken)
      free.take(at(request.roles, replica.role), replica);
    moves.push_back(std::move(move));
  }
  return moves;
}

WhollyFree ConsolidationPass::wholly_free(const FreeCapacity& free) const {
  WhollyFree sum;
  for (const NodeRange& leaf : domains_.of(TopologyLevel::kLeaf)) {
    double devices = 0;
    bool is_whole = true;
    for (int i = leaf.begin; i < leaf.end; ++i) {
      const int node = at(domains_.order, i);
      const bool is_free = free.free(node).is_open && is_wholly_free(free, node);
      if (is_free) devices += free.node(node).devices;
      is_whole &= is_free;
    }
    sum.node_devices += devices;
    if (is_whole) sum.leaf_devices += devices;
  }
  return sum;
}

// Device-seconds; 0 where fewer nodes or leaves would be wholly free.
double ConsolidationPass::gain_of(const std::vector<ConsolidatingMove>& moves) const {
  FreeCapacity after = state_.free;
  for (const ConsolidatingMove& move : moves) {
    const std::vector<Role>& roles = at(state_.snapshot.running, move.job).request.roles;
    for (const ReplicaPlacement& replica : move.given)
      after.give(at(roles, replica.role), replica);
    for (const ReplicaPlacement& replica : move.taken)
      after.take(at(roles, replica.role), replica);
  }
  const WhollyFree old = wholly_free(state_.free);
  const WhollyFree made = wholly_free(after);
  if (made.node_devices < old.node_devices || made.leaf_devices < old.leaf_devices) return 0;
  return rule_.node.value * (made.node_devices - old.node_devices) +
         rule_.leaf.value * (made.leaf_devices - old.leaf_devices);
}

void ConsolidationPass::carry_out(const Emptied& one, const std::vector<ConsolidatingMove>& moves,
                                  double gain) {
  const ClusterNode& first = state_.free.node(at(domains_.order, one.range.begin));
  const std::string emptied_text =
      one.level == TopologyLevel::kLeaf ? fmt::format("leaf {}", first.leaf) : "node " + first.name;
  for (const ConsolidatingMove& move : moves) {
    const JobRequest& job = at(state_.snapshot.running, move.job).request;
    take(state_, job, move.taken);
    give(state_, job, move.given);
    JobChange& change = at(state_.running, move.job);
    change.replicas = move.replicas;
    change.is_changed = true;
    add_action(state_, ActionKind::kMove, job, move.replicas,
               fmt::format("{} on {}, so that {} becomes wholly free; that is worth {} of a "
                           "device, and moving loses {}",
                           resume_text(state_.snapshot, at(state_.snapshot.running, move.job)),
                           place_text(state_, job, move.replicas), emptied_text,
                           format_duration({gain}), lost_time_text({one.loss})));
    for (const ReplicaPlacement& replica : move.replicas)
      at(is_stuck_, replica.node) = 1;
  }
  moves_left_ -= static_cast<int>(moves.size());
}

void ConsolidationPass::run() {
  index_jobs();
  int tries = 0;
  for (const Emptied& one : candidates()) {
    if (tries >= kTriesMax || moves_left_ <= 0) return;
    // Jobs and nodes of an earlier candidate are not what they were.
    const bool is_changed = std::any_of(one.jobs.begin(), one.jobs.end(), [&](int job) {
      return at(state_.running, job).is_changed;
    });
    const auto now = is_changed ? std::nullopt : emptied(one.level, one.range);
    if (!now) continue;
    ++tries;
    const auto moves = find_places(*now);
    if (!moves) continue;
    const double gain = gain_of(*moves);
    if (gain > now->loss) carry_out(*now, *moves, gain);
  }
}

bool waits_for_room(const SchedulingDecision& decision) {
  return std::any_of(decision.waiting.begin(), decision.waiting.end(), [](const WaitingJob& job) {
    return job.cause == WaitCause::kNoRoom || job.cause == WaitCause::kReservation ||
           job.cause == WaitCause::kSpares || job.cause == WaitCause::kDegraded;
  });
}

}  // namespace

void consolidate_running_jobs(DecisionState& state) {
  if (state.policy.consolidation.moves <= 0 || waits_for_room(state.decision)) return;
  ConsolidationPass(state).run();
}

}  // namespace regatta::sched
