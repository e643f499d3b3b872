#include "regatta/app/cli/internal/kept_process.h"

#include <algorithm>
#include <cmath>

namespace regatta::cli {

Status KeptProcess::start(Seconds now) {
  started_ = now;
  REGATTA_TRY(pid, spawn_());
  pid_ = pid;
  end_.reset();
  return {};
}

// The first restart after a while waits for nothing.
void KeptProcess::plan_restart(Seconds now) {
  constexpr Seconds kSoon{1};
  constexpr Seconds kPause{0.1};
  constexpr Seconds kLongest{5};
  quick_ends_ = now - started_ < kSoon ? std::min(quick_ends_ + 1, 30) : 0;
  due_ = now;
  if (quick_ends_ > 1) due_ += std::min(kPause * std::ldexp(1.0, quick_ends_ - 2), kLongest);
}

const std::optional<os::ExitState>& KeptProcess::end(Seconds now) {
  if (end_ || pid_ < 0) return end_;
  const auto state = os::try_wait(pid_);
  if (state && !*state) return end_;
  // Another waiter knows how it ended.
  end_ = state ? **state : os::ExitState{.status = {}, .signal = SIGKILL};
  plan_restart(now);
  return end_;
}

bool KeptProcess::restart(Seconds now) {
  if (!end_ || now < due_) return false;
  if (!start(now)) {
    plan_restart(now);
    return false;
  }
  ++restarts_;
  return true;
}

}  // namespace regatta::cli
