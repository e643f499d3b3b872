#include "regatta/platform/packing/internal/pool_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace regatta::packing {
namespace {

constexpr double kSpread = 0.03;  // cost in GPUs per GPU within which pools share demand
constexpr double kNoDemand = 12;  // times kSpread, beyond which a pool gets none
constexpr double kPriceMax = 2;   // of a GPU, and of the CPU that goes with one

bool may_use(const PodClass& pod, const NodePool& pool) {
  return pod.gpus == 0 || (pod.gpus <= pool.gpus && (pod.models >> pool.model & 1U) != 0);
}

}  // namespace

PoolPrices::PoolPrices(std::vector<WeightedPodClass> demand, std::size_t pools)
    : demand_(std::move(demand)), gpu_(pools), cpu_(pools) {
  double cpu = 0;
  double gpu = 0;
  for (const auto& [pod, weight] : demand_) {
    cpu += weight * pod.cpu_milli;
    gpu += weight * pod.gpus * pod.gpu_milli;
  }
  if (gpu > 0 && cpu > 0) cpu_per_gpu_ = cpu / gpu;
}

double PoolPrices::share_out(const WeightedPodClass& demand, const std::vector<NodePool>& pools,
                             std::vector<double>& part) const {
  const PodClass& pod = demand.pod;
  const double gpus_requested = static_cast<double>(pod.gpus) * pod.gpu_milli / kGpuMilli;
  const double size = std::max(gpus_requested, pod.cpu_milli / cpu_per_gpu_ / kGpuMilli);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < pools.size(); ++i)
    if (may_use(pod, pools[i])) least = std::min(least, cost(pod, i));
  if (size <= 0 || std::isinf(least) || (pod.gpus > 0 && least > gpus_requested * kPriceMax))
    return 0;
  double sum = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const double dearer = may_use(pod, pools[i]) ? (cost(pod, i) - least) / (kSpread * size) : 1e9;
    part[i] = dearer > kNoDemand ? 0 : std::exp(-dearer) * (pools[i].gpu_free_milli + 1);
    sum += part[i];
  }
  return sum;
}

void PoolPrices::step(const std::vector<NodePool>& pools, double rate) {
  double free = 0;
  for (const NodePool& pool : pools)
    free += pool.gpu_free_milli;
  double requested = 0;
  for (const auto& [pod, weight] : demand_)
    requested += weight * pod.gpus * pod.gpu_milli;
  if (requested <= 0 || free <= 0) return;
  std::vector<double> gpu_load(pools.size());
  std::vector<double> cpu_load(pools.size());
  std::vector<double> part(pools.size());
  for (const WeightedPodClass& demand : demand_) {
    const double sum = share_out(demand, pools, part);
    if (sum <= 0) continue;
    const double pods = demand.weight * free / requested / sum;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      gpu_load[i] += pods * part[i] * demand.pod.gpus * demand.pod.gpu_milli;
      cpu_load[i] += pods * part[i] * demand.pod.cpu_milli;
    }
  }
  const auto moved = [rate](double price, double load, double supply, double scale) {
    const double excess = std::clamp(load / (supply + 1) - 1, -1.0, 1.0);
    return std::clamp(price + rate * scale * excess, 0.0, kPriceMax * scale);
  };
  for (std::size_t i = 0; i < pools.size(); ++i) {
    gpu_[i] = moved(gpu_[i], gpu_load[i], pools[i].gpu_free_milli, 1);
    cpu_[i] = moved(cpu_[i], cpu_load[i], pools[i].cpu_free_milli, 1 / cpu_per_gpu_);
  }
}

}  // namespace regatta::packing
