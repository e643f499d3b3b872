// reliability/expected_loss.h: what failures and stops cost a job, for a scheduler that weighs
// nodes, drains them and chooses victims. Losses are in seconds of one device: lost time x devices.
//
//   JobAtRisk job{.devices = 1024, .interval = 10 min, .save = 5 s, .restart = 4 min, ...};
//   expected_loss(job, rate_of_this_node, 1 d) - expected_loss(job, rate_of_that_node, 1 d)
//
// is worth paying for that node. First-order forms after Young (CACM 17(9), 1974): a failure
// strikes in the middle of an interval; right where a job has far less than one failure an
// interval.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {

struct JobAtRisk {
  double devices = 0;        // shares of devices count as parts
  Seconds interval;          // training between two checkpoints
  Seconds save;              // training stands still for one
  Seconds restart;           // after a failure: detection, replacement, load
  Seconds planned_restart;   // after a planned stop: replacement and load
  Seconds since_checkpoint;  // training that a failure now would undo, 0 to interval
};

// One failure, at any time: (interval / 2 + restart) x devices.
double failure_loss(const JobAtRisk& job);

// Failures within `horizon` of nodes with `rate` in all: rate x horizon x failure_loss(). For a
// whole job the rate is the sum over its nodes, for the choice of a node that of the node.
double expected_loss(const JobAtRisk& job, FailureRate rate, Seconds horizon);

// Stopping the job now without a checkpoint: (since_checkpoint + planned_restart) x devices; the
// cost of a victim of preemption.
double stop_loss(const JobAtRisk& job);

// Stopping it right behind a checkpoint saved for it now.
double saved_stop_loss(const JobAtRisk& job);

enum class DrainTime { kNow, kNextCheckpoint, kLater };
inline constexpr EnumNames<3> kDrainTimeNames = {"now", "next checkpoint", "later"};

struct DrainDecision {
  DrainTime time = DrainTime::kLater;
  // Expected loss of each choice.
  double now = 0;
  double next_checkpoint = 0;
  double later = 0;
};

// When to take a node with `rate` away from the job: the choice of the least expected loss; ties go
// to the later one. The job holds the node for `horizon` more unless it is drained.
//   now              stop_loss() or saved_stop_loss(), the lesser
//   next checkpoint  planned restart, and the failures until then, each of which undoes what has
//                    been trained since the last checkpoint and makes the stop unnecessary
//   later            expected_loss() over the horizon
// `drained`: what the node away costs others, in seconds of one device; it is added to the first
// two.
DrainDecision decide_drain(const JobAtRisk& job, FailureRate rate, Seconds horizon,
                           double drained = 0);

}  // namespace regatta::reliability
