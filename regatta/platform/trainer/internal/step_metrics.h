// trainer/internal/step_metrics.h: the steps of a training as lines of metrics, from the events of
// its ranks (runtime/train/README.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"

namespace regatta::trainer {

// A step that all ranks have done.
struct TrainedStep {
  int step = 0;
  double loss = 0;
  double time_s = 0;  // of the slowest rank
  double tokens_per_s = 0;
};

class StepMetrics {
 public:
  explicit StepMetrics(int ranks) : ranks_(ranks) {}

  // Handles "step" and "memory" events, and ignores others. Returns the step that this event
  // completes. kInvalidInput names an event of another form.
  Result<std::optional<TrainedStep>> add(int rank, const nlohmann::json& event);
  // The largest resident memory of a rank until now, in bytes; 0: not known.
  double resident_bytes() const { return resident_bytes_; }

 private:
  struct Partial {
    int reported = 0;
    TrainedStep step;
  };
  int ranks_;
  std::map<int, Partial> partial_;
  double resident_bytes_ = 0;
};

// The lines of a step, each with a newline; `now_ms`: Unix.
std::string metric_lines(const TrainedStep& step, double resident_bytes, std::int64_t now_ms);

}  // namespace regatta::trainer
