// pipeline/internal/random_cases.h: small random pipelines for the property tests.
#pragma once

#include <algorithm>
#include <ostream>
#include <random>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/pipeline_order.h"

namespace regatta::pipeline {

inline std::ostream& operator<<(std::ostream& out, const PipelineShape& shape) {
  return out << to_string(shape.schedule) << ", " << shape.stages << " stages, "
             << shape.micro_batches << " micro-batches, " << shape.virtual_stages
             << " virtual stages";
}

inline int number_between(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// p 1..8, m 1..24, v 1..4, within what the schedule allows.
inline PipelineShape random_shape(std::mt19937& random, workload::PipelineSchedule schedule) {
  PipelineShape shape{.schedule = schedule,
                      .stages = number_between(random, 1, 8),
                      .micro_batches = number_between(random, 1, 24)};
  if (schedule == workload::PipelineSchedule::kInterleaved)
    shape.virtual_stages = number_between(random, 1, 4);
  if (schedule == workload::PipelineSchedule::kDualPipe) {
    shape.stages = 2 * number_between(random, 1, 4);
    shape.micro_batches = 2 * number_between(random, shape.stages, 12);
  }
  return shape;
}

inline PipelineShape random_shape(std::mt19937& random) {
  const auto last = static_cast<int>(workload::kPipelineSchedules.size()) - 1;
  return random_shape(random, at(workload::kPipelineSchedules, number_between(random, 0, last)));
}

}  // namespace regatta::pipeline
