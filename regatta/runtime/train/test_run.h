// train/test_run.h: for the tests: trains a tiny job with every rank as a thread of this process.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/os/file.h"
#include "regatta/runtime/train/internal/trainer.h"

namespace regatta::train::test {

// With a text of its own; layers 4, hidden 32, heads 4, ffn 64, seq 16, vocab 256; global batch 8,
// fp32, 30 steps.
workload::Job tiny_job();

struct TestRunOptions {
  bool resume = false;
  int trace_to_step = 0;
};

struct RankOutcome {
  Status status;
  std::vector<StepReport> steps;
};

// Rank order.
std::vector<RankOutcome> run_job(const workload::Job& job, const workload::Strategy& strategy,
                                 const TestRunOptions& options = {});

// Rank 0's losses; EXPECTs that every rank succeeded with the same losses.
std::vector<double> losses_of(const std::vector<RankOutcome>& outcomes);

// A folder of the calling test alone, removed with the object.
os::TempFolder test_folder();

}  // namespace regatta::train::test
