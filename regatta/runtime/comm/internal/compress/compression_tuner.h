// comm/internal/compress/compression_tuner.h: which compression pays, found out by taking turns.
// For each size class (a power of two) every kind is tried kTrials times, one after the other; then
// all ranks agree on the slowest rank's best times, and the fastest kind serves kSettledCalls
// calls, after which the trials come again. A kind takes over only when it is kGain times as fast
// as the one in use, from the exact sums only when it is kGainOverNone times as fast. Pure: the
// caller times, and brings the ranks' times together.
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

  // What may be chosen besides none.
  explicit CompressionTuner(const std::vector<CompressionKind>& allowed);

  // What the next call of this size does. All ranks that had the same calls get the same.
  struct Turn {
    CompressionKind kind = CompressionKind::kNone;
    bool is_trial = false;     // tell its time with record()
    bool must_settle = false;  // first agree on times_of() and tell them with settle()
  };
  Turn next(std::size_t bytes);

  void record(std::size_t bytes, CompressionKind kind, Seconds time);
  // This rank's best times of the trials, by candidate: none, then as allowed.
  std::vector<double> times_of(std::size_t bytes) const;
  // The largest of all ranks' times.
  void settle(std::size_t bytes, const std::vector<double>& agreed);

  // What is in use: none until it was settled.
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
