// reliability/spares.h: how many spare nodes pay for one job that needs all its nodes.
//
// Nodes away for repair are the customers of an M/G/s/s queue: while a spare is left, the job runs
// and nodes go to repair at the rate of failures; with spares + 1 nodes away the job waits, and no
// more fail. The share of time that it waits is Erlang's B formula, which needs the mean of the
// repair time alone. Sources: Erlang, 1917; Sevastyanov, "An ergodic theorem for Markov processes
// and its application to telephone systems with refusals", 1957 (any repair time).
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {

// Share of time in which all of `servers` >= 0 are busy under `load` >= 0 (arrivals x service
// time).
double erlang_b(int servers, double load);

struct SparePool {
  int nodes = 0;           // that the job needs, > 0
  FailureRate node_loss;   // failures of the whole job that send a node to repair
  Seconds repair;          // mean time until the node is back
  double spare_price = 1;  // price of an idle spare over that of a node of the job, >= 0
};

// Share of time that the job waits for a node, with `spares` >= 0.
double wait_share(const SparePool& pool, int spares);

// Price of the job's progress with that many spares over its price with none away and no spare:
// (nodes + spares x spare_price) / (nodes (1 - wait_share)).
double cost_of_spares(const SparePool& pool, int spares);

// The number of the least cost_of_spares().
int spares_needed(const SparePool& pool);

// The least number for which no node is missing in `share` of the time, from the Poisson
// distribution of nodes in repair. Source of the rule: Wan et al., "Robust LLM Training
// Infrastructure at ByteDance", SOSP 2025, arXiv 2509.16293 (99 % quantile of nodes that fail
// together). Fails with kInvalidInput unless 0 < share < 1.
Result<int> spares_for_share(const SparePool& pool, double share);

// Time that the job waits because one spare fewer is there, over `horizon`: what a node kept out of
// the pool costs.
Seconds wait_for_lack_of_one(const SparePool& pool, int spares, Seconds horizon);

}  // namespace regatta::reliability
