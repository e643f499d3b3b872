// comm/internal/engine/close_sequence.h: the orderly end of a world in phases: its operations end,
// its last messages leave, its goodbyes leave. Each phase has a time limit. Pure: says what to do
// next, the caller does it.
#pragma once

#include <cstdint>
#include <optional>

#include "regatta/base/core/units.h"

namespace regatta::comm {

class CloseSequence {
 public:
  enum class Action : std::uint8_t {
    kWait,
    kEndOperations,  // those that are left end with an error
    kSayGoodbye,
    kShutDown  // the last one
  };

  // Operations may go on until `deadline`.
  void begin(Seconds deadline) {
    if (!deadline_) deadline_ = deadline;
  }
  bool has_begun() const { return deadline_.has_value(); }

  // After begin(). is_idle: no operation is left; is_flushed: the peers have all that was sent.
  Action next(Seconds now, bool is_idle, bool is_flushed) {
    const bool has_time = now < *deadline_;
    if (phase_ == Phase::kOperations) {
      if (!is_idle && has_time) return Action::kWait;
      phase_ = Phase::kMessages;
      deadline_ = now + kFlushTime;
      return Action::kEndOperations;
    }
    if (!is_flushed && has_time) return Action::kWait;
    if (phase_ == Phase::kGoodbyes) return Action::kShutDown;
    phase_ = Phase::kGoodbyes;
    return Action::kSayGoodbye;
  }

 private:
  enum class Phase : std::uint8_t { kOperations, kMessages, kGoodbyes };
  // How long the end of a world waits for its last bytes to be acknowledged.
  static constexpr Seconds kFlushTime{2.0};

  std::optional<Seconds> deadline_;  // of the phase
  Phase phase_ = Phase::kOperations;
};

}  // namespace regatta::comm
