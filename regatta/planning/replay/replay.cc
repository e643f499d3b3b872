#include "regatta/planning/replay/replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/heterogeneous_search.h"

namespace regatta::replay {
namespace {

// The fitted point as the simplex sees it: the logarithms of the scalars.
constexpr std::size_t kScalars = 8;
using Point = std::array<double, kScalars>;

// The limits of every stack: a product the peak; a copy on an A100 0.92 of its memory's bandwidth
// (BabelStream); NCCL 230 of 300 GB/s between 8 A100 (nccl-tests, all_reduce of 1 GiB: 0.77); RDMA
// 0.97 of the line; a small NCCL call some 20 us, in a training step several times that. A fit that
// leaves these ranges explains one thing by another.
constexpr Point kLeast = {0.6, 50, 0.6, 1e-7, 0.5, 0.4, 2e-5, 0.01};
constexpr Point kMost = {0.95, 500, 0.92, 1e-4, 0.8, 0.97, 2e-4, 0.15};

Point point_of(const cost::Calibration& c) {
  Point point = {
      c.matrix_efficiency, c.tile_depth,         c.memory_efficiency,        c.launch.value,
      c.link_efficiency,   c.network_efficiency, c.collective_latency.value, c.misalignment};
  for (std::size_t i = 0; i < kScalars; ++i)
    point[i] = std::log(std::clamp(point[i], kLeast[i], kMost[i]));
  return point;
}

cost::Calibration calibration_of(const Point& point) {
  const auto at = [&](std::size_t i) {
    return std::clamp(std::exp(point[i]), kLeast[i], kMost[i]);
  };
  return {.matrix_efficiency = at(0),
          .tile_depth = at(1),
          .misalignment = at(7),
          .memory_efficiency = at(2),
          .launch = Seconds{at(3)},
          .link_efficiency = at(4),
          .network_efficiency = at(5),
          .collective_latency = Seconds{at(6)}};
}

using Sets = std::vector<std::vector<PublishedRun>>;

// Calibration rows of the stack alone.
Sets rows_of(const cost::SoftwareStack& stack, const Sets& sets) {
  Sets kept;
  for (const std::vector<PublishedRun>& set : sets) {
    std::vector<PublishedRun> rows;
    std::copy_if(set.begin(), set.end(), std::back_inserter(rows), [&](const PublishedRun& run) {
      return run.is_calibration && run.stack == stack.name;
    });
    if (!rows.empty()) kept.push_back(std::move(rows));
  }
  return kept;
}

class CalibrationFit {
 public:
  CalibrationFit(cost::SoftwareStack stack, const Sets& sets)
      : stack_(std::move(stack)), sets_(sets) {}

  cost::Calibration run() {
    constexpr int kRestarts = 3;
    constexpr int kSteps = 250;
    Point best = point_of(stack_.calibration);
    for (int restart = 0; restart < kRestarts; ++restart) {
      begin(best);
      for (int step = 0; step < kSteps; ++step)
        move();
      best = std::min_element(corners_.begin(), corners_.end(), is_better)->at;
    }
    return calibration_of(best);
  }

 private:
  struct Corner {
    Point at;
    double miss;
  };
  static bool is_better(const Corner& a, const Corner& b) { return a.miss < b.miss; }

  // A scalar outside its range counts as the end of the range, so the distance must cost something.
  double miss(const Point& point) {
    stack_.calibration = calibration_of(point);
    double sum = 0;
    for (const std::vector<PublishedRun>& set : sets_) {
      double errors = 0;
      const auto pairs = predict_runs(set, &stack_);
      for (const PredictionPair& pair : *pairs)
        errors += std::abs(std::log(pair.predicted / pair.measured));
      sum += errors / static_cast<double>(set.size());
    }
    for (std::size_t i = 0; i < kScalars; ++i)
      sum += std::max({point[i] - std::log(kMost[i]), std::log(kLeast[i]) - point[i], 0.0});
    return sum;
  }

  void begin(const Point& from) {
    constexpr double kSide = 0.25;
    corners_ = {{from, miss(from)}};
    for (std::size_t i = 0; i < kScalars; ++i) {
      Point point = from;
      point[i] += kSide;
      corners_.push_back({point, miss(point)});
    }
  }

  // A point on the line from the worst corner through the middle of the others.
  Corner beyond(const Point& middle, double factor) {
    Point point{};
    for (std::size_t i = 0; i < kScalars; ++i)
      point[i] = middle[i] + factor * (middle[i] - corners_.back().at[i]);
    return {point, miss(point)};
  }

  void move() {
    std::sort(corners_.begin(), corners_.end(), is_better);
    Point middle{};
    for (std::size_t corner = 0; corner < kScalars; ++corner)
      for (std::size_t i = 0; i < kScalars; ++i)
        middle[i] += corners_[corner].at[i] / kScalars;
    const Corner reflected = beyond(middle, 1);
    if (is_better(reflected, corners_.front())) {
      const Corner expanded = beyond(middle, 2);
      corners_.back() = is_better(expanded, reflected) ? expanded : reflected;
      return;
    }
    if (is_better(reflected, corners_[kScalars - 1])) {
      corners_.back() = reflected;
      return;
    }
    const Corner contracted = beyond(middle, -0.5);
    if (is_better(contracted, corners_.back()))
      corners_.back() = contracted;
    else
      shrink();
  }

  void shrink() {
    for (std::size_t corner = 1; corner < corners_.size(); ++corner) {
      Point& point = corners_[corner].at;
      for (std::size_t i = 0; i < kScalars; ++i)
        point[i] = (point[i] + corners_.front().at[i]) / 2;
      corners_[corner].miss = miss(point);
    }
  }

  cost::SoftwareStack stack_;
  const Sets& sets_;
  std::vector<Corner> corners_;
};

// The predicted time and memory of a run.
struct Predicted {
  Seconds step;
  cost::GpuMemory memory;
  double memory_share = 0;
};

Result<Predicted> under_recompute(const PublishedRun& run, const workload::Strategy& strategy,
                                  const cost::SoftwareStack& stack) {
  REGATTA_TRY(estimate, plan::estimate_step({.model = run.model,
                                             .strategy = strategy,
                                             .global_batch = run.global_batch,
                                             .precision = run.precision,
                                             .server = run.server,
                                             .stack = stack}));
  const auto capacity = static_cast<double>(run.server.device.memory.value);
  return Predicted{estimate.step.total(), estimate.memory, estimate.memory.total() / capacity};
}

Result<Predicted> on_equal_servers(const PublishedRun& run, const workload::Strategy& strategy,
                                   const cost::SoftwareStack& stack) {
  if (!run.is_recompute_open) return under_recompute(run, strategy, stack);
  workload::Strategy open = strategy;
  for (const workload::Recompute recompute :
       {workload::Recompute::kNone, workload::Recompute::kPointwise,
        workload::Recompute::kExperts}) {
    open.recompute = recompute;
    REGATTA_TRY(all, under_recompute(run, open, stack));
    if (all.memory_share <= 1) return all;  // it ran
  }
  open.recompute = workload::Recompute::kFull;
  return under_recompute(run, open, stack);
}

Result<Predicted> on_cluster(const PublishedRun& run, const workload::Strategy& strategy,
                             const cost::SoftwareStack& stack) {
  const plan::HeterogeneousInput input{.model = run.model,
                                       .strategy = strategy,
                                       .global_batch = run.global_batch,
                                       .precision = run.precision,
                                       .cluster = *run.cluster,
                                       .stack = stack};
  plan::HeterogeneousSplit split = plan::even_split(input);
  if (!run.layers.empty()) split.layers = run.layers;
  REGATTA_TRY(estimate, plan::estimate_heterogeneous(input, split));
  const plan::HeterogeneousStage& worst = estimate.worst();
  return Predicted{estimate.step.total(), worst.memory,
                   worst.memory.total() / static_cast<double>(worst.capacity.value)};
}

Result<Predicted> predicted(const PublishedRun& run, const workload::Strategy& strategy,
                            const cost::SoftwareStack& stack) {
  return run.cluster ? on_cluster(run, strategy, stack) : on_equal_servers(run, strategy, stack);
}

// The predicted value of the run's measured quantity.
Result<double> value_of(const PublishedRun& run, const workload::Strategy& strategy,
                        const cost::SoftwareStack& stack) {
  REGATTA_TRY(all, predicted(run, strategy, stack));
  const cost::GpuMemory& memory = all.memory;
  switch (run.quantity) {
    case MeasuredQuantity::kStep:
      return all.step.value;
    case MeasuredQuantity::kMemory:
    case MeasuredQuantity::kFailure:
      return memory.total();
    case MeasuredQuantity::kState:
      return memory.weights + memory.gradients + memory.optimizer;
    case MeasuredQuantity::kActivations:
      return memory.activations;
  }
  return 0.0;
}

// The least over the micro-batches that the source leaves open, or the error of the smallest.
Result<double> least_value(const PublishedRun& run, const cost::SoftwareStack& stack) {
  workload::Strategy strategy = run.strategy;
  strategy.micro_batch = 1;
  Result<double> least = value_of(run, strategy, stack);
  for (const int micro_batch : {2, 4, 8}) {
    strategy.micro_batch = micro_batch;
    const Result<double> value = value_of(run, strategy, stack);
    if (value && (!least || *value < *least)) least = value;
  }
  return least;
}

Result<const cost::SoftwareStack*> stack_of(const PublishedRun& run,
                                            const cost::SoftwareStack* given) {
  const cost::SoftwareStack* used = given != nullptr ? given : cost::find_software_stack(run.stack);
  if (used != nullptr) return used;
  return Error{Code::kInvalidInput, run.name + ": there is no software stack '" + run.stack +
                                        "'; add it to cost/software_stack.cc"};
}

}  // namespace

Result<std::vector<RunForecast>> forecast_runs(const std::vector<PublishedRun>& runs,
                                               const cost::SoftwareStack* stack) {
  std::vector<RunForecast> outlooks;
  for (const PublishedRun& run : runs) {
    REGATTA_TRY(used, stack_of(run, stack));
    const auto all = predicted(run, run.strategy, *used);
    if (!all) return Error{all.error().code, run.name + ": " + all.error().message};
    outlooks.push_back({all->step, all->memory_share});
  }
  return outlooks;
}

Result<std::vector<PredictionPair>> predict_runs(const std::vector<PublishedRun>& runs,
                                                 const cost::SoftwareStack* stack) {
  std::vector<PredictionPair> pairs;
  for (const PublishedRun& run : runs) {
    REGATTA_TRY(used, stack_of(run, stack));
    const auto value = run.strategy.micro_batch == 0 ? least_value(run, *used)
                                                     : value_of(run, run.strategy, *used);
    if (!value) return Error{value.error().code, run.name + ": " + value.error().message};
    pairs.push_back({*value, run.measured, run.group});
  }
  return pairs;
}

Result<cost::Calibration> fit_calibration(const cost::SoftwareStack& stack, const Sets& sets) {
  const Sets rows = rows_of(stack, sets);
  if (rows.empty()) {
    return Error{Code::kInvalidInput,
                 stack.name +
                     ": none of the runs is a calibration row of this stack; give the files "
                     "that it is fitted on"};
  }
  for (const std::vector<PublishedRun>& set : rows)
    REGATTA_TRY_DO(predict_runs(set, &stack));
  return CalibrationFit(stack, rows).run();
}

}  // namespace regatta::replay
