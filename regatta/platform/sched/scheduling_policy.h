// sched/scheduling_policy.h: how the scheduler decides, as data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/mixing/mixed_workload.h"

namespace regatta::sched {

// Which of the jobs of one queue is considered first; a higher priority always goes before.
enum class JobOrder {
  kSubmitted,     // first come, first served
  kShortest,      // least expected remaining time
  kLeastService,  // least device time so far and expected: short and small jobs first
  kDeadline       // earliest deadline, then as kSubmitted
};

enum class BackfillRule {
  kNone,         // nothing passes a job that waits
  kReservation,  // the first `reservations` jobs that wait keep their predicted start
  kGreedy        // whatever fits starts
};

enum class VictimRule {
  kLeastLoss,      // the least device time lost: work since the checkpoint, restart
  kLowestPriority  // the lowest priority, of those the job that started last
};

// Healthy whole nodes that other jobs leave free, so that a large gang that loses a node goes on at
// once.
struct SpareNodes {
  int nodes = 0;             // of each device type on which such a gang runs
  double share = 0;          // the same, of the healthy nodes of the type; the larger number counts
  double gang_devices = 64;  // gangs that hold at least so many devices are healed by spares
  bool is_kept() const { return nodes > 0 || share > 0; }
};

// Jobs that move where nothing waits, so that whole nodes and leaves become free.
struct Consolidation {
  int moves = 0;   // jobs that one decision may move so; 0: none
  Seconds node{};  // what a device of a node that becomes wholly free is worth, in its own time
  Seconds leaf{};  // the same of a leaf, besides
  Seconds rest{};  // a job that has started or moved stays at least so long
};

struct SchedulingPolicy {
  std::string name;
  bool is_fair = false;  // the queue furthest below its fair share is served first; else one order
  JobOrder order = JobOrder::kSubmitted;
  BackfillRule backfill = BackfillRule::kReservation;
  int reservations = 1;
  // A job that waits moves up by one priority in this time; 0: never.
  Seconds ageing;
  bool preempts = false;  // evicts jobs of lower priority, where the whole gang then fits
  bool reclaims = false;  // takes back what a queue is guaranteed and others borrow
  VictimRule victims = VictimRule::kLeastLoss;
  // Device time that a job has had, rising: a job's level is the number of these that it has
  // reached. Among jobs of one priority, those of a lower level go first, and evict those of a
  // higher one. Source: Gu et al., "Tiresias", NSDI 2019 (discretised least attained service).
  std::vector<Seconds> service_levels;
  Seconds protected_run_time;  // a job is not evicted in its first such time
  bool resizes = false;        // elastic jobs grow and shrink
  int moves = 0;               // jobs that a decision may move to make room
  Consolidation consolidation{.moves = 0, .node = {600}, .leaf = {600}, .rest = {6 * 3600.0}};
  // The failures of a node raise its risk, and nodes that fail again get no new jobs while others
  // suffice: reliability/blacklist.h.
  bool avoids_failing = false;
  Seconds node_repair{86400};  // mean time that a failed node is away
  SpareNodes spares;
  // Weights of a placement's cost.
  double communication_weight = 1;
  double fragmentation_weight = 1;
  double risk_weight = 1;
  double spread_weight = 1;
  std::string slices = "regatta";  // packing policy of slices: packing/placement_policy.h
  // Mixable jobs share devices, where decide_mix() keeps `budget`. Those with a mean duty below
  // `mix_first_below` look for a shared device first, the others where nothing else is free.
  bool mixes = false;
  mixing::ServiceBudget budget;
  double mix_first_below = 0.5;
  // Jobs with a latency target that may share one device, 1 to kMixedJobsMax. With 1 a device
  // misses none of its job's demand: what others do there waits.
  int targets_per_device = 8;
  double least_share = 0.25;   // of its need that a job without latency target must expect to get
  double interference = 0.15;  // mixing/interference.h
  int host_memory_mib = 0;     // of each device, for time slices
  // Services follow their demand: they are sized for this quantile of its forecast, which looks
  // budget.reclaim_lead ahead.
  bool sizes_services = false;
  double service_quantile = 0.99;
  // A replica is given back when no forecast of so long a time asked for it.
  Seconds service_hold{900};
};

// The policies that come with regatta: fifo, backfill, regatta, attained_service.
std::vector<std::string> scheduling_policy_names();
// Fails with kInvalidInput and the known names.
Result<SchedulingPolicy> find_scheduling_policy(std::string_view name);
// A YAML file: `base`, a policy's name, and keys that differ from it. Fails with file, line, key
// and remedy. Keys: docs/formats/sched_policy.md. `interference`: that of the cluster, where it is
// known, for a file that names none.
Result<SchedulingPolicy> parse_scheduling_policy(std::string_view text, std::string_view file,
                                                 std::optional<double> interference = {});

}  // namespace regatta::sched
