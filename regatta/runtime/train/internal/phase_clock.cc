#include "regatta/runtime/train/internal/phase_clock.h"

#include <algorithm>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/device/device.h"

namespace regatta::train {
namespace {

bool is_wait(workload::Phase phase) {
  return phase == workload::Phase::kTpComm || phase == workload::Phase::kPpComm ||
         phase == workload::Phase::kBubble || phase == workload::Phase::kDpComm;
}

}  // namespace

PhaseClock::PhaseClock(Rank rank) : rank_(rank) {}

void PhaseClock::start(int step, bool traced) {
  step_ = step;
  traced_ = traced;
  times_ = {};
  running_ = {};
  step_start_ = activity_start_ = os::monotonic_now();
}

void PhaseClock::close(Seconds at) {
  const Seconds duration = at - activity_start_;
  times_.phases[running_.phase] += duration;
  if (traced_ && duration.value > 0) {
    times_.spans.push_back({.rank = rank_,
                            .phase = running_.phase,
                            .step = step_,
                            .micro_batch = running_.micro_batch,
                            .layer = running_.layer,
                            .background = false,
                            .start = activity_start_,
                            .duration = duration});
  }
  activity_start_ = at;
}

// The running activity ends: the device finishes, or continues after a wait.
void PhaseClock::settle() const {
  if (is_wait(running_.phase)) {
    device::end_wait();
  } else {
    device::begin_wait();
  }
}

Activity PhaseClock::enter(const Activity& next) {
  settle();
  return enter_at(next, os::monotonic_now());
}

Activity PhaseClock::enter_at(const Activity& next, Seconds at) {
  close(std::max(at, activity_start_));
  return std::exchange(running_, next);
}

void PhaseClock::background(const Activity& activity, Seconds start, Seconds end) {
  if (!traced_) return;
  times_.spans.push_back({.rank = rank_,
                          .phase = activity.phase,
                          .step = step_,
                          .micro_batch = activity.micro_batch,
                          .layer = activity.layer,
                          .background = true,
                          .start = start,
                          .duration = std::max(end - start, Seconds{0})});
}

StepTimes PhaseClock::finish_step(bool next_traced) {
  settle();
  const Seconds now = os::monotonic_now();
  close(std::max(now, activity_start_));
  StepTimes finished = std::exchange(times_, {});
  finished.time = activity_start_ - step_start_;
  step_start_ = activity_start_;
  running_ = {};
  traced_ = next_traced;
  ++step_;
  return finished;
}

}  // namespace regatta::train
