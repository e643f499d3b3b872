// sched/internal/victim_search.h: the cheapest running jobs whose eviction makes room for a whole
// gang.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {

// A running job that may make room: by an eviction, or by giving some replicas up.
struct VictimOption {
  int job = 0;               // index into the running jobs of the snapshot
  double eviction_cost = 0;  // device-seconds that an eviction loses; at least 0
  // Whole and at least 0: a set of victims with a lower sum of ranks is cheaper whatever it loses.
  double eviction_rank = 0;
  // Elastic jobs may give up any of these replicas (indices into the job's replicas), each for
  // `shrink_cost`, and keep their smallest size.
  std::vector<int> sheddable;
  double shrink_cost = 0;
};

struct Victim {
  int job = 0;
  bool is_evicted = true;  // else it gives `shed` up
  std::vector<int> shed;   // rising

  bool operator==(const Victim&) const = default;
};

struct VictimSet {
  std::vector<Victim> victims;  // by rising job
  double cost = 0;              // device-seconds
  double rank = 0;
  GangPlacement placement;    // of the gang in the room that they make
  long long trial_moves = 0;  // replicas that the search freed or took back: nearly all of its time
};

// Where at most so many evictions and replicas to give up concern a domain, the cheapest set is
// searched exactly, within kVictimStatesMax checks of all domains; else it is a local optimum.
inline constexpr int kExactVictimsMax = 20;
inline constexpr int kVictimStatesMax = 20'000;

// With every set that it returns the whole gang fits, and without any one of its victims, or of
// the replicas that they give up, it does not (gangs of several roles on more nodes than
// kSearchedNodesMax: as far as they are counted, see victim_room.h). No victims where it fits
// anyway; nothing where no set makes room. `free` is that of its snapshot, with all that runs.
// The gang itself is no option.
std::optional<VictimSet> find_victims(const FreeCapacity& free, const GangRequest& gang,
                                      std::span<const VictimOption> options);

}  // namespace regatta::sched
