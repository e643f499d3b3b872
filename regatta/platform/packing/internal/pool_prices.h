// packing/internal/pool_prices.h: what the GPUs and CPUs of each kind of node are worth to the pods
// expected to come.
// Source: bid prices of network revenue management, Talluri and van Ryzin, Management Science
// 44(11), 1998.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/platform/packing/internal/demand_tables.h"

namespace regatta::packing {

// Nodes of one model and one number of GPUs, and what is free on them together.
struct NodePool {
  int model = 0;
  int gpus = 0;
  double gpu_free_milli = 0;
  double cpu_free_milli = 0;
};

// Prices at which expected demand, when each pod chooses the cheapest pool that it may use, fills
// no pool before another: they rise where demand exceeds what is free and fall where it does not.
// Expected demand requests as much GPU as is free.
class PoolPrices {
 public:
  PoolPrices() = default;
  PoolPrices(std::vector<WeightedPodClass> demand, std::size_t pools);

  // One step towards the prices of `pools` as they are now, of at most `rate`.
  void step(const std::vector<NodePool>& pools, double rate);

  // The price of a pod in a pool, in GPUs.
  double cost(const PodClass& pod, std::size_t pool) const {
    return (gpu_[pool] * pod.gpus * pod.gpu_milli + cpu_[pool] * pod.cpu_milli) / kGpuMilli;
  }

 private:
  // The parts of the demand of a class that go to each pool, and their sum; 0 where none takes it.
  double share_out(const WeightedPodClass& demand, const std::vector<NodePool>& pools,
                   std::vector<double>& part) const;

  std::vector<WeightedPodClass> demand_;
  double cpu_per_gpu_ = 1;
  std::vector<double> gpu_;  // price of a thousandth of a GPU, by pool; 1 is a GPU
  std::vector<double> cpu_;  // price of a thousandth of a core, by pool
};

}  // namespace regatta::packing
