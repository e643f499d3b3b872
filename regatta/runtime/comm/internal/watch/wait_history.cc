#include "regatta/runtime/comm/internal/watch/wait_history.h"

#include <algorithm>

namespace regatta::comm {
namespace {

// Ranks compute for seconds in a step, and longer in the first one.
constexpr Seconds kNotCalledLogTime{10.0};
// Thin links block a path for a while, and a loaded processor delays a reply.
constexpr Seconds kBlockedLogTime{3.0};
constexpr double kUsualWaits = 3;
constexpr double kMemory = 0.9;

}  // namespace

void WaitHistory::record(Seconds wait) {
  longest_ = std::max(wait, longest_ * kMemory);
}

Seconds WaitHistory::log_after(Finding finding) const {
  switch (finding) {
    case Finding::kNotCalled:
      return std::max(kNotCalledLogTime, longest_ * kUsualWaits);
    case Finding::kBlocked:
    case Finding::kSilent:
      return std::max(kBlockedLogTime, longest_ * kUsualWaits);
    case Finding::kMismatch:
    case Finding::kGone:
    case Finding::kStopped:
    case Finding::kSlowLink:
      return {};
  }
  return {};
}

}  // namespace regatta::comm
