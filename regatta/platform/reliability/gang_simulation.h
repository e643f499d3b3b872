// reliability/gang_simulation.h: days of one large job under failures, event by event.
//
// A gang holds `nodes` nodes and stops when one fails. Nodes fail at random by the causes of a
// mix; a lost node is replaced by a spare, or the job waits for a repair. A function of its options
// and the seed.
#pragma once

#include <cstdint>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/failure_mix.h"
#include "regatta/platform/reliability/node_risk.h"

namespace regatta::reliability {

struct CheckpointLevel {
  Seconds interval;  // training between two saves; 0: no such level
  Seconds save;      // training stands still
  Seconds load;      // from nodes ready to training: processes, state, first step
};

// Nodes that fail more often than others from the start ("lemons").
struct LemonNodes {
  double share = 0;   // of all nodes, 0 to 1
  double factor = 1;  // times the rate of another node, >= 1
};

// Repair times are lognormal. A node whose repair does not hold fails again after an exponential
// time in the job.
struct NodeRepair {
  Seconds median{1};
  Seconds mean{1};
  double relapse_share = 0;  // of repairs after failures with FailureEffect::kRelapse, below 1
  Seconds relapse_time{1};   // mean
};

struct PlannedStops {
  int count = 0;     // evenly over the horizon; a checkpoint is saved right before each
  Seconds duration;  // without load
};

struct GangOptions {
  int nodes = 0;  // that the job holds, >= 1
  int devices_per_node = 8;
  int spares = 0;
  // Simulated first and not counted, so that nodes are in repair as in the long run; 0: all work at
  // the start.
  Seconds warm_up;
  Seconds horizon;  // > 0
  // With rates. Those of the mix are the mean over all nodes; relapses come on top. Causes that
  // only restart the job belong to no node.
  FailureMix mix;
  LemonNodes lemons;
  CheckpointLevel checkpoint;  // the frequent one
  CheckpointLevel durable;     // in storage, at the end of an interval of the frequent one
  double checkpoint_loss = 0;  // share of failures after which `durable` must be loaded
  Seconds detect;              // until a failure is known
  Seconds replace;             // a spare takes the place of a node
  NodeRepair repair;
  PlannedStops planned;
  // With it, spares of the least expected rate are taken first, and a repaired node stays out for
  // good where its expected failures cost the job more than waiting for the lack of one spare.
  bool weigh_risk = false;
  RateBelief prior;  // of a node's failures, for weigh_risk
};

// Times add up to the horizon; all but `blacklisted` leave out the warm-up.
struct GangOutcome {
  Seconds trained;     // that counts
  Seconds recomputed;  // undone by failures
  Seconds saving;
  Seconds restarting;  // detection, replacement, load
  Seconds waiting;     // for a node to be repaired
  Seconds planned;     // stops and the load after them
  int failures = 0;
  int node_losses = 0;
  int relapses = 0;  // failures of nodes whose repair did not hold
  int spares_used = 0;
  int blacklisted = 0;

  double ettr() const;
};

// Fails with kInvalidInput, naming the option, where one is out of its range or the mix has no
// rates.
Result<GangOutcome> simulate_gang(const GangOptions& options, std::uint64_t seed);

}  // namespace regatta::reliability
