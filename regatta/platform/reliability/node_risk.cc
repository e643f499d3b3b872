#include "regatta/platform/reliability/node_risk.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::reliability {
namespace {

constexpr double kShapeMin = 1e-4;

// Equal histories and how many nodes have them.
using HistoryCounts = std::map<std::pair<double, double>, double>;

// Log likelihood of the nodes under a Gamma prior of that shape and mean, without constants.
double prior_likelihood(const HistoryCounts& nodes, double shape, double mean) {
  const double exposure = shape / mean;
  double sum = 0;
  for (const auto& [history, count] : nodes) {
    const auto [failures, seen] = history;
    const double total = exposure + seen;
    double one =
        std::lgamma(shape + failures) - std::lgamma(shape) + shape * std::log(exposure / total);
    if (failures > 0) one += failures * std::log(seen / total);
    sum += count * one;
  }
  return sum;
}

// The mean of the greatest likelihood at a given shape; both searches are over logarithms, in which
// the likelihood has one maximum.
double best_mean(const HistoryCounts& nodes, double shape, double start) {
  double low = std::log(start) - 5;
  double high = std::log(start) + 5;
  for (int i = 0; i < 60; ++i) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    if (prior_likelihood(nodes, shape, std::exp(left)) <
        prior_likelihood(nodes, shape, std::exp(right)))
      low = left;
    else
      high = right;
  }
  return std::exp((low + high) / 2);
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Solves a x = b for a positive definite a of size n x n by Cholesky's method; both are
// overwritten.
void solve_in_place(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k)
        sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
    for (std::size_t k = 0; k < i; ++k)
      b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k)
      b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
}

// One step of Newton's method; `weights` ends with the logarithm of the base. Returns its length.
double newton_step(std::span<const RiskCell> cells, double ridge, std::vector<double>& weights) {
  const std::size_t n = weights.size();
  std::vector<double> hessian(n * n);
  std::vector<double> gradient(n);
  std::vector<double> x(n, 1);
  for (const RiskCell& cell : cells) {
    std::copy(cell.covariates.begin(), cell.covariates.end(), x.begin());
    const double expected = cell.exposure.value * std::exp(dot(x, weights));
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] += (cell.failures - expected) * x[i];
      for (std::size_t j = 0; j <= i; ++j)
        hessian[i * n + j] += expected * x[i] * x[j];
    }
  }
  for (std::size_t i = 0; i + 1 < n; ++i) {
    gradient[i] -= ridge * weights[i];
    hessian[i * n + i] += ridge;
  }
  solve_in_place(hessian, gradient);
  double length = 0;
  for (const double step : gradient)
    length = std::max(length, std::abs(step));
  // Long steps overshoot where few failures are seen.
  const double scale = std::min(1.0, 1 / length);
  for (std::size_t i = 0; i < n; ++i)
    weights[i] += scale * gradient[i];
  return length;
}

}  // namespace

NodeHistory history_of(std::span<const Seconds> failures, Seconds since, Seconds now,
                       Seconds memory) {
  const Seconds from = std::max(since, now - memory);
  NodeHistory history{.failures = 0, .exposure = std::max(Seconds{0}, now - from)};
  for (const Seconds failure : failures)
    history.failures += failure >= from && failure <= now ? 1 : 0;
  return history;
}

RateBelief updated(const RateBelief& prior, const NodeHistory& history) {
  return {prior.shape + history.failures, prior.exposure + history.exposure};
}

double failure_probability(const RateBelief& belief, Seconds horizon) {
  return -std::expm1(-belief.shape * std::log1p(horizon / belief.exposure));
}

namespace {

struct SeenNodes {
  double failures = 0;
  double exposure = 0;
  int nodes = 0;
};

Result<SeenNodes> sum_of_histories(std::span<const NodeHistory> nodes) {
  SeenNodes sum;
  for (const NodeHistory& node : nodes) {
    if (node.exposure.value <= 0) continue;
    sum.failures += node.failures;
    sum.exposure += node.exposure.value;
    ++sum.nodes;
  }
  if (sum.nodes < 2 || sum.failures <= 0)
    return Error{Code::kInvalidInput,
                 "history of nodes: no failure in at least two nodes; give a longer history"};
  return sum;
}

}  // namespace

Result<RateBelief> fit_rate_prior(std::span<const NodeHistory> nodes) {
  REGATTA_TRY(sum, sum_of_histories(nodes));
  HistoryCounts counts;
  for (const NodeHistory& node : nodes)
    if (node.exposure.value > 0) ++counts[{node.failures, node.exposure.value}];
  const double mean = sum.failures / sum.exposure;
  double low = std::log(kShapeMin);
  double high = std::log(kShapeMax);
  const auto likelihood = [&](double log_shape) {
    const double shape = std::exp(log_shape);
    return prior_likelihood(counts, shape, best_mean(counts, shape, mean));
  };
  while (high - low > 1e-4) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    if (likelihood(left) < likelihood(right))
      low = left;
    else
      high = right;
  }
  const double shape = std::exp((low + high) / 2);
  return RateBelief{shape, {shape / best_mean(counts, shape, mean)}};
}

Result<RateBelief> moment_rate_prior(std::span<const NodeHistory> nodes) {
  REGATTA_TRY(sum, sum_of_histories(nodes));
  const double mean = sum.failures / sum.exposure;
  double squares = 0;
  for (const NodeHistory& node : nodes)
    squares += std::pow(std::max(0.0, node.exposure.value) / sum.exposure, 2);
  // The spread beyond chance, and the same at a variance of 1.
  double beyond = 0;
  double weight = 0;
  for (const NodeHistory& node : nodes) {
    const double exposure = node.exposure.value;
    if (exposure <= 0) continue;
    const double part = exposure / sum.exposure;
    beyond += std::pow(node.failures - mean * exposure, 2) - mean * exposure * (1 - part);
    weight += exposure * exposure * ((1 - part) * (1 - part) + squares - part * part);
  }
  const double variance = weight > 0 ? beyond / weight : 0;
  const double shape =
      variance > 0 ? std::clamp(mean * mean / variance, kShapeMin, kShapeMax) : kShapeMax;
  return RateBelief{shape, {shape / mean}};
}

FailureRate RiskModel::rate(std::span<const double> covariates) const {
  return base * std::exp(dot(covariates, weights));
}

double RiskModel::factor(std::size_t covariate) const {
  return std::exp(weights[covariate]);
}

RateBelief prior_of(const RiskModel& model, std::span<const double> covariates, double shape) {
  return {shape, Seconds{shape / model.rate(covariates).value}};
}

Result<RiskModel> fit_risk_model(std::span<const RiskCell> cells, double ridge) {
  double failures = 0;
  double exposure = 0;
  for (const RiskCell& cell : cells) {
    if (cell.covariates.size() != cells.front().covariates.size())
      return Error{Code::kInvalidInput,
                   "risk model: cells differ in their number of covariates; give each the same"};
    failures += cell.failures;
    exposure += cell.exposure.value;
  }
  if (failures <= 0 || exposure <= 0)
    return Error{Code::kInvalidInput,
                 "risk model: no failure or no exposure; give a longer history"};
  std::vector<double> weights(cells.front().covariates.size() + 1);
  weights.back() = std::log(failures / exposure);
  for (int i = 0; i < 100 && newton_step(cells, ridge, weights) > 1e-9; ++i) {
  }
  const FailureRate base{std::exp(weights.back())};
  weights.pop_back();
  return RiskModel{base, weights};
}

}  // namespace regatta::reliability
