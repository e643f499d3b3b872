#include "regatta/model/cost/memory.h"

#include <algorithm>

#include "regatta/base/core/result.h"
#include "regatta/model/pipeline/closed_form.h"

namespace regatta::cost {
namespace {

// A gradient bucket of the data-parallel reduction, and how many may be in flight at once.
constexpr long long kBucketBytes = 4 * workload::kGradientBucketElements;
constexpr long long kBucketsInFlight = 4;

long long block_parameters(const workload::ModelShape& model, int tp) {
  const long long h = model.hidden;
  const long long f = model.ffn_hidden;
  const long long split = 4 * h * h + 3 * h + 2 * h * f + f;  // matrices and column biases
  const long long replicated = 2 * h + 4 * h;                 // row biases and two norms
  return split / tp + replicated;
}

// Bytes of work space while one block's backward runs.
double block_work_space(const workload::ModelShape& model, const workload::Strategy& strategy,
                        double element) {
  const double tokens = static_cast<double>(strategy.micro_batch) * model.seq;
  const double scores = tokens * model.seq * model.heads / strategy.tp;
  return element *
         (2 * tokens * model.hidden + 2 * tokens * model.ffn_hidden / strategy.tp + 2 * scores);
}

Bytes whole(double bytes) {
  return {static_cast<long long>(bytes)};
}

}  // namespace

long long rank_parameters(const workload::ModelShape& model, const workload::Strategy& strategy,
                          int pp) {
  const long long h = model.hidden;
  long long count =
      workload::stage_layers(model, strategy, pp).count * block_parameters(model, strategy.tp);
  const bool first = pp == 0;
  const bool last = pp == strategy.pp - 1;
  const long long table = h * model.vocab / strategy.tp;
  if (first) count += table + h * model.seq;
  if (last) count += 2 * h;
  if (last && !(model.tied_embeddings && first)) count += table;
  return count;
}

Bytes block_activations(const workload::ModelShape& model, const workload::Strategy& strategy,
                        workload::Precision precision) {
  const double element = workload::bytes_per_element(precision);
  const double tokens = static_cast<double>(strategy.micro_batch) * model.seq;
  const double input = tokens * model.hidden;
  if (strategy.recompute == workload::Recompute::kFull) return whole(element * input);
  // Whole: input, both norms' outputs, the middle residual. Split: q, k, v, context (4 h), the
  // scores after softmax, the MLP before and after the activation.
  const double split =
      4.0 * input + 2.0 * tokens * model.ffn_hidden + tokens * model.seq * model.heads;
  return whole(element * (4.0 * input + split / strategy.tp));
}

MemoryUse rank_memory(const workload::ModelShape& model, const workload::Strategy& strategy,
                      workload::Precision precision, int pp, int micro_batches) {
  REGATTA_CHECK(pp >= 0 && pp < strategy.pp && micro_batches >= 1);
  const double element = workload::bytes_per_element(precision);
  const auto parameters = static_cast<double>(rank_parameters(model, strategy, pp));
  const double tokens = static_cast<double>(strategy.micro_batch) * model.seq;
  const double master = precision == workload::Precision::kBf16 ? 4 : 0;
  MemoryUse use;
  use.weights = whole(parameters * (element + master));
  use.gradients = whole(parameters * 4);
  use.optimizer = whole(parameters * 8);
  const int layers = workload::stage_layers(model, strategy, pp).count;
  const int in_flight =
      pipeline::peak_activations({.stages = strategy.pp, .micro_batches = micro_batches}, pp);
  const double kept =
      static_cast<double>(block_activations(model, strategy, precision).value) * layers;
  use.activations = whole(kept * in_flight);
  if (strategy.recompute == workload::Recompute::kFull) {
    workload::Strategy keep = strategy;
    keep.recompute = workload::Recompute::kNone;
    use.activations += block_activations(model, keep, precision);
  }
  double buffers = block_work_space(model, strategy, element);
  if (strategy.dp > 1) buffers += static_cast<double>(kBucketBytes * kBucketsInFlight);
  if (strategy.pp > 1) buffers += 4 * element * tokens * model.hidden;
  if (pp == strategy.pp - 1)  // the loss keeps its exponentials, its input and the norm of it
    buffers += 4.0 * tokens * model.vocab / strategy.tp + 4 * element * tokens * model.hidden;
  use.buffers = whole(buffers);
  return use;
}

}  // namespace regatta::cost
