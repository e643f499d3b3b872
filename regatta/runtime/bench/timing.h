// bench/timing.h: what a contender is asked for and gives, and how its rounds come together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/collective/setting.h"
#include "regatta/runtime/bench/collective.h"
#include "regatta/runtime/comm/compression.h"

namespace regatta::bench {

// How Regatta's ranks choose; the peers choose for themselves.
struct BenchSettings {
  comm::Setting forced;
  comm::Measure measure = comm::Measure::kAll;
  std::string tuning;  // of an earlier run: the text of the file
  // all_reduce only: timed beside the plain calls, with private buffers.
  comm::compress::CompressionKind compression = comm::compress::CompressionKind::kNone;
};

// What every contender is asked to do in one round.
struct BenchTask {
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::vector<std::size_t> sizes;  // bytes of the whole vector
  int ranks = 2;
  int batches = 7;
  BenchSettings settings;
};

// One size: seconds a call, per batch, of the slowest rank.
struct Timing {
  std::vector<double> batches_s;
  long long wrong = 0;  // elements, over all ranks
  // Of compressed calls, of the first with no feedback: |result - sum| / |sum|.
  std::optional<double> error;
  std::string kind = {};  // what they took, which automatic chooses

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

}  // namespace regatta::bench
