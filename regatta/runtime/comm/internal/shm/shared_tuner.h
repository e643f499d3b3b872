// comm/internal/shm/shared_tuner.h: chooses the chunks of the staged collectives of one group
// (tuning/). What an operation took travels with the post of the next one, so all ranks know all
// times when that one ends, and choose alike without a word more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {

class SharedTuner {
 public:
  struct Setup {
    int ranks = 1;
    Setting forced;
    Measure measure = Measure::kAll;
    std::vector<TuningChoice> loaded;
  };
  explicit SharedTuner(const Setup& setup);

  // A call that passes through no slot begins: the most that one round of stages takes.
  std::size_t begin(const Call& call);
  // What this rank says of the operation before, with the post of the next.
  double took_s() const { return before_.took_s; }
  // An operation ended; `times_s`: what all ranks said of the one before it.
  bool wants_times() const { return before_.ticket.is_timed(); }
  void learn(const std::vector<double>& times_s);
  void end(const Call& call, Seconds took, bool is_staged);
  // The same for a call that passed through slots: not timed.
  void end_small(const Call& call) {
    before_ = {};
    small_calls_[static_cast<std::size_t>(call.kind)].fetch_add(1, std::memory_order_relaxed);
  }

  // Any thread.
  std::vector<TuningChoice> choices() const;
  bool is_settled() const;

 private:
  struct Timed {
    Tuner::Ticket ticket;
    bool is_rooted = false;
    bool is_staged = false;
    double took_s = -1;
  };
  struct InPlace {
    long long calls = 0;
    Seconds least;
  };

  const int ranks_;
  mutable std::mutex mutex_;
  Tuner tuner_;
  Timed now_;
  Timed before_;
  std::map<std::pair<CallKind, std::size_t>, InPlace> in_place_;  // by operation and size class
  std::array<std::atomic<long long>, kCallKinds> small_calls_{};  // by operation
};

}  // namespace regatta::comm
