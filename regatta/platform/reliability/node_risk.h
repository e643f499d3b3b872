// reliability/node_risk.h: how often a node will fail, from what all nodes and this node have done.
//
// Gamma-Poisson: the rates of nodes are spread as a Gamma distribution, the failures of one node
// are a Poisson process. Its history turns the prior into the posterior Gamma of that node.
// Covariates (place, age, recent failures) multiply the rate; their factors come from a Poisson
// regression. Sources: Robert, "The Bayesian Choice", section 4.2; Cameron and Trivedi, "Regression
// Analysis of Count Data", sections 3.2 and 3.3.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {

// Gamma distribution of rates: as if each node had been seen to fail `shape` times in `exposure`.
// Both > 0. A small shape says that few nodes have most failures.
struct RateBelief {
  double shape = 1;
  Seconds exposure{1};

  FailureRate mean() const { return rate_of(shape, exposure); }
};

struct NodeHistory {
  double failures = 0;  // >= 0; below 1 each where old ones weigh less
  Seconds exposure;     // time in which it could fail
};

// The history of a node that was seen from `since` to `now`, the last `memory` of it. `failures`
// are times, in any order.
NodeHistory history_of(std::span<const Seconds> failures, Seconds since, Seconds now,
                       Seconds memory);

// The belief about a node with this history.
RateBelief updated(const RateBelief& prior, const NodeHistory& history);

// That it fails at least once within `horizon`: 1 - (exposure / (exposure + horizon)) ^ shape.
double failure_probability(const RateBelief& belief, Seconds horizon);

// The prior of the greatest likelihood (negative binomial counts). Fails with kInvalidInput below
// two nodes with exposure or without a failure. Where the nodes differ no more than chance, the
// shape is kShapeMax.
Result<RateBelief> fit_rate_prior(std::span<const NodeHistory> nodes);
inline constexpr double kShapeMax = 1e4;

// The prior of the same moments: quick, in two passes, for decisions; less exact where few nodes
// have failed. Fails as fit_rate_prior(). With m the failures over all exposure E, and p = e / E,
// the variance of the rates is
//   sum((f - m e)^2 - m e (1 - p)) / sum(e^2 ((1 - p)^2 + sum of the other p^2)),
// whose expectation is the true one for any number of nodes: the terms with p are there because m
// is estimated from the same nodes. Source, without these terms: Marshall, "Mapping disease and
// mortality rates using empirical Bayes estimators", Applied Statistics 40(2), 1991.
Result<RateBelief> moment_rate_prior(std::span<const NodeHistory> nodes);

// Nodes (or node-times) with equal covariates.
struct RiskCell {
  std::vector<double> covariates;  // as many in each cell
  double failures = 0;
  Seconds exposure;
};

// rate = base x exp(weights . covariates).
struct RiskModel {
  FailureRate base;
  std::vector<double> weights;

  FailureRate rate(std::span<const double> covariates) const;
  // exp(weight): how many times the rate one unit of a covariate makes.
  double factor(std::size_t covariate) const;
};

// The prior of a node with these covariates, before its history: the model's rate as the mean, and
// the spread between nodes of `shape` > 0, such as that of fit_rate_prior().
RateBelief prior_of(const RiskModel& model, std::span<const double> covariates, double shape);

// Poisson regression by Newton's method on the log likelihood less ridge / 2 x weight^2 of each
// covariate; `ridge` > 0 keeps the factors of rare covariates finite. Fails with kInvalidInput
// without a failure or exposure, or where cells differ in their number of covariates.
Result<RiskModel> fit_risk_model(std::span<const RiskCell> cells, double ridge = 1);

}  // namespace regatta::reliability
