// bench/timing.h: the task and the times of a contender, and how its rounds are combined.
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

// Settings of Regatta's ranks; the peers use their own.
struct BenchSettings {
  comm::Setting forced;
  comm::Measure measure = comm::Measure::kAll;
  std::string tuning;  // of an earlier run: the text of the file
  // all_reduce only: timed beside the plain calls, with private buffers.
  comm::compress::CompressionKind compression = comm::compress::CompressionKind::kNone;
};

// The work of every contender in one round.
struct BenchTask {
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::vector<std::size_t> sizes;  // bytes of the whole vector
  int ranks = 2;
  int batches = 7;
  BenchSettings settings;
};

// The times of one size: seconds a call, per batch, of the slowest rank.
struct Timing {
  std::vector<double> batches_s;
  long long wrong = 0;  // elements, over all ranks
  // |result - sum| / |sum| of the first compressed call, without feedback.
  std::optional<double> error;
  std::string kind = {};  // of their compression, which automatic chooses

  // At least one batch.
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
