// sched/scheduling_policy.h: how the scheduler decides, as data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

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

struct SchedulingPolicy {
  std::string name;
  JobOrder order = JobOrder::kSubmitted;
  BackfillRule backfill = BackfillRule::kReservation;
  int reservations = 1;
  // A job that waits moves up by one priority in this time; 0: never.
  Seconds ageing;
  bool preempts = false;       // of lower priority, where the whole gang then fits
  bool reclaims = false;       // what a queue is guaranteed and others borrow
  Seconds protected_run_time;  // a job is not evicted in its first such time
  bool resizes = false;        // elastic jobs grow and shrink
  int moves = 0;               // re-arrangements of a decision
  // Weights of a placement's cost.
  double communication_weight = 1;
  double fragmentation_weight = 1;
  double risk_weight = 1;
  double spread_weight = 1;
  std::string slices = "regatta";  // packing policy of slices: packing/placement_policy.h
};

// The policies that come with regatta: fifo, backfill, regatta.
std::vector<std::string> scheduling_policy_names();
// Fails with kInvalidInput and the known names.
Result<SchedulingPolicy> find_scheduling_policy(std::string_view name);
// A YAML file: `base`, a policy's name, and keys that differ from it. Fails with file, line, key
// and remedy. Keys: docs/formats/sched_policy.md.
Result<SchedulingPolicy> parse_scheduling_policy(std::string_view text, std::string_view file);

}  // namespace regatta::sched
