// comm/internal/compress/compression_tuner.h: measures which compression is fastest. For each size
// class (a power of two) every kind is tried kTrials times, in turns; then all ranks agree on the
// slowest rank's best times, and the fastest kind is used for kSettledCalls calls, after which the
// trials are repeated. A kind replaces the one in use only when it is kGain times as fast, and the
// exact sums only when it is kGainOverNone times as fast. Pure: the caller measures times and
// exchanges them between the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/compression.h"

namespace regatta::comm::compress {

class CompressionTuner {
 public:
  static constexpr int kTrials = 5;
  static constexpr int kSettledCalls = 300;
  static constexpr double kGain = 1.1;
  static constexpr double kGainOverNone = 1.3;

  // The kinds that may be chosen besides none.
  explicit CompressionTuner(const std::vector<CompressionKind>& allowed);

  // The next call of this size; the same on all ranks that made the same calls.
  struct Turn {
    CompressionKind kind = CompressionKind::kNone;
    bool is_trial = false;     // record() its time
    bool must_settle = false;  // first agree on times_of() and settle() with them
  };
  Turn next(std::size_t bytes);

  void record(std::size_t bytes, CompressionKind kind, Seconds time);
  // This rank's best times of the trials, by candidate: none, then as allowed.
  std::vector<double> times_of(std::size_t bytes) const;
  // The largest of all ranks' times.
  void settle(std::size_t bytes, const std::vector<double>& agreed);

  // The kind in use: none until settle().
  CompressionKind choice(std::size_t bytes) const;

 private:
  struct SizeClass {
    std::size_t current = 0;  // candidate
    int calls = 0;            // since the trials began
    bool is_settled = false;
    std::vector<double> times;  // by candidate, of the trials
  };
  SizeClass& at(std::size_t bytes);
  const SizeClass* find(std::size_t bytes) const;
  int trial_calls() const { return kTrials * static_cast<int>(candidates_.size()); }

  std::vector<CompressionKind> candidates_;
  std::map<int, SizeClass> classes_;
};

}  // namespace regatta::comm::compress
