// bench/race.h: all contenders, one after the other in every round, so that a slow phase of the
// machine meets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/bench/own_ranks.h"
#include "regatta/runtime/bench/timing.h"

namespace regatta::bench {

struct RaceOptions {
  int rounds = 3;
  Ground ground;
  std::vector<std::string> peers;  // on this machine only
};

struct Outcome {
  std::vector<Contender> contenders;
  std::vector<comm::Choice> choices;  // as OwnRun has them, of the last round
};

// Regatta's contenders first, then the peers named. `on_turn` is told whose turn it is.
// kUnsupported when a peer's program is missing or it has no such operation; an error of a
// contender names it.
Result<Outcome> race(const Task& task, const RaceOptions& options,
                     const std::function<void(int round, const std::string& name)>& on_turn);

}  // namespace regatta::bench
