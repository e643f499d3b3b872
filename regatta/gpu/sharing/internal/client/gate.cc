#include "regatta/gpu/sharing/internal/client/gate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/futex.h"
#include "regatta/base/os/quiet_thread.h"

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

Gate::Gate(Client& client, int device, Marks& marks)
    : client_(client), device_(device), marks_(marks), turn_(client.tenant().turns[device]) {}

Gate::~Gate() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
    work_.notify_all();
  }
  if (agent_.joinable()) agent_.join();
}

void Gate::start_agent() {
  if (agent_.joinable()) return;
  agent_ = os::quiet_thread([this] { run_agent(); });
}

// Says what we do; the daemon reads it when the bell rings, or when it closes a turn.
void Gate::say(unsigned number, regatta_doing doing) {
  doing_ = doing;
  tell_used();
  __atomic_store_n(&client_.work(device_).word, regatta_work_word(number, doing), __ATOMIC_SEQ_CST);
}

void Gate::tell_used() {
  __atomic_store_n(&client_.work(device_).used_ns, used_ns_.load(), __ATOMIC_RELAXED);
}

void Gate::ring() {
  if (!bell_) return;
  const Request request{.ask = Ask::kRing, .device = static_cast<std::uint32_t>(device_)};
  const ssize_t sent = ::send(bell_.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  // Where there is no room, the daemon has not yet heard an earlier ring, and looks after that.
  if (sent < 0 && errno != EAGAIN) bell_.reset();
}

bool Gate::is_daemon_lost() {
  char byte = 0;
  const ssize_t got = ::recv(bell_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

// Whether launches go on without a daemon.
bool Gate::is_free() const {
  return lost_since_ns_ != 0 && client_.tenant().opens_when_lost != 0 &&
         os::monotonic_ns() - lost_since_ns_ >= kLostNs;
}

void Gate::reconnect(Lock& lock) {
  const std::uint64_t now = os::monotonic_ns();
  bell_.reset();
  if (lost_since_ns_ == 0) lost_since_ns_ = now;
  if (is_reconnecting_ || now < next_try_ns_) return;
  is_reconnecting_ = true;
  lock.unlock();
  auto bell = client_.open_bell();
  lock.lock();
  is_reconnecting_ = false;
  next_try_ns_ = os::monotonic_ns() + kLookNs;
  if (!bell) return;
  bell_ = std::move(*bell);
  lost_since_ns_ = 0;
  // Numbers of turns begin anew.
  entered_ = ~0U;
  limit_ = 0;
  ring();
}

// Whether nothing is in flight, and no thread can launch without the mutex any more.
bool Gate::is_drained() {
  limit_ = 0;
  return launched_.load() == completed_.load();
}

bool Gate::is_over(unsigned word) const {
  if (is_free()) return false;
  if (!regatta_turn_is_open(word)) return true;
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  return deadline != 0 && os::monotonic_ns() >= deadline && regatta_turn_number(word) == entered_;
}

// When what is in flight ends, on a device that does nothing else.
std::uint64_t Gate::expected_end() const {
  if (at_once_ > kSeveral) {
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
void Gate::say_end(std::uint64_t ends_ns) {
  regatta_work& work = client_.work(device_);
  __atomic_store_n(&work.ends_ns, ends_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&work.ends_number, entered_, __ATOMIC_RELEASE);
}

// Begins to launch, or goes on: false when too much is in flight, the deadline has come, or the
// turn was closed just now. The first launch of a turn is always allowed.
bool Gate::enter(unsigned word, Lane& lane, std::uint64_t cost) {
  const unsigned number = regatta_turn_number(word);
  const std::uint64_t now = os::monotonic_ns();
  const bool was_idle = doing_ == REGATTA_IDLE;
  if (doing_ != REGATTA_WORKS || entered_ != number) {
    say(number, REGATTA_WORKS);
    if (turn_word() != word) return false;
    if (was_idle) ring();
  }
  const std::uint64_t deadline = __atomic_load_n(&turn_.deadline_ns, __ATOMIC_ACQUIRE);
  // Whose turn never came has no bound in its page.
  const bool free = is_free();
  std::uint64_t room = free ? kRoomWhenFreeNs : __atomic_load_n(&turn_.bound_ns, __ATOMIC_ACQUIRE);
  if (deadline != 0 && !free) room = std::min(room, deadline > now ? deadline - now : 0);
  room = room * at_once_ / BusyTime::kOne;
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
  mark_every_ns_ = std::clamp(room / 16, kMarkLeastNs, kMarkMostNs);
  work_.notify_one();
  return true;
}

// Streams in use have the same part of the room each: else the first one to come takes it all, and
// the device works off one stream where it could work off several at once.
std::uint64_t Gate::lane_room(std::uint64_t room) const {
  const auto used = std::ranges::count_if(
      lanes_, [this](const Lane& lane) { return lane.turn != 0 && lane.turn + 1 >= turns_; });
  return used <= 1 ? kUnknown : room / static_cast<std::uint64_t>(used) + 1;
}

void Gate::wait_for_turn(void* stream, std::uint64_t cost) {
  if (!client_.is_here()) return;  // a child of fork(), which the driver does not serve
  Lane& lane = lane_of(stream);
  launched_ -= cost;
  Lock lock(mutex_);
  start_agent();
  ++waiting_;
  for (;;) {
    if (!bell_ || is_daemon_lost()) reconnect(lock);
    const unsigned word = turn_word();
    if (!is_over(word) && enter(word, lane, cost)) break;
    if (doing_ != REGATTA_WORKS || is_drained()) {
      hold_back(lock, word);
      continue;
    }
    // What ends last should be known exactly.
    if (lane.unmarked_ns != 0) {
      if (const Marks::Mark end = marks_.record(stream); end != nullptr)
        push({nullptr, end, lane.unmarked_ns.exchange(0), nullptr, 0, false, &lane, stream});
    }
    work_.notify_one();
    progress_.wait_for(lock, nanoseconds(kLookNs));
  }
  --waiting_;
}

// Nothing of us is in flight: says that we want a turn, and waits for one.
void Gate::hold_back(Lock& lock, unsigned word) {
  const unsigned number = regatta_turn_number(word);
  if (client_.work(device_).word != regatta_work_word(number, REGATTA_WANTS)) {
    say(number, REGATTA_WANTS);
    ring();
  }
  lock.unlock();
  os::futex_wait(&turn_.word, word, kLookNs);
  lock.lock();
}

void Gate::push(Mark mark) {
  mark.lane->marked_ns += mark.cost_ns;
  mark.lane->turn = turns_;
  mark.lane->ends_ns = std::max(mark.lane->ends_ns, os::monotonic_ns()) + mark.cost_ns;
  in_flight_.push_back(mark);
}

void Gate::mark(Lane& lane, const Pass& pass, void* stream) {
  const Marks::Mark end = marks_.record(stream);
  if (end == nullptr) {  // what it costs stays in the lane
    if (pass.begin != nullptr) marks_.release(pass.begin);
    return;
  }
  const Lock lock(mutex_);
  push({pass.begin, end, lane.unmarked_ns.exchange(0), pass.entry, pass.cost_ns,
        pass.may_have_waited, &lane, stream});
  work_.notify_one();
}

void Gate::finish(std::uint64_t cost_ns, std::uint64_t used_ns) {
  if (cost_ns == 0) return;
  const std::uint64_t now = os::monotonic_ns();
  if (is_new_period_.exchange(false)) busy_.begin_period(period_at_ns_);
  used_ns_ += busy_.add(used_ns, now);
  at_once_ = busy_.at_once();
  completed_ += cost_ns;
  // Ends are seen late, by more or less: the earliest tells most. It counts less as time goes by,
  // for durations are not exact.
  const std::uint64_t origin = origin_ns_.load();
  const std::uint64_t seen = now - completed_.load();
  const std::uint64_t passed = now - seen_at_ns_;
  seen_at_ns_ = now;
  origin_ns_ = origin == kUnknown ? seen : std::min(seen, origin + passed / 64);
}

void Gate::run_agent() {
  ::pthread_setname_np(::pthread_self(), "regatta-gate");
  ::prctl(PR_SET_TIMERSLACK, 1);
  marks_.begin_agent();
  Lock lock(mutex_);
  while (!stops_) {
    if (!in_flight_.empty())
      finish_marks(lock);
    else if (in_flight_ns() != 0)
      finish_unmarked(lock);
    else
      report(lock);
  }
}

// What was used until the mark: of a launch that was timed counts what it took, not what it was
// taken for.
std::uint64_t Gate::learn(const Mark& mark) {
  if (mark.begin == nullptr) return mark.cost_ns;
  const auto took = marks_.between_ns(mark.begin, mark.end);
  marks_.release(mark.begin);
  if (!took) return mark.cost_ns;
  Durations::learn(*mark.entry, *took, mark.may_have_waited);
  const std::uint64_t used =
      mark.may_have_waited ? std::min(*took, mark.entry->cost_ns.load()) : *took;
  return mark.cost_ns - std::min(mark.cost_ns, mark.timed_cost_ns) + used;
}

void Gate::finish_mark(const Mark& mark) {
  finish(mark.cost_ns, learn(mark));
  marks_.release(mark.end);
  const Lock lock(mutex_);
  mark.lane->marked_ns -= mark.cost_ns;
  mark.lane->ends_ns = os::monotonic_ns() + mark.lane->marked_ns;
}

// Waits for half of what is in flight: threads that are held back go on before all has ended. Of
// several streams for all of it, in the order in which it ends, not in which it was launched.
void Gate::finish_marks(Lock& lock) {
  const bool has_lanes = lane_limit_ != kUnknown;
  const std::size_t all = in_flight_.size();
  const auto count = static_cast<std::ptrdiff_t>(has_lanes ? all : (all + 1) / 2);
  std::vector<Mark> marks(in_flight_.begin(), in_flight_.begin() + count);
  in_flight_.erase(in_flight_.begin(), in_flight_.begin() + count);
  lock.unlock();
  std::uint64_t told = in_flight_ns();
  while (!marks.empty()) {
    marks_.wait(marks.front().end);
    finish_mark(marks.front());
    marks.erase(marks.begin());
    if (has_lanes) finish_reached(marks);
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
void Gate::finish_reached(std::vector<Mark>& marks) {
  std::vector<void*> streams;
  for (const Mark& mark : marks) {
    if (std::ranges::find(streams, mark.stream) == streams.end()) streams.push_back(mark.stream);
  }
  for (void* const stream : streams) {
    const auto is_of_stream = [stream](const Mark& mark) { return mark.stream == stream; };
    const auto first = std::ranges::find_if(marks, is_of_stream);
    const auto last = std::find_if(marks.rbegin(), marks.rend(), is_of_stream);
    if (marks_.is_reached(last->end)) {
      std::erase_if(marks, [&](const Mark& mark) {
        if (mark.stream == stream) finish_mark(mark);
        return mark.stream == stream;
      });
    } else if (&*first != &*last && marks_.is_reached(first->end)) {
      finish_mark(*first);
      marks.erase(first);
    }
  }
}

// What has no mark after it has ended when the time is over that it takes.
void Gate::finish_unmarked(Lock& lock) {
  const auto pause = std::clamp<std::uint64_t>(in_flight_ns(), 20'000, kMarkMostNs);
  if (work_.wait_for(lock, nanoseconds(pause)) == std::cv_status::no_timeout) return;
  if (!in_flight_.empty()) return;
  for (Lane& lane : lanes_) {
    const std::uint64_t cost = lane.unmarked_ns.exchange(0);
    finish(cost, cost);
  }
  if (waiting_ > 0) progress_.notify_all();
}

// Nothing is in flight: tells the daemon, unless launches go on.
void Gate::report(Lock& lock) {
  if (doing_ == REGATTA_WORKS) {
    const unsigned word = turn_word();
    const unsigned number = regatta_turn_number(word);
    if (waiting_ > 0) {
      if (is_over(word) && is_drained()) {
        say(number, REGATTA_WANTS);
        ring();
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
    ring();
  }
  work_.wait_for(lock, nanoseconds(kLookNs));
}

}  // namespace regatta::sharing
