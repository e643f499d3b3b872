#include "regatta/runtime/comm/internal/shm/shm_group.h"

#include <algorithm>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/shm/slot_exchange.h"
#include "regatta/runtime/comm/internal/shm/varying.h"

namespace regatta::comm {
namespace {

// How long a thread sleeps before it looks round for a failure that nobody rang for.
constexpr Seconds kSleepAtMost{0.1};
// A caller that does not wait by then is computing: the helper takes over. Small operations need no
// help, the others find all they need in the slots.
constexpr Seconds kWaitExpectedWithin{50e-6};

// Of a counter that one thread at a time changes: cheaper than fetch_add.
void count(std::atomic<std::uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

unsigned stage_of(std::uint64_t round) {
  return static_cast<unsigned>(round % kStages);
}

// Whether nobody else holds the state any more, and all that they did with it has happened.
bool is_free(const std::shared_ptr<Handle::State>& state) {
  if (state == nullptr || state.use_count() > 1) return false;
  // Counting down acquires what the others released; use_count() does not.
  std::shared_ptr<Handle::State>(state).reset();
  return true;
}

// Made in its place: a move of an operation takes as long as the rest of a small call.
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
      own_(setup_.shared_segment->header()),
      sequence_(setup_.start.sequence),
      rounds_(setup_.start.rounds) {
  SegmentRegion& own = setup_.peers.own();
  own.filled.rounds.store(rounds_, std::memory_order_relaxed);
  own.combined.rounds.store(rounds_, std::memory_order_release);
}

ShmGroup::~ShmGroup() = default;

void ShmGroup::keep_log(std::shared_ptr<GroupLog> log) {
  const std::lock_guard drive(drive_);
  log_ = std::move(log);
  if (log_) unlogged_ = sequence_ - log_->submitted();
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
    const std::lock_guard lock(incoming_mutex_);
    state->finish(error_, os::monotonic_now());
    return state;
  }
  count(submitted_);
  if (start_now(call, state)) return state;
  {
    const std::lock_guard lock(incoming_mutex_);
    append(incoming_, call, state);
    has_incoming_.store(true);
  }
  helper_.call(Seconds{0});
  return state;
}

// Begins the operation on the caller's thread; false when others come first, or somebody drives.
bool ShmGroup::start_now(const Call& call, const std::shared_ptr<Handle::State>& state) {
  if (!setup_.drives_in_wait) return false;
  std::unique_lock drive(drive_, std::try_to_lock);
  if (!drive.owns_lock() || !queue_.empty() || has_incoming_.load()) return false;
  const bool is_small = fits_slot(call, setup_.peers.size());
  start(append(queue_, call, state));
  if (is_small) advance();
  // The helper would find the lock taken and go back to sleep.
  drive.unlock();
  if (!is_small) helper_.call(kWaitExpectedWithin);
  return true;
}

void ShmGroup::wait(Handle::State& state) {
  const auto is_done = [&] { return state.done.load(std::memory_order_acquire); };
  while (!is_done()) {
    std::unique_lock drive(drive_, std::defer_lock);
    if (!setup_.drives_in_wait || !drive.try_lock()) return state.done.wait(false);
    while (!is_done())
      if (!advance() && !is_done()) wait_for_peers();
    const bool is_left = !queue_.empty();
    drive.unlock();
    if (is_left || has_incoming_.load()) helper_.call(Seconds{0});
  }
}

void ShmGroup::poll() {
  if (!setup_.drives_in_wait) return;
  make_progress();
  // The helper may have looked while this thread held the lock.
  if (!is_idle()) helper_.call(kWaitExpectedWithin);
}

ShmGroup::Progress ShmGroup::make_progress() {
  if (is_idle()) return Progress::kIdle;
  const std::unique_lock drive(drive_, std::try_to_lock);
  if (!drive.owns_lock()) return Progress::kIdle;  // somebody waits for it
  const std::uint64_t before = progress();
  advance();
  if (progress() != before) return Progress::kMoved;
  return queue_.empty() ? Progress::kIdle : Progress::kBlocked;
}

void ShmGroup::finish(Seconds timeout) {
  const Seconds deadline = os::monotonic_now() + timeout;
  while (!is_idle()) {
    const std::lock_guard drive(drive_);
    if (advance() || is_idle()) continue;
    if (os::monotonic_now() > deadline)
      fail({Code::kConflict, name(setup_.peers.rank) +
                                 ": the communicator was closed with operations under way: wait "
                                 "for their handles first"});
    wait_for_peers();
  }
}

void ShmGroup::wait_for_peers() {
  const Operation& front = queue_.front();
  wait_for_event(own_, setup_.spin_policy, kSleepAtMost,
                 [&] { return have_reached(front.wait, front.wait_for) || has_failed_.load(); });
}

bool ShmGroup::is_ready() const {
  if (has_failed_.load() || has_incoming_.load()) return !is_idle();
  const std::unique_lock drive(drive_, std::try_to_lock);
  if (!drive.owns_lock() || queue_.empty()) return false;
  return have_reached(queue_.front().wait, queue_.front().wait_for);
}

void ShmGroup::take_incoming() {
  if (!has_incoming_.load()) return;
  const std::lock_guard lock(incoming_mutex_);
  for (Operation& operation : incoming_)
    queue_.push_back(std::move(operation));
  incoming_.clear();
  has_incoming_.store(false);
}

// Goes on with the operations in their order; false when the first one has to wait.
bool ShmGroup::advance() {
  take_incoming();
  while (!queue_.empty()) {
    if (has_failed_.load()) {
      end_all();
      return true;
    }
    Operation& front = queue_.front();
    if (front.sequence == 0) start(front);
    if (!advance(front)) return false;
    end(front);
    queue_.pop_front();
    take_incoming();
  }
  return true;
}

// Shows the call to the others.
void ShmGroup::start(Operation& operation) {
  const ShmPeers& peers = setup_.peers;
  Call& call = operation.call;
  settle_input(call, peers);
  operation.sequence = ++sequence_;
  operation.first_round = rounds_;
  const unsigned slot = slot_of(operation.sequence);
  operation.code = encode_call(call);
  const bool is_small = fits_slot(call, peers.size());
  BufferOffsets offsets;
  if (call.parts != nullptr) {
    const ShownParts shown = show_parts(call, peers, slot, *setup_.shared_segment);
    offsets = {shown.in, shown.stream_bytes};
  } else if (is_small) {
    write_slot(call, peers, slot);
  } else {
    offsets = show_buffers(call, peers, *setup_.shared_segment);
  }
  double took_s = -1;
  if (tuner_ != nullptr) {
    took_s = tuner_->took_s();
    if (!is_small && call.parts == nullptr) operation.chunk_bytes = tuner_->begin(call);
  }
  // All at once: whoever looks for the sequence takes the line away each time.
  CallAnnouncement& post = peers.own().entries[slot].post;
  post.call.store(operation.code, std::memory_order_release);
  post.bytes.store(call.bytes, std::memory_order_release);
  post.in = offsets.in;
  post.out = offsets.out;
  post.took_s = took_s;
  post.sequence.store(operation.sequence, std::memory_order_release);
  signal_event(peers.others);
  if (is_small) prefetch_slot(call, peers, slot_of(operation.sequence + 1));
  // The others wait for the post, not for what follows.
  operation.started = os::tick_now();
  operation.state->started_s.store(operation.started.value, std::memory_order_relaxed);
  if (log_) log_->begin(logged(operation));
  block(operation, Wait::kPosts, operation.sequence);
  if (call.parts != nullptr || is_small || offsets.are_shown()) return;
  // Nothing can be done on a private buffer but stage it: no need to see what the others show.
  operation.staged = plan_staged(call, peers.size(), stage_, operation.chunk_bytes);
  operation.point = Point::kRounds;
}

// True when the operation has ended.
bool ShmGroup::advance(Operation& operation) {
  const ShmPeers& peers = setup_.peers;
  if (operation.point == Point::kRounds) return advance_rounds(operation);
  if (operation.point == Point::kPosted) {
    if (block(operation, Wait::kPosts, operation.sequence)) return false;
    if (!check_same_call(operation)) return false;
    if (operation.call.parts != nullptr) return begin_varying(operation);
    if (fits_slot(operation.call, peers.size())) {
      reduce_slots(operation.call, peers, slot_of(operation.sequence));
      return true;
    }
    if (!choose_method(operation)) return advance_rounds(operation);
  }
  return !block(operation, Wait::kCombined, operation.first_round + 1);
}

// All ranks have shown their buffers: true when all can be reached, and the work is done in place.
bool ShmGroup::choose_method(Operation& operation) {
  const ShmPeers& peers = setup_.peers;
  const unsigned slot = slot_of(operation.sequence);
  std::vector<BufferOffsets> offsets;
  bool all_shown = true;
  for (const SegmentRegion* region : peers.regions) {
    const CallAnnouncement& post = region->entries[slot].post;
    offsets.push_back({post.in, post.out});
    all_shown = all_shown && offsets.back().are_shown();
  }
  if (!all_shown) {
    operation.staged = plan_staged(operation.call, peers.size(), stage_, operation.chunk_bytes);
    operation.point = Point::kRounds;
    return false;
  }
  operation.point = Point::kInPlace;
  rounds_ = operation.first_round + 1;
  publish(peers.own().filled, rounds_);
  run_in_place(operation.call, peers, offsets);
  publish(peers.own().combined, rounds_);
  return true;
}

// Stages the pieces of the current round and of the next one as far as the stages are free; false
// when not even the current one could be staged.
bool ShmGroup::fill_ahead(Operation& operation) {
  while (operation.filled < operation.staged.rounds && operation.filled <= operation.round + 1) {
    const std::uint64_t round = operation.first_round + operation.filled;
    // This stage was used two rounds ago.
    if (round > 0 && block(operation, Wait::kCombined, round - 1))
      return operation.filled > operation.round;
    fill(operation.staged, setup_.peers, operation.filled, stage_of(round));
    publish(setup_.peers.own().filled, round + 1);
    ++operation.filled;
  }
  return true;
}

bool ShmGroup::advance_rounds(Operation& operation) {
  rounds_ = operation.first_round + operation.staged.rounds;
  while (operation.round < operation.staged.rounds) {
    if (!run_round(operation)) return false;
    ++operation.round;
    operation.is_combined = false;
  }
  if (operation.staged.is_read_in_place && block(operation, Wait::kCombined, rounds_)) return false;
  if (operation.call.parts != nullptr) end_varying(operation.call, setup_.peers);
  return true;
}

// All ranks have shown their parts. True when the operation has ended.
bool ShmGroup::begin_varying(Operation& operation) {
  const ShmPeers& peers = setup_.peers;
  const unsigned slot = slot_of(operation.sequence);
  if (const PartMismatch found = find_mismatch(operation.call, peers, slot); found.peer >= 0) {
    fail({Code::kInvalidInput, name(found.peer) + " gives " + std::to_string(found.given) +
                                   " bytes where " + name(peers.rank) + " takes " +
                                   std::to_string(found.taken) + " in " +
                                   name_call(encode_call(operation.call), 0) +
                                   ": call it with the same count and type on both"});
    return false;
  }
  if (operation.call.kind == CallKind::kReduceScatterV &&
      operation.call.parts->arrivals == nullptr) {
    fail(lack_of_memory(name(peers.rank) + ": " + name_call(encode_call(operation.call), 0),
                        out_bytes(operation.call, peers.size())));
    return false;
  }
  operation.staged = plan_varying(operation.call, peers, slot, stage_);
  if (operation.staged.rounds == 0) {
    collect_parts(operation.staged, peers);
    end_varying(operation.call, peers);
    return true;
  }
  operation.point = Point::kRounds;
  operation.is_checked = true;
  return advance_rounds(operation);
}

// True when the round is over.
bool ShmGroup::run_round(Operation& operation) {
  const ShmPeers& peers = setup_.peers;
  const std::uint64_t round = operation.first_round + operation.round;
  if (!operation.is_combined) {
    if (!fill_ahead(operation)) return false;
    if (block(operation, Wait::kFilled, round + 1)) return false;
    if (!operation.is_checked && !check_same_call(operation)) return false;
    operation.is_checked = true;
    combine(operation.staged, peers, operation.round, stage_of(round));
    publish(peers.own().combined, round + 1);
    operation.is_combined = true;
    if (log_) log_->move(Lane::kCollective, moved_bytes(operation));
  }
  if (!operation.staged.has_take) return true;
  if (block(operation, Wait::kCombined, round + 1)) return false;
  take(operation.staged, peers, operation.round, stage_of(round));
  return true;
}

// What is through after the current round; where the parts vary, of what this rank gives.
std::uint64_t ShmGroup::moved_bytes(const Operation& operation) const {
  const std::uint64_t staged = (operation.round + 1) * operation.staged.piece_bytes;
  if (operation.call.parts == nullptr) return std::min<std::uint64_t>(operation.call.bytes, staged);
  const CallAnnouncement& post = setup_.peers.own().entries[slot_of(operation.sequence)].post;
  return operation.staged.is_read_in_place ? stream_bytes(post)
                                           : std::min(stream_bytes(post), staged);
}

// All ranks have entered: did they call the same?
bool ShmGroup::check_same_call(const Operation& operation) {
  const unsigned slot = slot_of(operation.sequence);
  const auto differs = [&](const SegmentRegion* region) {
    const CallAnnouncement& post = region->entries[slot].post;
    return post.sequence.load(std::memory_order_acquire) == operation.sequence &&
           (post.call.load(std::memory_order_relaxed) != operation.code ||
            post.bytes.load(std::memory_order_relaxed) != operation.call.bytes);
  };
  const auto& regions = setup_.peers.regions;
  if (std::none_of(regions.begin(), regions.end(), differs)) return true;
  std::vector<MemberReport> reports;
  reports.reserve(regions.size());
  for (int peer = 0; peer < setup_.peers.size(); ++peer)
    reports.push_back(report(peer, operation.sequence));
  fail({Code::kConflict, find_mismatch(reports, setup_.names)->text});
  return false;
}

LoggedCall ShmGroup::logged(const Operation& operation) const {
  return {.sequence = operation.sequence - unlogged_,
          .call = operation.code,
          .bytes = operation.call.bytes,
          .started = operation.started};
}

void ShmGroup::end(Operation& operation) {
  const Seconds now = std::max(os::tick_now(), operation.started);
  if (log_) log_->end(logged(operation), now);
  count(progress_);
  count(ended_);
  if (tuner_ != nullptr) learn(operation, now);
  operation.state->finish(std::nullopt, now);
}

// All posts of the operation are there: they say what the one before took.
void ShmGroup::learn(const Operation& operation, Seconds now) {
  const ShmPeers& peers = setup_.peers;
  if (tuner_->wants_times()) {
    std::vector<double> times_s;
    for (const SegmentRegion* region : peers.regions)
      times_s.push_back(region->entries[slot_of(operation.sequence)].post.took_s);
    tuner_->learn(times_s);
  }
  // The smallest operations take less time than a look at what they took.
  if (operation.point == Point::kPosted) return tuner_->end_small(operation.call);
  const double began_s = operation.state->started_s.load(std::memory_order_relaxed);
  tuner_->end(operation.call, now - Seconds{began_s}, operation.point == Point::kRounds);
}

std::vector<TuningChoice> ShmGroup::choices() const {
  return tuner_ == nullptr ? std::vector<TuningChoice>{} : tuner_->choices();
}

// A rank that is late may still read the buffers of these operations, which are their owner's again
// from now on: what it makes of them must not count, so it waits until it hears of the error.
void ShmGroup::end_all() {
  setup_.peers.own().combined.rounds.store(0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::optional<Error> error;
  {
    const std::lock_guard lock(incoming_mutex_);
    error = error_;
  }
  for (Operation& operation : queue_) {
    if (log_ && operation.sequence > 0)
      log_->end(logged(operation), os::monotonic_now(), error->code);
    count(ended_);
    operation.state->finish(error, os::monotonic_now());
  }
  queue_.clear();
}

void ShmGroup::fail(const Error& error) {
  {
    const std::lock_guard lock(incoming_mutex_);
    if (error_) return;
    error_ = error;
  }
  has_failed_.store(true);
  SharedSegmentHeader* own = &own_;
  signal_event({&own, 1});
  helper_.call(Seconds{0});
}

std::optional<Error> ShmGroup::error() const {
  if (!has_failed_.load()) return std::nullopt;
  const std::lock_guard lock(incoming_mutex_);
  return error_;
}

// True when the operation has to wait until all ranks' counters are there.
bool ShmGroup::block(Operation& operation, Wait wait, std::uint64_t target) {
  if (have_reached(wait, target)) return false;
  operation.wait = wait;
  operation.wait_for = target;
  const auto tell = [](auto& where, auto what) { where.store(what, std::memory_order_relaxed); };
  tell(blocked_.sequence, operation.sequence);
  tell(blocked_.call, operation.code);
  tell(blocked_.bytes, std::uint64_t{operation.call.bytes});
  tell(blocked_.wait, wait);
  tell(blocked_.target, target);
  return true;
}

std::uint64_t ShmGroup::counter_of(int peer, Wait wait, std::uint64_t target) const {
  const SegmentRegion& region = setup_.peers.of(peer);
  switch (wait) {
    case Wait::kPosts:
      return region.entries[slot_of(target)].post.sequence.load(std::memory_order_acquire);
    case Wait::kFilled:
      return region.filled.rounds.load(std::memory_order_acquire);
    case Wait::kCombined:
      return region.combined.rounds.load(std::memory_order_acquire);
  }
  return 0;
}

bool ShmGroup::have_reached(Wait wait, std::uint64_t target) const {
  for (int peer = 0; peer < setup_.peers.size(); ++peer)
    if (counter_of(peer, wait, target) < target) return false;
  return true;
}

// The others see the new count when they look, and are woken when they sleep.
void ShmGroup::publish(RoundCounter& counter, std::uint64_t rounds) {
  counter.rounds.store(rounds, std::memory_order_release);
  count(progress_);
  signal_event(setup_.peers.others);
}

}  // namespace regatta::comm
