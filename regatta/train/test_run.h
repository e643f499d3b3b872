// train/test_run.h: for the tests: trains a tiny job with every rank as a thread of this process.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "regatta/train/trainer.h"

namespace regatta::train::test {

// layers 4, hidden 32, heads 4, ffn 64, seq 16, vocab 256; global batch 8, fp32, 30 steps.
workload::Job tiny_job();

struct RunOptions {
  bool resume = false;
  int trace_to_step = 0;
};

struct RankOutcome {
  Status status;
  std::vector<StepReport> steps;
};

// Rank order. The text lies in `folder`, made at the first call.
std::vector<RankOutcome> run_job(const workload::Job& job, const workload::Strategy& strategy,
                                 const RunOptions& options = {});

// Rank 0's losses; EXPECTs that every rank ended well and saw the same losses.
std::vector<double> losses_of(const std::vector<RankOutcome>& outcomes);

// A folder of this test alone, removed at destruction.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace regatta::train::test
