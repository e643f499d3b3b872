#include "regatta/runtime/train/adam.h"

#include <algorithm>
#include <cmath>

#include "regatta/gpu/device/device.h"

namespace regatta::train {
namespace {

// In blocks: single precision inside one is exact enough and vectorizes, the total is a double.
double square_sum(const float* values, std::int64_t count) {
  constexpr std::int64_t kBlock = 1024;
  constexpr std::int64_t kLanes = 16;
  double total = 0;
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t end = std::min(start + kBlock, count);
    float lanes[kLanes] = {};
    std::int64_t i = start;
    for (; i + kLanes <= end; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += values[i + lane] * values[i + lane];
    }
    for (; i < end; ++i)
      lanes[0] += values[i] * values[i];
    for (const float lane : lanes)
      total += lane;
  }
  return total;
}

struct Update {
  float lr, beta1, beta2, eps, decay, scale;
  float correction1, correction2;  // 1 / (1 - beta^t)
};

struct Arrays {
  float* __restrict weight;
  float* __restrict gradient;
  float* __restrict first;
  float* __restrict second;
};

void update_range(const Arrays& arrays, std::int64_t begin, std::int64_t end, const Update& u) {
  float* __restrict weight = arrays.weight;
  float* __restrict gradient = arrays.gradient;
  float* __restrict first = arrays.first;
  float* __restrict second = arrays.second;
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * u.scale;
    const float m = u.beta1 * first[i] + (1 - u.beta1) * g;
    const float v = u.beta2 * second[i] + (1 - u.beta2) * g * g;
    const float step = m * u.correction1 / (std::sqrt(v * u.correction2) + u.eps);
    weight[i] -= u.lr * (step + u.decay * weight[i]);
    first[i] = m;
    second[i] = v;
    gradient[i] = 0;
  }
}

}  // namespace

double gradient_square_sum(const Parameters& parameters, int tp_rank) {
  const float* gradient = parameters.gradient.data_ptr<float>();
  double total = 0;
  for (const Parameter& parameter : parameters.list) {
    if (parameter.spec.cut == TensorParallelCut::kWhole && tp_rank != 0) continue;
    if (parameter.spec.second_copy) continue;
    total += square_sum(gradient + parameter.offset, parameter.count);
  }
  return total;
}

double clip_scale(double clip_norm, double norm) {
  return clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0;
}

void adam_update(Parameters& parameters, const workload::Optimizer& optimizer, int update,
                 double scale) {
  Update u{};
  u.lr = static_cast<float>(optimizer.lr);
  u.beta1 = static_cast<float>(optimizer.beta1);
  u.beta2 = static_cast<float>(optimizer.beta2);
  u.eps = static_cast<float>(optimizer.eps);
  u.scale = static_cast<float>(scale);
  u.correction1 = static_cast<float>(1 / (1 - std::pow(optimizer.beta1, update)));
  u.correction2 = static_cast<float>(1 / (1 - std::pow(optimizer.beta2, update)));
  const Arrays arrays{parameters.master.data_ptr<float>(), parameters.gradient.data_ptr<float>(),
                      parameters.first_moment.data_ptr<float>(),
                      parameters.second_moment.data_ptr<float>()};
  for (const Parameter& parameter : parameters.list) {
    u.decay = parameter.spec.columns > 0 ? static_cast<float>(optimizer.weight_decay) : 0.0F;
    update_range(arrays, parameter.offset, parameter.offset + parameter.count, u);
    device::end_operator();
  }
  refresh_compute(parameters);
  device::end_operator();
}

}  // namespace regatta::train
