// comm/internal/engine/stall_diagnosis.h: what a rank has found out about one of its operations
// that stands still.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/stalled_call.h"
#include "regatta/runtime/comm/internal/watch/progress_reply.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

// The interval of checks while a diagnosis is open.
inline constexpr Seconds kStallDiagnosisTick{0.1};

struct StallDiagnosis {
  StalledCall stalled;
  bool is_contradicted = false;  // a peer's message belongs to another call
  Seconds queried_at;
  std::optional<Seconds> mismatch_at;                 // two ranks were first known to differ
  int rounds = 0;                                     // of queries
  std::vector<std::optional<ProgressReply>> replies;  // of the last round, by index in stalled.seen
  std::optional<Verdict> reported;                    // the one that the watch file shows
  bool is_logged = false;
};

}  // namespace regatta::comm
