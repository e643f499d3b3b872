#include "regatta/gpu/sharing/internal/client/launch_gate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/memory.h"
#include "regatta/base/os/process.h"

namespace regatta::sharing {
namespace {

using std::chrono::nanoseconds;

// A process that launches again within this time keeps its turn.
constexpr std::uint64_t kGraceNs = 100'000;
// How often a process that is held back looks whether its daemon is still there.
constexpr std::uint64_t kLookNs = 100'000'000;
// How long a lost daemon is waited for.
constexpr std::uint64_t kLostNs = 1'000'000'000;
// What may be in flight without a daemon.
constexpr std::uint64_t kRoomWhenFreeNs = 20'000'000;
constexpr std::uint64_t kMarkLeastNs = 50'000;
constexpr std::uint64_t kMarkMostNs = 1'000'000;
// Of work at once, from which on it is that of several streams.
constexpr std::uint64_t kSeveral = BusyTime::kOne * 5 / 4;

}  // namespace

LaunchGate::LaunchGate(Client& client, int device, StreamEvents& events)
    : client_(client), device_(device), events_(events), turn_(client.tenant().turns[device]) {}

LaunchGate::~LaunchGate() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
    work_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

void LaunchGate::start_worker() {
  if (worker_.joinable()) return;
  worker_ = os::signal_masked_thread([this] { run_worker(); });
}

// Says what we do; the daemon reads it when it is notified, or when it closes a turn.
void LaunchGate::say(unsigned number, regatta_activity doing) {
  doing_ = doing;
  tell_used();
  __atomic_store_n(&client_.work(device_).word, regatta_work_word(number, doing), __ATOMIC_SEQ_CST);
}

void LaunchGate::tell_used() {
  __atomic_store_n(&client_.work(device_).used_ns, used_ns_.load(), __ATOMIC_RELAXED);
}

void LaunchGate::notify_daemon() {
  if (!event_connection_) return;
  const ClientRequest request{.type = RequestType::kNotify,
                              .device = static_cast<std::uint32_t>(device_)};
  const ssize_t sent =
      ::send(event_connection_.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  // Where there is no room, the daemon has not yet heard an earlier ring, and looks after that.
  if (sent < 0 && errno != EAGAIN) event_connection_.reset();
}

bool LaunchGate::is_daemon_lost() {
  char byte = 0;
  const ssize_t got = ::recv(event_connection_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

// Whether launches go on without a daemon.
bool LaunchGate::is_free() const {
  return lost_since_ns_ != 0 && client_.tenant().opens_when_lost != 0 &&
         os::monotonic_ns() - lost_since_ns_ >= kLostNs;
}

void LaunchGate::reconnect(Lock& lock) {
  const std::uint64_t now = os::monotonic_ns();
  event_connection_.reset();
  if (lost_since_ns_ == 0) lost_since_ns_ = now;
  if (is_reconnecting_ || now < next_try_ns_) return;
  is_reconnecting_ = true;
  lock.unlock();
  auto event_connection = client_.open_event_connection();
  lock.lock();
  is_reconnecting_ = false;
  next_try_ns_ = os::monotonic_ns() + kLookNs;
  if (!event_connection) return;
  event_connection_ = std::move(*event_connection);
  lost_since_ns_ = 0;
  // Numbers of turns begin anew.
  entered_ = ~0U;
  limit_ = 0;
  notify_daemon();
}

// Whether nothing is in flight, and no thread can launch without the mutex any more.
bool LaunchGate::is_drained() {
  limit_ = 0;
  return launched_.load() == completed_.load();
}

bool LaunchGate::is_over(unsigned word) const {
  if (is_free()) return false;
  if (!regatta_turn_is_open(word)) return true;
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  return deadline != 0 && os::monotonic_ns() >= deadline && regatta_turn_number(word) == entered_;
}

// When what is in flight ends, on a device that does nothing else.
std::uint64_t LaunchGate::expected_end() const {
  if (concurrency_ > kSeveral) {
    // Too early where streams wait for each other, which costs less than too late.
    std::uint64_t ends = 0;
    for (const Lane& lane : lanes_)
      ends = std::max(ends, lane.ends_ns);
    return ends;
  }
  const std::uint64_t origin = origin_ns_.load();
  return origin == kUnknown ? entered_at_ns_ + in_flight_ns() : origin + launched_.load();
}

// Nothing more is launched in this turn: the daemon may let the next one prepare.
void LaunchGate::say_end(std::uint64_t ends_ns) {
  regatta_work& work = client_.work(device_);
  __atomic_store_n(&work.ends_ns, ends_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&work.ends_number, entered_, __ATOMIC_RELEASE);
}

// Begins to launch, or goes on: false when too much is in flight, the deadline has come, or the
// turn was closed just now. The first launch of a turn is always allowed.
bool LaunchGate::enter(unsigned word, Lane& lane, std::uint64_t cost) {
  const unsigned number = regatta_turn_number(word);
  const std::uint64_t now = os::monotonic_ns();
  const bool was_idle = doing_ == REGATTA_IDLE;
  if (doing_ != REGATTA_WORKING || entered_ != number) {
    say(number, REGATTA_WORKING);
    if (turn_word() != word) return false;
    if (was_idle) notify_daemon();
  }
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  // Whose turn never came has no bound in its page.
  const bool free = is_free();
  std::uint64_t room = free ? kRoomWhenFreeNs : __atomic_load_n(&turn_.bound_ns, __ATOMIC_ACQUIRE);
  if (deadline != 0 && !free) room = std::min(room, deadline > now ? deadline - now : 0);
  room = room * concurrency_ / BusyTime::kOne;
  const std::uint64_t in_flight = in_flight_ns();
  const std::uint64_t in_lane = lane.in_flight_ns();
  if ((in_flight >= room && (in_flight != 0 || entered_ == number)) ||
      (in_lane >= lane_room(room) && in_lane != 0)) {
    const std::uint64_t ends = std::max(now, expected_end());
    if (entered_ == number && deadline != 0 && ends + kMarkLeastNs >= deadline) say_end(ends);
    return false;
  }
  tell_used();
  if (in_flight == 0) {
    origin_ns_ = kUnknown;
    period_at_ns_ = now;
    is_new_period_ = true;
  }
  if (entered_ != number) {
    entered_at_ns_ = now;
    __atomic_store_n(&client_.work(device_).entered_ns, now, __ATOMIC_RELAXED);
  }
  if (entered_ != number) ++turns_;
  entered_ = number;
  lane.turn = turns_;
  open_word_ = word;
  launched_ += cost;
  limit_ = completed_ + room;
  lane_limit_ = lane_room(room);
  event_interval_ns_ = std::clamp(room / 16, kMarkLeastNs, kMarkMostNs);
  work_.notify_one();
  return true;
}

// Streams in use have the same part of the room each: else the first one to come takes it all, and
// the device works off one stream where it could work off several at once.
std::uint64_t LaunchGate::lane_room(std::uint64_t room) const {
  const auto used = std::ranges::count_if(
      lanes_, [this](const Lane& lane) { return lane.turn != 0 && lane.turn + 1 >= turns_; });
  return used <= 1 ? kUnknown : room / static_cast<std::uint64_t>(used) + 1;
}

void LaunchGate::wait_for_turn(void* stream, std::uint64_t cost) {
  if (!client_.is_joined_process()) return;  // a child of fork(), which the driver does not serve
  Lane& lane = lane_of(stream);
  launched_ -= cost;
  Lock lock(mutex_);
  start_worker();
  ++waiting_;
  for (;;) {
    if (!event_connection_ || is_daemon_lost()) reconnect(lock);
    const unsigned word = turn_word();
    if (!is_over(word) && enter(word, lane, cost)) break;
    if (doing_ != REGATTA_WORKING || is_drained()) {
      hold_back(lock, word);
      continue;
    }
    // What ends last should be known exactly.
    if (lane.unrecorded_ns != 0) {
      if (const StreamEvents::Event end = events_.record(stream); end != nullptr)
        push({nullptr, end, lane.unrecorded_ns.exchange(0), nullptr, 0, false, &lane, stream});
    }
    work_.notify_one();
    progress_.wait_for(lock, nanoseconds(kLookNs));
  }
  --waiting_;
}

// Nothing of us is in flight: says that we want a turn, and waits for one.
void LaunchGate::hold_back(Lock& lock, unsigned word) {
  const unsigned number = regatta_turn_number(word);
  if (client_.work(device_).word != regatta_work_word(number, REGATTA_WAITING)) {
    say(number, REGATTA_WAITING);
    notify_daemon();
  }
  lock.unlock();
  os::futex_wait(&turn_.word, word, kLookNs);
  lock.lock();
}

void LaunchGate::push(TimedSpan span) {
  span.lane->recorded_ns += span.cost_ns;
  span.lane->turn = turns_;
  span.lane->ends_ns = std::max(span.lane->ends_ns, os::monotonic_ns()) + span.cost_ns;
  in_flight_.push_back(span);
}

void LaunchGate::record_events(Lane& lane, const Pass& pass, void* stream) {
  const StreamEvents::Event end = events_.record(stream);
  if (end == nullptr) {  // what it costs stays in the lane
    if (pass.begin != nullptr) events_.release(pass.begin);
    return;
  }
  const Lock lock(mutex_);
  push({pass.begin, end, lane.unrecorded_ns.exchange(0), pass.entry, pass.cost_ns,
        pass.may_have_waited, &lane, stream});
  work_.notify_one();
}

void LaunchGate::finish(std::uint64_t cost_ns, std::uint64_t used_ns) {
  if (cost_ns == 0) return;
  const std::uint64_t now = os::monotonic_ns();
  if (is_new_period_.exchange(false)) busy_.begin_period(period_at_ns_);
  used_ns_ += busy_.add(used_ns, now);
  concurrency_ = busy_.concurrency();
  completed_ += cost_ns;
  // Ends are seen late, by more or less: the earliest tells most. It counts less as time goes by,
  // for durations are not exact.
  const std::uint64_t origin = origin_ns_.load();
  const std::uint64_t seen = now - completed_.load();
  const std::uint64_t passed = now - seen_at_ns_;
  seen_at_ns_ = now;
  origin_ns_ = origin == kUnknown ? seen : std::min(seen, origin + passed / 64);
}

void LaunchGate::run_worker() {
  ::pthread_setname_np(::pthread_self(), "regatta-gate");
  ::prctl(PR_SET_TIMERSLACK, 1);
  events_.begin_worker();
  Lock lock(mutex_);
  while (!stops_) {
    if (!in_flight_.empty())
      finish_spans(lock);
    else if (in_flight_ns() != 0)
      finish_unrecorded(lock);
    else
      report(lock);
  }
}

// What was used until the mark: of a launch that was timed counts what it took, not what it was
// taken for.
std::uint64_t LaunchGate::learn(const TimedSpan& span) {
  if (span.begin == nullptr) return span.cost_ns;
  const auto took = events_.between_ns(span.begin, span.end);
  events_.release(span.begin);
  if (!took) return span.cost_ns;
  KernelDurations::learn(*span.entry, *took, span.may_have_waited);
  const std::uint64_t used =
      span.may_have_waited ? std::min(*took, span.entry->cost_ns.load()) : *took;
  return span.cost_ns - std::min(span.cost_ns, span.timed_cost_ns) + used;
}

void LaunchGate::finish_span(const TimedSpan& span) {
  finish(span.cost_ns, learn(span));
  events_.release(span.end);
  const Lock lock(mutex_);
  span.lane->recorded_ns -= span.cost_ns;
  span.lane->ends_ns = os::monotonic_ns() + span.lane->recorded_ns;
}

// Waits for half of what is in flight: threads that are held back go on before all has ended. Of
// several streams for all of it, in the order in which it ends, not in which it was launched.
void LaunchGate::finish_spans(Lock& lock) {
  const bool has_lanes = lane_limit_ != kUnknown;
  const std::size_t all = in_flight_.size();
  const auto count = static_cast<std::ptrdiff_t>(has_lanes ? all : (all + 1) / 2);
  std::vector<TimedSpan> spans(in_flight_.begin(), in_flight_.begin() + count);
  in_flight_.erase(in_flight_.begin(), in_flight_.begin() + count);
  lock.unlock();
  std::uint64_t told = in_flight_ns();
  while (!spans.empty()) {
    events_.wait(spans.front().end);
    finish_span(spans.front());
    spans.erase(spans.begin());
    if (has_lanes) finish_reached(spans);
    if (in_flight_ns() > told / 2) continue;
    told = in_flight_ns();
    const Lock told_lock(mutex_);
    if (waiting_ > 0) progress_.notify_all();
  }
  lock.lock();
  if (waiting_ > 0) progress_.notify_all();
}

// What other streams have done meanwhile: all of it, where the last mark of a stream is reached,
// else one mark, where the first is. To ask may cost as much as to launch.
void LaunchGate::finish_reached(std::vector<TimedSpan>& spans) {
  std::vector<void*> streams;
  for (const TimedSpan& span : spans) {
    if (std::ranges::find(streams, span.stream) == streams.end()) streams.push_back(span.stream);
  }
  for (void* const stream : streams) {
    const auto is_of_stream = [stream](const TimedSpan& span) { return span.stream == stream; };
    const auto first = std::ranges::find_if(spans, is_of_stream);
    const auto last = std::find_if(spans.rbegin(), spans.rend(), is_of_stream);
    if (events_.is_reached(last->end)) {
      std::erase_if(spans, [&](const TimedSpan& span) {
        if (span.stream == stream) finish_span(span);
        return span.stream == stream;
      });
    } else if (&*first != &*last && events_.is_reached(first->end)) {
      finish_span(*first);
      spans.erase(first);
    }
  }
}

// What has no mark after it has ended when the time is over that it takes.
void LaunchGate::finish_unrecorded(Lock& lock) {
  const auto pause = std::clamp<std::uint64_t>(in_flight_ns(), 20'000, kMarkMostNs);
  if (work_.wait_for(lock, nanoseconds(pause)) == std::cv_status::no_timeout) return;
  if (!in_flight_.empty()) return;
  for (Lane& lane : lanes_) {
    const std::uint64_t cost = lane.unrecorded_ns.exchange(0);
    finish(cost, cost);
  }
  if (waiting_ > 0) progress_.notify_all();
}

// Nothing is in flight: tells the daemon, unless launches go on.
void LaunchGate::report(Lock& lock) {
  if (doing_ == REGATTA_WORKING) {
    const unsigned word = turn_word();
    const unsigned number = regatta_turn_number(word);
    if (waiting_ > 0) {
      if (is_over(word) && is_drained()) {
        say(number, REGATTA_WAITING);
        notify_daemon();
      }
      progress_.notify_all();
      work_.wait_for(lock, nanoseconds(kMarkMostNs));
      return;
    }
    if (!is_over(word)) {
      lock.unlock();
      os::futex_wait(&turn_.word, word, kGraceNs);
      lock.lock();
      if (!in_flight_.empty() || in_flight_ns() != 0 || waiting_ > 0) return;
    }
    if (!is_drained()) return;
    say(number, REGATTA_IDLE);
    notify_daemon();
  }
  work_.wait_for(lock, nanoseconds(kLookNs));
}

}  // namespace regatta::sharing
