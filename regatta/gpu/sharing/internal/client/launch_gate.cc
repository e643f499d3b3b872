#include "regatta/gpu/sharing/internal/client/launch_gate.h"

#include <algorithm>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/memory.h"
#include "regatta/base/os/process.h"

namespace regatta::sharing {
namespace {

// How often a process that keeps its turn looks whether the turn is over.
constexpr std::uint64_t kLookNs = 100'000;
// How often a waiting process checks whether its daemon is still there.
constexpr std::uint64_t kCheckNs = 100'000'000;
// The most work in flight without a daemon.
constexpr std::uint64_t kRoomWithoutDaemonNs = 20'000'000;
// The most work in flight when the turn ends: the device shares itself between that and the next
// turn's. Less would have to be known exactly for the device not to become idle.
constexpr std::uint64_t kTailNs = 1'000'000;
constexpr std::uint64_t kEventIntervalLeastNs = 50'000;
constexpr std::uint64_t kEventIntervalMostNs = 1'000'000;
// From this concurrency on, several streams are in use.
constexpr std::uint64_t kSeveralStreams = BusyTime::kOne * 5 / 4;

Seconds seconds(std::uint64_t ns) {
  return Seconds{1e-9 * static_cast<double>(ns)};
}

}  // namespace

LaunchGate::LaunchGate(Client& client, int device, StreamEvents& events)
    : client_(client),
      events_(events),
      turn_(client.pages().tenant().turns[device]),
      working_processes_(client.pages().tenant().working_processes[device]),
      page_(client.pages().work(device), client.pages().work_marks(device)),
      notifier_(client, device) {}

LaunchGate::~LaunchGate() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    worker_wake_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
  if (completion_.last != nullptr) events_.release(completion_.last);
}

void LaunchGate::start_worker() {
  if (worker_.joinable()) return;
  worker_ = os::signal_masked_thread([this] { run_worker(); });
}

void LaunchGate::set_activity(unsigned turn, regatta_activity activity) {
  publish_marks();
  page_.set_activity(turn, activity);
}

void LaunchGate::publish_marks() {
  page_.set_used(work_.used_ns());
  page_.set_busy_since(work_.busy_since_ns());
  page_.set_ended(work_.ended_ns());
}

// The part of the turn that this process may fill with work in flight.
std::uint64_t LaunchGate::room_at(std::uint64_t now_ns) const {
  // The page of a tenant that never had a turn has no bound.
  const bool is_free = notifier_.is_gate_open_without_daemon();
  std::uint64_t room =
      is_free ? kRoomWithoutDaemonNs : __atomic_load_n(&turn_.bound_ns, __ATOMIC_ACQUIRE);
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  if (deadline != 0 && !is_free && deadline <= now_ns) return 0;
  if (deadline != 0 && !is_free) room = std::min(room, std::max(deadline - now_ns, kTailNs));
  const unsigned processes = __atomic_load_n(&working_processes_, __ATOMIC_RELAXED);
  return work_.room(room / std::max(processes, 1U) * work_.concurrency() / BusyTime::kOne);
}

void LaunchGate::reconnect() {
  if (!notifier_.reconnect(mutex_)) return;
  // The new daemon numbers its turns from the start.
  entered_turn_ = ~0U;
  limit_ = 0;
  notifier_.notify();
}

// From now on no thread launches without the mutex. True when nothing is in flight.
bool LaunchGate::close_if_idle() {
  limit_ = 0;
  return work_.in_flight_ns() == 0;
}

bool LaunchGate::is_over(unsigned word) const {
  if (notifier_.is_gate_open_without_daemon()) return false;
  if (!regatta_turn_is_open(word)) return true;
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  return deadline != 0 && os::monotonic_ns() >= deadline &&
         regatta_turn_number(word) == entered_turn_;
}

// When the work in flight ends on a device that executes nothing else. The estimate of several
// streams is too early where they wait for each other, which costs less than one that is too late.
std::uint64_t LaunchGate::expected_end() const {
  return work_.concurrency() > kSeveralStreams ? lanes_.ends_ns()
                                               : work_.expected_end(entered_at_ns_);
}

// Admits a launch. False when too much is in flight, the deadline has passed, or the turn was
// closed just now. The first launch of a turn is always admitted.
bool LaunchGate::enter(unsigned word, StreamLane& lane, std::uint64_t cost) {
  const unsigned number = regatta_turn_number(word);
  const std::uint64_t now = os::monotonic_ns();
  const bool is_first = entered_turn_ != number;
  if (page_.activity() != REGATTA_WORKING || is_first) {
    const bool was_idle = page_.activity() == REGATTA_IDLE;
    set_activity(number, REGATTA_WORKING);
    if (turn_word() != word) return false;
    if (was_idle) notifier_.notify();
  }
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  const std::uint64_t room = room_at(now);
  const std::uint64_t in_flight = work_.in_flight_ns();
  const std::uint64_t in_lane = lane.in_flight_ns();
  if ((in_flight >= room && (in_flight != 0 || !is_first)) ||
      (in_lane >= lanes_.room(room) && in_lane != 0)) {
    const std::uint64_t ends = std::max(now, expected_end());
    if (!is_first && deadline != 0 && ends + kEventIntervalLeastNs >= deadline)
      page_.set_end(entered_turn_, ends);
    return false;
  }
  if (in_flight == 0) work_.begin_period(now);
  if (is_first) {
    entered_at_ns_ = now;
    page_.set_entered(now);
    lanes_.begin_turn();
  }
  entered_turn_ = number;
  lanes_.mark_used(lane);
  open_word_ = word;
  work_.launch(cost);
  publish_marks();
  limit_ = work_.completed_ns() + room;
  lane_limit_ = lanes_.room(room);
  event_interval_ns_ = std::clamp(room / 16, kEventIntervalLeastNs, kEventIntervalMostNs);
  worker_wake_.notify_one();
  return true;
}

void LaunchGate::wait_for_turn(void* stream, std::uint64_t cost) {
  if (!client_.is_joined_process()) return;  // a child of fork(), which the driver does not serve
  StreamLane& lane = lanes_.of(stream);
  work_.cancel(cost);
  MutexLock lock(mutex_);
  start_worker();
  if (gaps_.is_idle()) gaps_.begin(os::monotonic_ns());
  ++waiting_;
  for (;;) {
    if (!notifier_.is_connected()) reconnect();
    const unsigned word = turn_word();
    if (!is_over(word) && enter(word, lane, cost)) break;
    if (page_.activity() != REGATTA_WORKING || close_if_idle()) {
      hold_back(word);
      continue;
    }
    // The end of the last work should be known exactly.
    if (lane.unrecorded_ns != 0) {
      if (const StreamEvents::Event end = events_.record(stream); end != nullptr)
        push({nullptr, end, lane.unrecorded_ns.exchange(0), nullptr, 0, false, &lane, stream});
    }
    worker_wake_.notify_one();
    progress_.wait_for(lock, seconds(kCheckNs));
  }
  --waiting_;
}

// With nothing in flight: requests a turn and waits for one.
void LaunchGate::hold_back(unsigned word) {
  const unsigned number = regatta_turn_number(word);
  if (!page_.shows(number, REGATTA_WAITING)) {
    set_activity(number, REGATTA_WAITING);
    notifier_.notify();
  }
  mutex_.unlock();
  os::futex_wait(&turn_.word, word, kCheckNs);
  mutex_.lock();
}

void LaunchGate::push(TimedSpan span) {
  add_to_lane(span, os::monotonic_ns());
  lanes_.mark_used(*span.lane);
  spans_.push_back(span);
}

void LaunchGate::record_events(StreamLane& lane, const Pass& pass, void* stream) {
  const StreamEvents::Event end = events_.record(stream);
  if (end == nullptr) {  // the cost stays in the lane
    if (pass.begin != nullptr) events_.release(pass.begin);
    return;
  }
  const MutexLock lock(mutex_);
  push({pass.begin, end, lane.unrecorded_ns.exchange(0), pass.entry, pass.cost_ns,
        pass.may_have_waited, &lane, stream});
  worker_wake_.notify_one();
}

void LaunchGate::run_worker() {
  ::pthread_setname_np(::pthread_self(), "regatta-gate");
  ::prctl(PR_SET_TIMERSLACK, 1);
  events_.begin_worker();
  MutexLock lock(mutex_);
  while (!stops_) {
    if (!spans_.empty())
      complete_spans();
    else if (work_.in_flight_ns() != 0)
      complete_unrecorded(lock);
    else
      report_idle(lock);
  }
}

// Waits for half of the spans, so that waiting threads continue before all has ended. With several
// streams for all of them, in the order in which they end, not in which they were launched.
void LaunchGate::complete_spans() {
  const bool has_lanes = lane_limit_ != StreamLanes::kUnlimited;
  const std::size_t all = spans_.size();
  const auto count = static_cast<std::ptrdiff_t>(has_lanes ? all : (all + 1) / 2);
  std::vector<TimedSpan> spans(spans_.begin(), spans_.begin() + count);
  spans_.erase(spans_.begin(), spans_.begin() + count);
  publish_marks();
  mutex_.unlock();
  std::uint64_t reported = work_.in_flight_ns();
  while (!spans.empty()) {
    events_.wait(spans.front().end);
    completion_.is_beside_others = !regatta_turn_is_open(turn_word());
    complete_span(spans.front(), completion_);
    spans.erase(spans.begin());
    if (has_lanes) complete_reached(spans, completion_);
    const MutexLock lock(mutex_);
    publish_marks();
    if (work_.in_flight_ns() > reported / 2) continue;
    reported = work_.in_flight_ns();
    if (waiting_ > 0) progress_.notify_all();
  }
  mutex_.lock();
  if (waiting_ > 0) progress_.notify_all();
}

// Work without an event after it counts as completed when its expected time has passed.
void LaunchGate::complete_unrecorded(MutexLock& lock) {
  const auto pause = std::clamp<std::uint64_t>(work_.in_flight_ns(), 20'000, kEventIntervalMostNs);
  if (worker_wake_.wait_for(lock, seconds(pause))) return;
  if (!spans_.empty()) return;
  const std::uint64_t now = os::monotonic_ns();
  lanes_.consume_unrecorded([this, now](std::uint64_t cost) {
    work_.complete({.cost_ns = cost, .used_ns = cost, .launched_ns = now, .ended_ns = now}, now);
  });
  publish_marks();
  if (waiting_ > 0) progress_.notify_all();
}

// Keeps the turn, with nothing in flight, as long as the process usually takes to launch again.
// True when it does, or waits to. The time is charged to the tenant where others wait for it.
bool LaunchGate::launches_again(unsigned word, MutexLock& lock) {
  const auto has_work = [this]() REGATTA_REQUIRES(mutex_) {
    return !spans_.empty() || work_.in_flight_ns() != 0 || waiting_ > 0;
  };
  const std::uint64_t begin = os::monotonic_ns();
  if (!gaps_.is_idle()) gaps_.end(work_.ended_ns() != 0 ? work_.ended_ns() : begin);
  const std::uint64_t keep = gaps_.keep_ns();
  std::uint64_t now = begin;
  while (!has_work() && !is_over(word) && turn_word() == word && now < begin + keep) {
    worker_wake_.wait_for(lock, seconds(std::min(kLookNs, begin + keep - now)));
    now = os::monotonic_ns();
  }
  if (has_work()) {
    if (gaps_.is_idle()) gaps_.begin(now);
    return true;
  }
  if (__atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE) != 0) work_.keep_until(now);
  return false;
}

// With nothing in flight: reports to the daemon, unless the process launches again.
void LaunchGate::report_idle(MutexLock& lock) {
  if (page_.activity() == REGATTA_WORKING) {
    const unsigned word = turn_word();
    const unsigned number = regatta_turn_number(word);
    if (waiting_ > 0) {
      if (is_over(word) && close_if_idle()) {
        set_activity(number, REGATTA_WAITING);
        notifier_.notify();
      }
      progress_.notify_all();
      worker_wake_.wait_for(lock, seconds(kEventIntervalMostNs));
      return;
    }
    if (launches_again(word, lock) || !close_if_idle()) return;
    set_activity(number, REGATTA_IDLE);
    notifier_.notify();
  }
  worker_wake_.wait_for(lock, seconds(kCheckNs));
}

}  // namespace regatta::sharing
