// bench/comparison_run.h: times all contenders, one after the other in every round, so that a slow
// phase of the machine affects all of them.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/bench/regatta_ranks.h"
#include "regatta/runtime/bench/timing.h"

namespace regatta::bench {

struct ComparisonOptions {
  int rounds = 3;
  TestEnvironment environment;
  std::vector<std::string> peers;           // on this machine only
  const std::atomic<bool>* stop = nullptr;  // once true, no further round begins
};

struct ComparisonResult {
  std::vector<Contender> contenders;
  std::vector<comm::TuningChoice> choices;  // as in RegattaRun, of the last round
};

// Regatta's contenders first, then the named peers. `on_turn` is called before each contender.
// Returns the rounds that were complete when `stop` became true; kUnavailable when none was.
// kUnsupported when a peer's program is missing or has no such operation; the error of a contender
// names it.
Result<ComparisonResult> run_comparison(
    const BenchTask& task, const ComparisonOptions& options,
    const std::function<void(int round, const std::string& name)>& on_turn);

}  // namespace regatta::bench
