// mixing/internal/elastic_samples.h: what the demand of each workload may be next, as samples, from
// what all workloads needed so far.
#pragma once

#include <span>
#include <vector>

#include "regatta/platform/mixing/device_assignment.h"
#include "regatta/platform/mixing/internal/device_loads.h"

namespace regatta::mixing {

// Samples of the workloads `present` for the time after interval `now` - 1, from intervals before
// `now`. A part comes from all workloads of the same kind (nearly idle, ordinary, with spikes), the
// rest from the workload's own window; both grow with the last intervals over the window. A
// workload draws the same quantiles at each call, so that its samples change only as far as demand
// does.
std::vector<LoadSamples> elastic_samples(std::span<const MixedWorkload> workloads,
                                         std::span<const int> present, std::size_t now,
                                         const ElasticOptions& options);

}  // namespace regatta::mixing
