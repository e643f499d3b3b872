// reliability/checkpointing.h: the best time between checkpoints, and the share of time that
// trains.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {

// The effective training time ratio (ETTR) is the time of training that counts over the time in
// which the job could run. Source: Kokolis et al., "Revisiting Reliability in Large-Scale Machine
// Learning Research Clusters", HPCA 2025, arXiv 2410.21680.

// The costs of failures to one job. Failures are exponential and may hit at any time, also while a
// checkpoint is saved or the job restarts.
struct RestartCosts {
  Seconds save;              // training stands still for one checkpoint
  Seconds detect;            // until the failure is known
  Seconds replace;           // until all nodes are there, with a spare
  Seconds load;              // until training goes on: processes, state, first step
  Seconds between_failures;  // of the whole job, > 0

  Seconds restart() const { return detect + replace + load; }
};

// Training time between two checkpoints that costs least.

// sqrt(2 d M) for d = save, M = between failures. Source: Young, "A first order approximation to
// the optimum checkpoint interval", CACM 17(9), 1974.
Seconds young_interval(const RestartCosts& costs);
// sqrt(2 d (M + R)) - d, at least 0, for R = restart. Source: Daly, "A higher order estimate of the
// optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, first-order model.
Seconds daly_first_order_interval(const RestartCosts& costs);
// sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d below d = 2M, else M. Source: Daly, the same,
// higher order.
Seconds daly_interval(const RestartCosts& costs);
// The zero of the derivative of Daly's complete cost: M (1 + W(-exp(-1 - d / M))) for W of Lambert.
Seconds exact_interval(const RestartCosts& costs);

// ETTR of a long job that saves after each `interval` > 0 of training:
//   interval / (M exp(R / M) (exp((interval + d) / M) - 1)).
// Source: Daly, the same, complete cost function.
double expected_ettr(const RestartCosts& costs, Seconds interval);

// First order: (1 - (R + interval / 2) / M) / (1 + d / interval), at least 0. Source: Kokolis et
// al., expected ETTR without queueing.
double first_order_ettr(const RestartCosts& costs, Seconds interval);

// Lost time by cause over a day of wall clock, as Daly's model has it: what adds up with
// expected_ettr() * kDay to a day. Each part is exact for exponential failures.
struct LostTime {
  Seconds save;       // of checkpoints that count
  Seconds recompute;  // training and saving that a failure undid
  Seconds restart;    // also restarts that failed in turn
};
LostTime lost_per_day(const RestartCosts& costs, Seconds interval);

// ETTR where a failure with `wait_share` of all time also waits for nodes to be repaired: those of
// expected_ettr() times (1 - wait_share). spares.h gives the share.
double ettr_with_waiting(const RestartCosts& costs, Seconds interval, double wait_share);

}  // namespace regatta::reliability
