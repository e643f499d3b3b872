// sched/internal/queue_forecast.h: one possible future of a queue: jobs end and start in time.
#pragma once

#include <vector>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/internal/forecast_input.h"

namespace regatta::sched {

// When each wanted job starts in this future; infinite where it does not within 60 days.
std::vector<double> sample_starts(const ForecastInput& input, packing::RandomSequence& random);

}  // namespace regatta::sched
