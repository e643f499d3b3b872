#include "regatta/platform/mixing/interference.h"

#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr int kFewestPairs = 20;
constexpr int kRounds = 8;      // of the search for the duties
constexpr double kStep = 0.05;  // of k
constexpr double kLargest = 2;
constexpr double kDutyStep = 0.025;

struct IndexedPair {
  int job = 0;
  int other = 0;
  double sum = 0;
};

// The sum of speeds of two jobs with duties u and v.
double predicted_sum(double u, double v, double k) {
  const double first = u * (1 + k * v);
  const double second = v * (1 + k * u);
  if (first + second <= 1) return 2;
  const double half = 0.5;
  const double time = first <= half ? first : second <= half ? 1 - second : half;
  return time / first + std::min(second, 1 - time) / second;
}

struct FittedDuties {
  std::vector<double> duties;
  double error = 0;  // sum of squares

  double add_error(double sum, const IndexedPair& pair, double k) const {
    const double off = predicted_sum(at(duties, pair.job), at(duties, pair.other), k) - pair.sum;
    return sum + off * off;
  }
};

// Sets the duty of one job to the best one beside those of the others.
void fit_duty(FittedDuties& fit, int job, const std::vector<const IndexedPair*>& pairs, double k) {
  double best = 1e300;
  double best_duty = at(fit.duties, job);
  for (double duty = 2 * kDutyStep; duty < 1 + kDutyStep / 2; duty += kDutyStep) {
    at(fit.duties, job) = duty;
    double error = 0;
    for (const IndexedPair* pair : pairs)
      error = fit.add_error(error, *pair, k);
    if (error >= best) continue;
    best = error;
    best_duty = duty;
  }
  at(fit.duties, job) = best_duty;
}

FittedDuties fit_duties(const std::vector<IndexedPair>& pairs, int jobs, double k) {
  std::vector<std::vector<const IndexedPair*>> of_job(as_index(jobs));
  for (const IndexedPair& pair : pairs) {
    at(of_job, pair.job).push_back(&pair);
    if (pair.other != pair.job) at(of_job, pair.other).push_back(&pair);
  }
  FittedDuties fit{std::vector<double>(as_index(jobs), 0.8), 0};
  for (int round = 0; round < kRounds; ++round)
    for (int job = 0; job < jobs; ++job)
      fit_duty(fit, job, at(of_job, job), k);
  for (const IndexedPair& pair : pairs)
    fit.error = fit.add_error(fit.error, pair, k);
  return fit;
}

double mean_error(const std::vector<IndexedPair>& pairs, const std::vector<double>& duties,
                  double k) {
  double sum = 0;
  for (const IndexedPair& pair : pairs)
    sum += std::abs(predicted_sum(at(duties, pair.job), at(duties, pair.other), k) - pair.sum);
  return sum / static_cast<double>(std::max<std::size_t>(1, pairs.size()));
}

double mean_error_of_constant(const std::vector<IndexedPair>& fitted,
                              const std::vector<IndexedPair>& held_out) {
  double mean = 0;
  for (const IndexedPair& pair : fitted)
    mean += pair.sum / static_cast<double>(fitted.size());
  double sum = 0;
  for (const IndexedPair& pair : held_out)
    sum += std::abs(mean - pair.sum);
  return sum / static_cast<double>(std::max<std::size_t>(1, held_out.size()));
}

}  // namespace

Result<InterferenceFit> fit_interference(std::span<const JobPair> pairs, double held_out,
                                         std::uint64_t seed) {
  std::map<std::string, int> jobs;
  std::vector<IndexedPair> fitted;
  std::vector<IndexedPair> rest;
  packing::RandomSequence random(seed);
  for (const JobPair& pair : pairs) {
    if (pair.speed <= 0 || pair.other_speed <= 0) continue;
    const int job = jobs.emplace(pair.job, static_cast<int>(jobs.size())).first->second;
    const int other = jobs.emplace(pair.other, static_cast<int>(jobs.size())).first->second;
    (random.uniform() < held_out ? rest : fitted)
        .push_back({job, other, pair.speed + pair.other_speed});
  }
  if (std::ssize(fitted) < kFewestPairs)
    return Error{Code::kInvalidInput,
                 fmt::format("{} of jobs ran together; give at least {} to fit interference",
                             pluralized(fitted.size(), "pair"), kFewestPairs)};
  const int count = static_cast<int>(jobs.size());
  const FittedDuties without = fit_duties(fitted, count, 0);
  FittedDuties best = without;
  double best_k = 0;
  for (int step = 1; step * kStep <= kLargest + kStep / 2; ++step) {
    FittedDuties fit = fit_duties(fitted, count, step * kStep);
    if (fit.error >= best.error) continue;
    best = std::move(fit);
    best_k = step * kStep;
  }
  return InterferenceFit{best_k,
                         static_cast<int>(fitted.size()),
                         static_cast<int>(rest.size()),
                         mean_error(rest, best.duties, best_k),
                         mean_error(rest, without.duties, 0),
                         mean_error_of_constant(fitted, rest)};
}

}  // namespace regatta::mixing
