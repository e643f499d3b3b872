// Running jobs move, so that a gang fits: sched/internal/make_room.h.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/make_room.h"
#include "regatta/platform/sched/internal/victim_search.h"

namespace regatta::sched {
namespace {

struct Move {
  int job = 0;
  std::vector<ReplicaPlacement> replicas;
};

// Other places for the victims once the gang has its own; nothing where one finds none.
std::optional<std::vector<Move>> find_moves(const DecisionState& state, const JobRequest& gang,
                                            const VictimSet& victims) {
  FreeCapacity free = state.free;
  for (const Victim& victim : victims.victims) {
    const JobRequest& job = at(state.snapshot.running, victim.job).request;
    for (const ReplicaPlacement& replica : at(state.running, victim.job).replicas)
      free.give(at(job.roles, replica.role), replica);
  }
  for (const ReplicaPlacement& replica : victims.placement.replicas)
    free.take(at(gang.roles, replica.role), replica);
  std::vector<Move> moves;
  for (const Victim& victim : victims.victims) {
    const JobRequest& job = at(state.snapshot.running, victim.job).request;
    const GangSize size = replica_counts(job, at(state.running, victim.job).replicas);
    const auto placement = place_gang(free, {job, size, state.weights});
    if (!placement) return std::nullopt;
    for (const ReplicaPlacement& replica : placement->replicas)
      free.take(at(job.roles, replica.role), replica);
    moves.push_back({.job = victim.job, .replicas = placement->replicas});
  }
  return moves;
}

}  // namespace

std::optional<GangPlacement> move_jobs(DecisionState& state, const RoomRequest& request,
                                       Seconds start, std::string& text) {
  find_victim_facts(state);
  std::vector<VictimOption> options;
  for (int i = 0; i < static_cast<int>(state.snapshot.running.size()); ++i) {
    const VictimFacts& facts = at(state.victim_facts, i);
    if (!at(state.snapshot.running, i).request.is_preemptible || at(state.running, i).is_changed ||
        facts.is_degraded)
      continue;
    options.push_back({.job = i, .eviction_cost = facts.loss});
  }
  auto found =
      find_victims(state.free, {request.job, request.size, state.weights, request.kept}, options);
  if (!found || static_cast<int>(found->victims.size()) > state.policy.moves) return std::nullopt;
  const double gain = devices_of(request.job, request.size) * (start - state.snapshot.now).value;
  if (found->cost > gain) return std::nullopt;
  const auto moves = find_moves(state, request.job, *found);
  if (!moves) return std::nullopt;
  for (const Move& move : *moves) {
    const JobRequest& job = at(state.snapshot.running, move.job).request;
    JobChange& change = at(state.running, move.job);
    give(state, job, change.replicas);
    change.replicas = move.replicas;
    change.is_changed = true;
    add_action(state, ActionKind::kMove, job, move.replicas,
               fmt::format("{} on {}, so that job {} fits",
                           resume_text(state.snapshot, at(state.snapshot.running, move.job)),
                           place_text(state, job, move.replicas), request.job.name));
  }
  for (const Move& move : *moves)
    take(state, at(state.snapshot.running, move.job).request, move.replicas);
  text = fmt::format("; {} {}", names_of(state, found->victims),
                     found->victims.size() == 1 ? "moves" : "move");
  return std::move(found->placement);
}

}  // namespace regatta::sched
