// sched/internal/make_room.h: makes room for a gang by moving or evicting running jobs, when the
// whole gang fits then.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regatta/platform/sched/internal/decision_state.h"

namespace regatta::sched {

struct Victim;

// A gang that wants room. The references outlive the call.
struct RoomRequest {
  const JobRequest& job;
  GangSize size;
  std::span<const ReplicaPlacement> kept = {};  // that it has already
  Seconds work;                                 // that it has done
  bool was_evicted = false;                     // before
  int leaf = -1;  // its queue, where it may take back what its queue is guaranteed; else -1
};

// Evicts, shrinks: adds the actions, frees the devices, and returns the place of the gang, which is
// not taken yet. `text` says what made room, beginning with "; ". Nothing is changed when no set of
// running jobs that may be evicted makes room.
std::optional<GangPlacement> make_room(DecisionState& state, const RoomRequest& request,
                                       std::string& text);

// Whether make_room() would find room.
bool can_make_room(DecisionState& state, const RoomRequest& request);

// Whether as many devices are free as the gang takes: moves free none.
bool has_free_devices(const DecisionState& state, const RoomRequest& request);

// The same by moving at most `policy.moves` jobs, which continue from their checkpoints elsewhere,
// where that loses less than the gang loses by waiting until `start`.
std::optional<GangPlacement> move_jobs(DecisionState& state, const RoomRequest& request,
                                       Seconds start, std::string& text);

// Finds what searches for victims ask of each running job, once for a decision.
void find_victim_facts(DecisionState& state);

std::string names_of(const DecisionState& state, const std::vector<Victim>& victims);

}  // namespace regatta::sched
