#include "regatta/platform/packing/internal/demand_tables.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace regatta::packing {

std::vector<WeightedPodClass> typical_pods(const std::vector<PodClass>& pods, double share) {
  std::map<PodClass, int> counts;
  for (PodClass pod : pods) {
    pod.memory_mib = 0;
    ++counts[pod];
  }
  std::vector<WeightedPodClass> typical;
  typical.reserve(counts.size());
  for (const auto& [pod, count] : counts)
    typical.push_back({pod, static_cast<double>(count)});
  std::stable_sort(typical.begin(), typical.end(),
                   [](const auto& a, const auto& b) { return a.weight > b.weight; });
  double covered = 0;
  std::size_t used = 0;
  while (used < typical.size() && covered < share * static_cast<double>(pods.size()))
    covered += typical[used++].weight;
  typical.resize(used);
  for (WeightedPodClass& entry : typical)
    entry.weight /= covered;
  return typical;
}

namespace {

// Turns the weight of each request into the share of pods that fit, times the free share.
void use_whole_devices(double* device) {
  double weight = 0;
  for (int free = 0; free <= kGpuMilli; ++free) {
    weight += device[free];
    device[free] = weight * free;
  }
}

// The mean use of devices when so many pods come, by the weights of the requests; kept, as models
// and levels of CPU often have equal ones.
class ExpectedUse {
 public:
  explicit ExpectedUse(int arrivals) : arrivals_(arrivals) {}

  // Turns the weight of each request into the expected use of each free share.
  void replace(double* device) {
    std::vector<std::pair<int, double>> requests;
    for (int milli = 1; milli <= kGpuMilli; ++milli)
      if (device[milli] > 0) requests.emplace_back(milli, device[milli]);
    const auto [known, is_new] = known_.try_emplace(requests);
    if (is_new) known->second = expected_use(requests);
    std::copy(known->second.begin(), known->second.end(), device);
  }

 private:
  std::vector<double> expected_use(const std::vector<std::pair<int, double>>& requests) const {
    // Free shares between two multiples of what divides all requests take the same pods as the
    // lower one.
    int unit = 0;
    for (const auto& [milli, weight] : requests)
      unit = std::gcd(unit, milli);
    std::vector<double> use(kGpuMilli + 1);
    if (unit == 0) return use;
    for (int arrival = 0; arrival < arrivals_; ++arrival) {
      for (int free = kGpuMilli / unit * unit; free > 0;
           free -= unit) {  // down: the smaller are old
        double gain = 0;
        double& here = use[static_cast<std::size_t>(free)];
        for (const auto& [milli, weight] : requests) {
          if (milli > free) break;
          gain +=
              weight * std::max(0.0, milli + use[static_cast<std::size_t>(free - milli)] - here);
        }
        here += gain;
      }
    }
    for (int free = 0; free <= kGpuMilli; ++free)
      use[static_cast<std::size_t>(free)] = use[static_cast<std::size_t>(free / unit * unit)];
    return use;
  }

  int arrivals_;
  std::map<std::vector<std::pair<int, double>>, std::vector<double>> known_;
};

}  // namespace

DemandTables::DemandTables(const std::vector<WeightedPodClass>& typical, int models,
                           int arrivals_ahead) {
  for (const auto& [pod, weight] : typical) {
    cpu_steps_.push_back(pod.cpu_milli);
    const bool is_known = std::any_of(requests_.begin(), requests_.end(), [&pod = pod](Request r) {
      return r.gpus == pod.gpus && r.gpu_milli == pod.gpu_milli;
    });
    if (pod.gpus > 1 && !is_known) requests_.push_back({pod.gpus, pod.gpu_milli});
  }
  std::sort(cpu_steps_.begin(), cpu_steps_.end());
  cpu_steps_.erase(std::unique(cpu_steps_.begin(), cpu_steps_.end()), cpu_steps_.end());
  const std::size_t tables = static_cast<std::size_t>(models) * (cpu_steps_.size() + 1);
  device_usable_.assign(tables * (kGpuMilli + 1), 0);
  request_weights_.assign(tables * requests_.size(), 0);
  ExpectedUse expected(arrivals_ahead);
  for (int model = 0; model < models; ++model) {
    for (int level = 0; level <= static_cast<int>(cpu_steps_.size()); ++level) {
      double* const device = &device_usable_[offset(model, level) * (kGpuMilli + 1)];
      for (const auto& [pod, weight] : typical) {
        if (cpu_level(pod.cpu_milli) > level || (pod.models >> model & 1U) == 0) continue;
        if (pod.gpus == 1) device[pod.gpu_milli] += weight;
        for (std::size_t i = 0; i < requests_.size(); ++i)
          if (requests_[i].gpus == pod.gpus && requests_[i].gpu_milli == pod.gpu_milli)
            request_weights_[offset(model, level) * requests_.size() + i] += weight;
      }
      if (arrivals_ahead > 0)
        expected.replace(device);
      else
        use_whole_devices(device);
    }
  }
}

int DemandTables::cpu_level(int cpu_milli) const {
  return static_cast<int>(std::upper_bound(cpu_steps_.begin(), cpu_steps_.end(), cpu_milli) -
                          cpu_steps_.begin());
}

double DemandTables::together_usable(int model, int cpu_level, const NodeState& node) const {
  double usable = 0;
  const double* const weights =
      request_weights_.data() + offset(model, cpu_level) * requests_.size();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (weights[i] == 0) continue;
    int fitting = 0;
    int free = 0;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      const int milli = node.gpu_free[static_cast<std::size_t>(gpu)];
      if (milli < requests_[i].gpu_milli) continue;
      ++fitting;
      free += milli;
    }
    if (fitting >= requests_[i].gpus) usable += weights[i] * free;
  }
  return usable;
}

double DemandTables::usable(const NodeState& node) const {
  const int level = cpu_level(node.cpu_milli);
  const double* const device = device_usable(node.model, level);
  double sum = together_usable(node.model, level, node);
  for (int gpu = 0; gpu < node.gpus; ++gpu)
    sum += device[node.gpu_free[static_cast<std::size_t>(gpu)]];
  return sum;
}

}  // namespace regatta::packing
