#include "bench/packing/packing_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace regatta::packing {
namespace {

constexpr int kIterations = 3000;

struct Request {
  int milli = 0;
  std::vector<std::string> models;
  double count = 0;  // GPUs requested
  double price = 0;  // dual of the count, in thousandths of a GPU
  double used = 0;   // GPUs served at these prices
};

// The dearest set of requests for one GPU of the model: its value, and how often it has each
// request.
std::pair<double, std::vector<int>> best_set(const std::vector<Request>& requests,
                                             const std::vector<std::size_t>& allowed) {
  std::vector<double> value(kGpuMilli + 1);
  std::vector<int> last(kGpuMilli + 1, -1);
  for (int free = 1; free <= kGpuMilli; ++free) {
    const auto at = static_cast<std::size_t>(free);
    value[at] = value[at - 1];
    for (const std::size_t i : allowed) {
      const Request& request = requests[i];
      if (request.milli > free) continue;
      const double sum =
          value[at - static_cast<std::size_t>(request.milli)] + request.milli - request.price;
      if (sum <= value[at]) continue;
      value[at] = sum;
      last[at] = static_cast<int>(i);
    }
  }
  std::vector<int> times(requests.size());
  for (int free = kGpuMilli; free > 0;) {
    const int taken = last[static_cast<std::size_t>(free)];
    if (taken < 0) {
      --free;
      continue;
    }
    ++times[static_cast<std::size_t>(taken)];
    free -= requests[static_cast<std::size_t>(taken)].milli;
  }
  return {value.back(), times};
}

std::vector<Request> requests_of(const std::vector<Pod>& pods) {
  std::map<std::pair<int, std::vector<std::string>>, double> counts;
  for (const Pod& pod : pods)
    if (pod.gpus > 0) counts[{pod.gpu_milli, pod.gpu_models}] += pod.gpus;
  std::vector<Request> requests;
  requests.reserve(counts.size());
  for (const auto& [key, count] : counts)
    requests.push_back({key.first, key.second, count});
  return requests;
}

}  // namespace

double packing_bound(const std::vector<GpuNode>& nodes, const std::vector<Pod>& pods) {
  std::vector<Request> requests = requests_of(pods);
  std::map<std::string, double> gpus;
  double capacity = 0;
  for (const GpuNode& node : nodes) {
    gpus[node.gpu_model] += node.gpus;
    capacity += node.gpus * kGpuMilli;
  }
  std::map<std::string, std::vector<std::size_t>> allowed;
  for (const auto& [model, count] : gpus)
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (requests[i].models.empty() ||
          std::count(requests[i].models.begin(), requests[i].models.end(), model) > 0)
        allowed[model].push_back(i);
  double least = capacity;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    double bound = 0;
    for (Request& request : requests) {
      bound += request.count * request.price;
      request.used = 0;
    }
    for (const auto& [model, count] : gpus) {
      const auto [value, times] = best_set(requests, allowed[model]);
      bound += count * value;
      for (std::size_t i = 0; i < requests.size(); ++i)
        requests[i].used += count * times[i];
    }
    least = std::min(least, bound);
    // Requests that are rare move in longer steps than their counts alone would make.
    const double step = 60.0 / (1 + 0.01 * iteration);
    for (Request& request : requests) {
      const double excess =
          (request.used - request.count) / std::sqrt(request.count * capacity / kGpuMilli);
      request.price = std::clamp(request.price + step * excess, 0.0, 1000.0);
    }
  }
  return least / capacity;
}

}  // namespace regatta::packing
