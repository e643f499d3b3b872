// bench/timing.h: what a contender's run gives, and how the rounds of several are brought together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "regatta/bench/collective.h"
#include "regatta/core/result.h"
#include "regatta/core/units.h"

namespace regatta::bench {

// What every contender is asked to do in one round.
struct Task {
  Op op = Op::kAllReduce;
  std::vector<std::size_t> sizes;  // bytes of the whole vector
  int ranks = 2;
  int batches = 7;
};

// One size: seconds a call, per batch, of the slowest rank.
struct Timing {
  std::vector<double> batches_s;
  long long wrong = 0;  // elements, over all ranks

  // Of at least one batch.
  Seconds median() const;
  Seconds least() const;
  Seconds largest() const;
};

struct Contender {
  std::string name;
  std::vector<Timing> timings;  // by size
};

// Adds the batches of another round of the same contender.
void append(Contender& all, const Contender& round);

// Times all contenders, one after the other in every round, so that a slow phase of the machine
// meets all of them: Regatta with private and with shared buffers first ("private", "shared"), then
// the peers named. `on_turn` is told whose turn it is. No other thread of the process may be at
// work: ranks are forked. kNotFound when a peer's program is missing; an error of a contender names
// it.
struct RaceOptions {
  int rounds = 3;
  std::vector<std::string> peers;
};
Result<std::vector<Contender>> race(const Task& task, const RaceOptions& options,
                                    void (*on_turn)(int round, const std::string& name));

}  // namespace regatta::bench
