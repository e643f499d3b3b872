// comm/internal/engine/inquiry.h: what a rank finds out about an operation of its own that stands
// still.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/stuck_call.h"
#include "regatta/runtime/comm/internal/watch/answer.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

// While one is open the progress thread looks round this often.
inline constexpr Seconds kInquiryTick{0.1};

struct Inquiry {
  StuckCall stuck;
  bool is_contradicted = false;  // a peer's message is of another call
  Seconds asked_at;
  std::optional<Seconds> mismatch_at;          // two ranks were known to differ
  int rounds = 0;                              // how often it was asked
  std::vector<std::optional<Answer>> answers;  // of this round, as stuck.seen
  std::optional<Verdict> told;                 // by a log line, or in the record alone
  bool is_logged = false;
};

}  // namespace regatta::comm
