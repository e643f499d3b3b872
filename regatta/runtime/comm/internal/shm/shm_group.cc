#include "regatta/runtime/comm/internal/shm/shm_group.h"

#include <string>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/shm/slot_exchange.h"

namespace regatta::comm {
namespace {

// How long a thread sleeps before it checks for a failure that was not signalled.
constexpr Seconds kSleepAtMost{0.1};
// A caller that does not wait by then is computing: the helper takes over. Small operations need no
// help: the other ranks find all they need in the slots.
constexpr Seconds kWaitExpectedWithin{50e-6};

// Whether no other thread holds the state any more, and all that they did with it has happened.
bool is_free(const std::shared_ptr<Handle::State>& state) {
  if (state == nullptr || state.use_count() > 1) return false;
  // Counting down acquires what the others released; use_count() does not.
  std::shared_ptr<Handle::State>(state).reset();
  return true;
}

// Constructed in place: moving an operation takes as long as the rest of a small call.
template <typename Operations>
auto& append(Operations& operations, const Call& call,
             const std::shared_ptr<Handle::State>& state) {
  auto& operation = operations.emplace_back();
  operation.call = call;
  operation.state = state;
  return operation;
}

}  // namespace

ShmGroup::ShmGroup(ShmGroupSetup setup, HelperWaker& helper)
    : setup_(std::move(setup)),
      helper_(helper),
      progress_(setup_.peers, setup_.id),
      executor_(setup_.peers, *setup_.shared_segment, setup_.start, progress_) {}

ShmGroup::~ShmGroup() = default;

void ShmGroup::set_stage_stores(StoreMode store) {
  const MutexLock drive(drive_);
  executor_.set_stage_stores(store);
}

void ShmGroup::tune(const SharedTuner::Setup& setup) {
  tuner_ = std::make_unique<SharedTuner>(setup);
  const MutexLock drive(drive_);
  executor_.set_tuner(tuner_.get());
}

void ShmGroup::set_log(std::shared_ptr<GroupLog> log) {
  const MutexLock drive(drive_);
  executor_.set_log(std::move(log));
}

std::shared_ptr<Handle::State> ShmGroup::submit(const Call& call) {
  if (!is_free(spare_)) {
    spare_ = std::make_shared<Handle::State>();
    spare_->driver = this;
  } else {
    spare_->done.store(false, std::memory_order_relaxed);
    spare_->error.reset();
  }
  std::shared_ptr<Handle::State> state = spare_;
  if (has_failed_.load()) {
    state->finish(error(), os::monotonic_now());
    return state;
  }
  progress_.count_submitted();
  if (start_now(call, state)) return state;
  {
    const MutexLock lock(incoming_mutex_);
    append(incoming_, call, state);
    has_incoming_.store(true);
  }
  helper_.call(Seconds{0});
  return state;
}

// Begins the operation on the calling thread; false when others come first or another thread
// drives.
bool ShmGroup::start_now(const Call& call, const std::shared_ptr<Handle::State>& state) {
  if (!setup_.drives_in_wait || !drive_.try_lock()) return false;
  const bool is_first = queue_.empty() && !has_incoming_.load();
  const bool is_small = fits_slot(call, setup_.peers.size());
  if (is_first) start_first(call, state, is_small);
  // Before the helper is woken: it would find the lock taken and go back to sleep.
  drive_.unlock();
  if (is_first && !is_small) helper_.call(kWaitExpectedWithin);
  return is_first;
}

void ShmGroup::start_first(const Call& call, const std::shared_ptr<Handle::State>& state,
                           bool is_small) {
  executor_.start(append(queue_, call, state));
  if (is_small) advance();
}

void ShmGroup::wait(Handle::State& state) {
  while (!state.done.load(std::memory_order_acquire)) {
    if (!setup_.drives_in_wait || !drive_.try_lock()) return state.done.wait(false);
    drive_until_done(state);
    const bool is_left = !queue_.empty();
    drive_.unlock();
    if (is_left || has_incoming_.load()) helper_.call(Seconds{0});
  }
}

void ShmGroup::drive_until_done(const Handle::State& state) {
  const auto is_done = [&] { return state.done.load(std::memory_order_acquire); };
  while (!is_done())
    if (!advance() && !is_done()) wait_for_peers();
}

void ShmGroup::poll() {
  if (!setup_.drives_in_wait) return;
  make_progress();
  // The helper may have tried while this thread held the lock.
  if (!progress_.is_idle()) helper_.call(kWaitExpectedWithin);
}

ShmGroup::Progress ShmGroup::make_progress() {
  // A thread that holds the lock waits for the group and drives it.
  if (progress_.is_idle() || !drive_.try_lock()) return Progress::kIdle;
  const std::uint64_t before = progress_.steps();
  advance();
  const bool is_blocked = !queue_.empty();
  const bool has_moved = progress_.steps() != before;
  drive_.unlock();
  if (has_moved) return Progress::kMoved;
  return is_blocked ? Progress::kBlocked : Progress::kIdle;
}

void ShmGroup::finish(Seconds timeout) {
  const Seconds deadline = os::monotonic_now() + timeout;
  while (!progress_.is_idle()) {
    const MutexLock drive(drive_);
    if (advance() || progress_.is_idle()) continue;
    if (os::monotonic_now() > deadline)
      fail({Code::kConflict, at(setup_.peers.names, setup_.peers.rank) +
                                 ": the communicator was closed with operations under way: wait "
                                 "for their handles first"});
    wait_for_peers();
  }
}

// Returns when the first operation can continue, or when the group has failed.
void ShmGroup::wait_for_peers() {
  const CounterTarget& target = queue_.front().target;
  wait_for_event(setup_.shared_segment->header(), setup_.spin_policy, kSleepAtMost,
                 [&] { return have_reached(setup_.peers, target) || has_failed_.load(); });
}

bool ShmGroup::is_ready() const {
  if (has_failed_.load() || has_incoming_.load()) return !progress_.is_idle();
  if (!drive_.try_lock()) return false;
  const bool is_ready = !queue_.empty() && have_reached(setup_.peers, queue_.front().target);
  drive_.unlock();
  return is_ready;
}

void ShmGroup::accept_incoming() {
  if (!has_incoming_.load()) return;
  const MutexLock lock(incoming_mutex_);
  for (ShmOperation& operation : incoming_)
    queue_.push_back(std::move(operation));
  incoming_.clear();
  has_incoming_.store(false);
}

// Continues the operations in their order; false when the first one has to wait.
bool ShmGroup::advance() {
  accept_incoming();
  while (!queue_.empty()) {
    if (has_failed_.load()) {
      abort_all();
      return true;
    }
    ShmOperation& front = queue_.front();
    if (front.sequence == 0) executor_.start(front);
    const Result<bool> has_ended = executor_.advance(front);
    if (!has_ended) {
      fail(has_ended.error());
      continue;
    }
    if (!*has_ended) return false;
    executor_.end(front);
    queue_.pop_front();
    accept_incoming();
  }
  return true;
}

// A rank that is late may still read the buffers of these operations, which belong to their callers
// again from now on. Its results must not count: without this rank's counter it waits until it
// learns of the error.
void ShmGroup::abort_all() {
  setup_.peers.own().combined.rounds.store(0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::optional<Error> error = this->error();
  for (ShmOperation& operation : queue_)
    executor_.abort(operation, *error);
  queue_.clear();
}

std::vector<TuningChoice> ShmGroup::choices() const {
  return tuner_ == nullptr ? std::vector<TuningChoice>{} : tuner_->choices();
}

GroupStart ShmGroup::reached() const {
  const MutexLock drive(drive_);
  return executor_.reached();
}

void ShmGroup::fail(const Error& error) {
  {
    const MutexLock lock(incoming_mutex_);
    if (error_) return;
    error_ = error;
  }
  has_failed_.store(true);
  SharedSegmentHeader* own = &setup_.shared_segment->header();
  signal_event({&own, 1});
  helper_.call(Seconds{0});
}

std::optional<Error> ShmGroup::error() const {
  if (!has_failed_.load()) return std::nullopt;
  const MutexLock lock(incoming_mutex_);
  return error_;
}

}  // namespace regatta::comm
