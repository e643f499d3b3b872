// cli/internal/run_progress.h: the progress of a training run: one line that changes on a terminal,
// plain lines elsewhere.
#pragma once

#include <cstdio>
#include <string>

#include "regatta/app/report/run_result.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {

class RunProgress {
 public:
  // `title` begins every line: "main", "compare", "sweep 3/8". `out` must outlive it.
  RunProgress(std::FILE* out, std::string title, int steps);
  // Clears the changing line.
  ~RunProgress();
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  // The run continues the checkpoint after `steps` steps.
  void on_resumed(int steps, const std::string& folder);
  // A step is done. Prints at each on a terminal, elsewhere every 2 s and at the last.
  void on_step(const report::StepRecord& step, long long tokens);

 private:
  std::FILE* out_;
  report::TrainingProgress state_;
  bool is_terminal_;
  Seconds last_printed_;  // plain lines
};

}  // namespace regatta::cli
