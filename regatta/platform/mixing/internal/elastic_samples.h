// mixing/internal/elastic_samples.h: what the demand of each workload may be next: what followed
// the histories of any workload that are most like its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/platform/mixing/device_assignment.h"
#include "regatta/platform/mixing/internal/device_loads.h"

namespace regatta::mixing {

class ElasticForecast {
 public:
  ElasticForecast(std::span<const MixedWorkload> workloads, const ElasticOptions& options);

  // Samples of the workloads `present` for the intervals in which a decision at `now` holds, from
  // intervals before `now`. Each has its own order of samples, so that two workloads meet at
  // random. Histories are alike where the workloads needed as much in the last interval, the last
  // 3, 10 and 60 and in all, and all workloads together as much as now; newer ones are more so.
  std::vector<LoadSamples> samples(std::span<const int> present, std::size_t now) const;

 private:
  static constexpr std::size_t kFeatures = 7;
  using Features = std::array<float, kFeatures>;
  // A workload just before an interval.
  struct History {
    int workload = 0;
    std::size_t interval = 0;
    Features features{};
    bool has_spikes = false;
  };

  History history_of(int workload, std::size_t interval) const;
  std::vector<float> demand_after(const History& history, std::size_t now) const;

  std::span<const MixedWorkload> workloads_;
  ElasticOptions options_;
  std::vector<float> level_;   // mean demand of all workloads lately, by interval
  std::vector<History> pool_;  // by interval; not all, which keeps the search short
};

}  // namespace regatta::mixing
