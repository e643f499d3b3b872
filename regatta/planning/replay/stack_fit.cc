#include "regatta/planning/replay/stack_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "regatta/planning/replay/internal/determined_scalars.h"
#include "regatta/planning/replay/internal/fit_coordinate.h"
#include "regatta/planning/replay/internal/simplex_search.h"
#include "regatta/planning/replay/replay.h"

namespace regatta::replay {
namespace {

using cost::SoftwareStack;
using cost::StackScalar;
using Sets = std::vector<std::vector<PublishedRun>>;
using Runs = std::vector<PublishedRun>;

// By how much a step misses its prediction where every scalar is right.
constexpr double kNoise = 0.05;

std::vector<FitCoordinate> coordinates_of(const std::vector<StackScalar>& scalars) {
  std::vector<FitCoordinate> coordinates;
  coordinates.reserve(scalars.size());
  std::transform(scalars.begin(), scalars.end(), std::back_inserter(coordinates), coordinate_of);
  return coordinates;
}

Point point_of(const std::vector<FitCoordinate>& free, const SoftwareStack& stack) {
  Point point;
  for (const FitCoordinate& one : free)
    point.push_back(coordinate_value(one, stack));
  return point;
}

SoftwareStack stack_at(const std::vector<FitCoordinate>& free, const Point& point,
                       SoftwareStack stack) {
  for (std::size_t i = 0; i < free.size(); ++i)
    apply(free[i], point[i], stack);
  return stack;
}

// A scalar outside its range counts as the end of the range, so the distance must cost something.
double excess_of(const std::vector<FitCoordinate>& free, const Point& point) {
  double sum = 0;
  for (std::size_t i = 0; i < free.size(); ++i)
    sum += excess(free[i], point[i]);
  return sum;
}

double sum_of_errors(const Runs& runs, const SoftwareStack& stack) {
  double errors = 0;
  const auto pairs = predict_runs(runs, &stack);
  for (const PredictionPair& pair : *pairs)
    errors += std::abs(std::log(pair.predicted / pair.measured));
  return errors;
}

// Calibration rows of the stack alone.
Sets rows_of(const SoftwareStack& stack, const Sets& sets) {
  Sets kept;
  for (const Runs& set : sets) {
    Runs rows;
    std::copy_if(set.begin(), set.end(), std::back_inserter(rows), [&](const PublishedRun& run) {
      return run.is_calibration && run.stack == stack.name;
    });
    if (!rows.empty()) kept.push_back(std::move(rows));
  }
  return kept;
}

// The few rows that Megatron-Bridge's experts may be fitted to decide two scalars; the others are
// those of its stack for dense models.
std::vector<StackScalar> published_scalars(const SoftwareStack& stack) {
  if (stack.name == "megatron-bridge") return {StackScalar::kExpertsSync, StackScalar::kLaunch};
  return {StackScalar::kMatrixEfficiency,  StackScalar::kTileDepth,
          StackScalar::kMemoryEfficiency,  StackScalar::kLaunch,
          StackScalar::kLinkEfficiency,    StackScalar::kNetworkEfficiency,
          StackScalar::kCollectiveLatency, StackScalar::kMisalignment};
}

// sensitivity[i][k]: how the logarithm of run i's step grows with free[k], for a shift of its
// width.
std::vector<std::vector<double>> sensitivity(const Runs& runs,
                                             const std::vector<FitCoordinate>& free,
                                             const SoftwareStack& stack) {
  constexpr double kShift = 0.25;  // of a width
  std::vector<std::vector<double>> rows(runs.size(), std::vector<double>(free.size(), 0));
  for (std::size_t k = 0; k < free.size(); ++k) {
    const double at = coordinate_value(free[k], stack);
    double shift = kShift * free[k].width;
    if (excess(free[k], at + shift) > 0) shift = -shift;
    SoftwareStack from = stack;
    SoftwareStack to = stack;
    apply(free[k], at, from);
    apply(free[k], at + shift, to);
    const auto before = predict_runs(runs, &from);
    const auto after = predict_runs(runs, &to);
    for (std::size_t i = 0; i < runs.size(); ++i)
      rows[i][k] = std::log((*after)[i].predicted / (*before)[i].predicted) * free[k].width / shift;
  }
  return rows;
}

std::vector<FitCoordinate> picked(const std::vector<FitCoordinate>& free,
                                  const std::vector<std::size_t>& indices) {
  std::vector<FitCoordinate> coordinates;
  coordinates.reserve(indices.size());
  for (const std::size_t index : indices)
    coordinates.push_back(free[index]);
  return coordinates;
}

// The stack that explains the runs with the least shifts of the free scalars.
SoftwareStack nearest_stack(const Runs& runs, const std::vector<FitCoordinate>& free,
                            const SoftwareStack& stack) {
  const Point present = point_of(free, stack);
  const auto miss = [&](const Point& point) {
    double sum = sum_of_errors(runs, stack_at(free, point, stack)) / kNoise;
    for (std::size_t i = 0; i < free.size(); ++i)
      sum += std::pow((point[i] - present[i]) / free[i].width, 2) / 2;
    return sum + excess_of(free, point) / kNoise;
  };
  return stack_at(free, least_point(miss, present, {.tolerance = 1e-4}), stack);
}

// Calibrates a stack on some of the runs, whose sensitivities it computes once.
class Calibrator {
 public:
  Calibrator(const SoftwareStack& stack, const Runs& runs) : stack_(stack), runs_(runs) {
    const auto all = cost::all_stack_scalars();
    free_ = coordinates_of({all.begin(), all.end()});
    sensitivity_ = sensitivity(runs, free_, stack);
  }

  // Without the runs of one fold; none: -1.
  FittedStack without(int fold) const {
    Runs kept;
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (fold_of(i) == fold) continue;
      kept.push_back(runs_[i]);
      rows.push_back(sensitivity_[i]);
    }
    const auto free = picked(free_, determined(rows, free_.size(), kNoise));
    FittedStack fitted{nearest_stack(kept, free, stack_), {}};
    for (const FitCoordinate& one : free)
      fitted.fitted.push_back(one.scalar);
    return fitted;
  }

  int folds() const { return static_cast<int>(std::min(runs_.size(), kMostFolds)); }
  int fold_of(std::size_t run) const { return static_cast<int>(run) % folds(); }

 private:
  static constexpr std::size_t kMostFolds = 20;

  const SoftwareStack& stack_;
  const Runs& runs_;
  std::vector<FitCoordinate> free_;
  std::vector<std::vector<double>> sensitivity_;
};

// Eight of ten logarithms of a normal distribution lie within 1.2816 standard deviations.
constexpr double kTenth = 1.2816;

// The range of runs of one kind, from predictions that left them out.
cost::OwnRuns own_runs(const std::vector<PredictionPair>& left_out,
                       const cost::PredictionErrorRange& present) {
  constexpr double kPresentCounts = 4;
  if (left_out.empty()) return {};
  const double width = std::log(present.high / present.low) / (2 * kTenth);
  double squares = kPresentCounts * width * width;
  for (const PredictionPair& pair : left_out)
    squares += std::pow(std::log(pair.measured / pair.predicted), 2);
  const auto count = static_cast<double>(left_out.size());
  const double spread = std::exp(kTenth * std::sqrt(squares / (kPresentCounts + count)));
  return {.count = static_cast<int>(left_out.size()), .range = {.low = 1 / spread, .high = spread}};
}

// The predictions of each run by a stack that did not see it.
std::vector<PredictionPair> left_out_pairs(const Calibrator& calibrator, const Runs& runs) {
  std::vector<PredictionPair> pairs(runs.size());
  for (int fold = 0; fold < calibrator.folds(); ++fold) {
    const SoftwareStack stack = calibrator.without(fold).stack;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (calibrator.fold_of(i) == fold) pairs[i] = predict_runs({runs[i]}, &stack)->front();
  }
  return pairs;
}

void add_ranges(const SoftwareStack& stack, const Runs& runs,
                const std::vector<PredictionPair>& left_out, cost::StackCalibration& calibration) {
  std::vector<PredictionPair> dense;
  std::vector<PredictionPair> experts;
  for (std::size_t i = 0; i < runs.size(); ++i)
    (has_experts(runs[i].model) ? experts : dense).push_back(left_out[i]);
  const auto range = [&](bool with_experts) {
    const auto one = std::find_if(runs.begin(), runs.end(), [&](const PublishedRun& run) {
      return has_experts(run.model) == with_experts;
    });
    return one == runs.end() ? cost::PredictionErrorRange{}
                             : cost::prediction_error_range(stack, one->model);
  };
  calibration.dense = own_runs(dense, range(false));
  calibration.experts = own_runs(experts, range(true));
}

}  // namespace

Result<FittedStack> fit_to_published(const SoftwareStack& stack, const Sets& sets) {
  const Sets rows = rows_of(stack, sets);
  if (rows.empty()) {
    return Error{Code::kInvalidInput,
                 stack.name +
                     ": none of the runs is a calibration row of this stack; give the files "
                     "that it is fitted on"};
  }
  for (const Runs& set : rows)
    REGATTA_TRY_DO(predict_runs(set, &stack));
  std::vector<StackScalar> scalars = published_scalars(stack);
  const std::vector<FitCoordinate> free = coordinates_of(scalars);
  const auto miss = [&](const Point& point) {
    const SoftwareStack tried = stack_at(free, point, stack);
    double sum = 0;
    for (const Runs& set : rows)
      sum += sum_of_errors(set, tried) / static_cast<double>(set.size());
    return sum + excess_of(free, point);
  };
  return FittedStack{stack_at(free, least_point(miss, point_of(free, stack)), stack),
                     std::move(scalars)};
}

Result<OwnCalibration> calibrate_stack(const SoftwareStack& stack, const Runs& runs) {
  if (runs.empty())
    return Error{Code::kInvalidInput, stack.name + ": there is no run to calibrate it on"};
  REGATTA_TRY(before, predict_runs(runs, &stack));
  const Calibrator calibrator(stack, runs);
  std::vector<PredictionPair> left_out = left_out_pairs(calibrator, runs);
  const bool is_worse = runs.size() > 1 && score(left_out).mape > score(before).mape;
  if (is_worse) left_out = before;
  const FittedStack fitted = is_worse ? FittedStack{stack, {}} : calibrator.without(-1);
  REGATTA_TRY(after, predict_runs(runs, &fitted.stack));
  OwnCalibration own{.calibration = cost::calibration_of(fitted.stack),
                     .before = score(before),
                     .after = score(after),
                     .left_out = score(left_out),
                     .contradicts = is_worse};
  for (std::size_t i = 0; i < runs.size(); ++i)
    own.runs.push_back({runs[i].name, runs[i].measured, before[i].predicted, after[i].predicted,
                        left_out[i].predicted});
  own.calibration.fitted = fitted.fitted;
  for (const StackScalar scalar : cost::all_stack_scalars())
    if (std::find(fitted.fitted.begin(), fitted.fitted.end(), scalar) == fitted.fitted.end())
      own.undetermined.push_back(scalar);
  own.calibration.device = runs.front().server.device.name;
  own.calibration.error_before = own.before.mape;
  own.calibration.error_after = own.after.mape;
  own.calibration.error_left_out = own.left_out.mape;
  add_ranges(stack, runs, left_out, own.calibration);
  return own;
}

}  // namespace regatta::replay
