#include "regatta/runtime/measure/internal/operator_loops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>  // the whole type of an ATen/Parallel.h name, for clang 14 in C++20
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/core.h>
#include <time.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/train/adam.h"
#include "regatta/runtime/train/ops.h"

namespace regatta::measure {
namespace {

using at::Tensor;
using Round = std::function<void()>;

Tensor filled(at::IntArrayRef sizes, at::ScalarType type) {
  constexpr double kValue = 0.01;  // sums of a thousand products stay small in bf16
  return at::full(sizes, kValue, type);
}

Tensor keep(const Tensor& result) {
  return result;
}

// The operands of one product in the three layouts of training.
struct Operands {
  Tensor x;
  Tensor weight;
  Tensor weight_of_input;
  Tensor dy;
  Tensor input;
  Tensor gradient;
};

// A pass through a model uses each weight once and then all the others: it is not in a cache near
// the core when it is needed again. Rounds therefore go around more operands than such a cache
// holds.
Round product(const DeviceTask& task, at::ScalarType type) {
  constexpr std::int64_t kBytesAround = std::int64_t{8} << 20;
  const auto element = static_cast<std::int64_t>(c10::elementSize(type));
  const std::int64_t bytes = 2 * element * task.n * task.k + 4 * std::int64_t{task.m} * task.n;
  const auto count = std::min<std::int64_t>((kBytesAround + bytes - 1) / bytes, 64);
  std::vector<Operands> operands;
  for (std::int64_t i = 0; i < count; ++i)
    operands.push_back({filled({task.m, task.k}, type), filled({task.n, task.k}, type),
                        filled({task.k, task.n}, type), filled({task.k, task.m}, type),
                        filled({task.k, task.n}, type), at::zeros({task.m, task.n}, at::kFloat)});
  return [operands = std::move(operands), next = std::size_t{0}]() mutable {
    Operands& now = operands[next++ % operands.size()];
    keep(train::matmul_forward(now.weight, now.x));
    keep(train::matmul_backward(now.weight_of_input, now.x));
    train::add_weight_gradient(now.gradient, now.dy, now.input);
  };
}

// The products of train::attention_forward and attention_backward: heads lie side by side in one
// tensor, so that each matrix is read with a stride.
Round batched_product(const DeviceTask& task, at::ScalarType type) {
  const bool scores = task.k < task.n;
  const std::int64_t seq = task.m;
  const std::int64_t head = scores ? task.k : task.n;
  const std::int64_t batch = task.batch;
  const auto heads_of = [&](const Tensor& projection) {
    return projection.as_strided({batch, seq, head}, {3 * head, batch * 3 * head, 1});
  };
  const Tensor q = heads_of(filled({seq, batch * 3 * head}, type));
  const Tensor k = heads_of(filled({seq, batch * 3 * head}, type));
  const double scale = 1.0 / std::sqrt(static_cast<double>(head));
  if (scores) {
    const Tensor mask = train::causal_mask(seq, type);
    return [=] { keep(at::baddbmm(mask, q, k.transpose(1, 2), 1, scale)); };
  }
  const Tensor probabilities = filled({batch, seq, seq}, type);
  Tensor out = heads_of(filled({seq, batch * 3 * head}, type));
  return [=]() mutable {
    at::bmm_out(out, probabilities, k);
    at::baddbmm_out(out, out, probabilities.transpose(1, 2), q, 0, scale);
  };
}

Round norm(const DeviceTask& task, at::ScalarType type) {
  const Tensor x = filled({task.m, task.n}, type);
  const Tensor dy = filled({task.m, task.n}, type);
  train::NormLayer norm{filled({task.n}, type), filled({task.n}, type),
                        at::zeros({task.n}, at::kFloat), at::zeros({task.n}, at::kFloat)};
  if (task.op == cost::PointwiseOp::kLayerNorm)
    return [=] { static_cast<void>(train::norm_forward(norm, x)); };
  const train::NormOutput output = train::norm_forward(norm, x);
  return [=]() mutable { keep(train::norm_backward(norm, dy, x, output)); };
}

Round softmax(const DeviceTask& task, at::ScalarType type) {
  const Tensor scores = filled({task.batch, task.m, task.n}, type);
  if (task.op == cost::PointwiseOp::kSoftmax) return [=] { keep(at::_softmax(scores, -1, false)); };
  const Tensor probabilities = at::_softmax(scores, -1, false);
  return [=] { keep(at::_softmax_backward_data(scores, probabilities, -1, type)); };
}

Round adam(const DeviceTask& task) {
  train::Parameters parameters = train::make_parameters(
      {{.name = "weight", .rows = task.m, .columns = task.n, .init = train::Init::kNormal}}, {});
  return [=]() mutable { train::adam_update(parameters, {}, 1, 1.0); };
}

Round pointwise(const DeviceTask& task, at::ScalarType type) {
  const Tensor x = filled({task.m, task.n}, type);
  const Tensor y = filled({task.m, task.n}, type);
  switch (task.op) {
    case cost::PointwiseOp::kAdd:
      return [x, y]() mutable { x.add_(y); };
    case cost::PointwiseOp::kGelu:
      return [=] { keep(train::gelu_forward(x)); };
    case cost::PointwiseOp::kGeluBackward:
      return [=] { keep(train::gelu_backward(y, x)); };
    case cost::PointwiseOp::kLayerNorm:
    case cost::PointwiseOp::kLayerNormBackward:
      return norm(task, type);
    case cost::PointwiseOp::kSoftmax:
    case cost::PointwiseOp::kSoftmaxBackward:
      return softmax(task, type);
    case cost::PointwiseOp::kBiasGradient: {
      Tensor gradient = at::zeros({task.n}, at::kFloat);
      return [=]() mutable { train::add_bias_gradient(gradient, x); };
    }
    case cost::PointwiseOp::kAdam:
      return adam(task);
  }
  return [] {};
}

}  // namespace

std::function<void()> prepare(const DeviceTask& task) {
  const at::ScalarType type = train::scalar_type(task.precision);
  switch (task.kind) {
    case TaskKind::kProduct:
      return product(task, type);
    case TaskKind::kBatched:
      return batched_product(task, type);
    case TaskKind::kPointwise:
      return pointwise(task, type);
    case TaskKind::kCopy:
    case TaskKind::kOverhead:
      break;
  }
  Tensor to = filled({task.m, task.n}, type);
  const Tensor from = filled({task.m, task.n}, type);
  if (task.kind == TaskKind::kCopy) return [=]() mutable { to.copy_(from); };
  return [=] { keep(to.add(from)); };
}

Seconds busy_time(const device::ComputeDevice& device) {
  if (device.options.kind != topo::DeviceKind::kCpu) return os::monotonic_now();
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return {static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9};
}

Result<DeviceSample> run_task(const DeviceTask& task, const device::ComputeDevice& device,
                              const LoopOptions& options) {
  at::set_num_threads(1);
  const c10::InferenceMode inference;  // as the trainer does
  try {
    const Round round = prepare(task);
    if (options.warm_up) round();
    device::synchronize(device);
    const Seconds start = os::monotonic_now();
    const Seconds busy_start = busy_time(device);
    DeviceSample sample;
    do {
      round();
      device::end_operator();
      sample.work += work_of_round(task);
    } while (os::monotonic_now() - start < options.time);
    device::synchronize(device);
    sample.busy = busy_time(device) - busy_start;
    return sample;
  } catch (const std::exception& error) {
    return Error{Code::kUnsupported, fmt::format("{}: {}", to_string(task), error.what())};
  }
}

}  // namespace regatta::measure
