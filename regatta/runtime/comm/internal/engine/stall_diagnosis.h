// comm/internal/engine/stall_diagnosis.h: what a rank finds out about an operation of its own that
// stands still.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/stalled_call.h"
#include "regatta/runtime/comm/internal/watch/progress_reply.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

// While one is open the progress thread looks round this often.
inline constexpr Seconds kStallDiagnosisTick{0.1};

struct StallDiagnosis {
  StalledCall stalled;
  bool is_contradicted = false;  // a peer's message is of another call
  Seconds asked_at;
  std::optional<Seconds> mismatch_at;                 // two ranks were known to differ
  int rounds = 0;                                     // how often it was asked
  std::vector<std::optional<ProgressReply>> answers;  // of this round, as stalled.seen
  std::optional<Verdict> reported;                    // by a log line, or in the record alone
  bool is_logged = false;
};

}  // namespace regatta::comm
