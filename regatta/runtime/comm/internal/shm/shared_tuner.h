// comm/internal/shm/shared_tuner.h: chooses the chunks of the staged collectives of one group
// (tuning/). The time of an operation travels with the announcement of the next one, so all ranks
// know all times when that one ends, and choose the same without another message.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "regatta/base/core/mutex.h"
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

  // The thread that drives the group alone, up to "Any thread".
  // A call that passes through no slot begins: the most bytes that one staged round moves.
  std::size_t begin(const Call& call);
  // The time of the operation before at this rank, for the announcement of the next one.
  double took_s() const { return before_.took_s; }
  // An operation ended; `times_s`: by rank, the time of the one before it.
  bool wants_times() const { return before_.ticket.is_timed(); }
  void learn(const std::vector<double>& times_s);
  void end(const Call& call, Seconds took, bool is_staged);
  // The same for a call that passed through slots, which is not timed.
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
  mutable Mutex mutex_;
  Tuner tuner_ REGATTA_GUARDED_BY(mutex_);
  // By operation and size class.
  std::map<std::pair<CallKind, std::size_t>, InPlace> in_place_ REGATTA_GUARDED_BY(mutex_);
  Timed now_;                                                     // of the driving thread
  Timed before_;                                                  // of the driving thread
  std::array<std::atomic<long long>, kCallKinds> small_calls_{};  // by operation
};

}  // namespace regatta::comm
