#include "regatta/runtime/comm/internal/shm/shm_executor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/shm/futex_event.h"
#include "regatta/runtime/comm/internal/shm/in_place.h"
#include "regatta/runtime/comm/internal/shm/slot_exchange.h"
#include "regatta/runtime/comm/internal/shm/varying.h"

namespace regatta::comm {
namespace {

unsigned stage_of(std::uint64_t round) {
  return static_cast<unsigned>(round % kStages);
}

}  // namespace

ShmExecutor::ShmExecutor(const ShmPeers& peers, const SharedSegment& shared_segment,
                         const GroupStart& start, ShmGroupProgress& progress)
    : peers_(peers),
      shared_segment_(shared_segment),
      progress_(progress),
      sequence_(start.sequence),
      rounds_(start.rounds) {
  SegmentRegion& own = peers_.own();
  own.filled.rounds.store(rounds_, std::memory_order_relaxed);
  own.combined.rounds.store(rounds_, std::memory_order_release);
}

void ShmExecutor::set_log(std::shared_ptr<GroupLog> log) {
  log_ = std::move(log);
  if (log_) unlogged_ = sequence_ - log_->submitted();
}

CallAnnouncement& ShmExecutor::announcement(const ShmOperation& operation) const {
  return peers_.own().entries[slot_of(operation.sequence)].post;
}

void ShmExecutor::start(ShmOperation& operation) {
  Call& call = operation.call;
  settle_input(call, peers_);
  operation.sequence = ++sequence_;
  operation.first_round = rounds_;
  const unsigned slot = slot_of(operation.sequence);
  operation.code = encode_call(call);
  const bool is_small = fits_slot(call, peers_.size());
  BufferOffsets offsets;
  if (call.parts != nullptr) {
    const ShownParts shown = show_parts(call, peers_, slot, shared_segment_);
    offsets = {shown.in, shown.stream_bytes};
  } else if (is_small) {
    write_slot(call, peers_, slot);
  } else {
    offsets = show_buffers(call, peers_, shared_segment_);
  }
  double took_s = -1;
  if (tuner_ != nullptr) {
    took_s = tuner_->took_s();
    if (!is_small && call.parts == nullptr) operation.chunk_bytes = tuner_->begin(call);
  }
  // In one go: every rank that polls the sequence takes the cache line away.
  CallAnnouncement& post = announcement(operation);
  post.call.store(operation.code, std::memory_order_release);
  post.bytes.store(call.bytes, std::memory_order_release);
  post.in = offsets.in;
  post.out = offsets.out;
  post.took_s = took_s;
  post.sequence.store(operation.sequence, std::memory_order_release);
  signal_event(peers_.others);
  if (is_small) prefetch_slot(call, peers_, slot_of(operation.sequence + 1));
  // The other ranks wait for the announcement, not for what follows.
  operation.started = os::tick_now();
  operation.state->started_s.store(operation.started.value, std::memory_order_relaxed);
  if (log_) log_->begin(logged(operation));
  must_wait(operation, PeerCounter::kPosts, operation.sequence);
  if (call.parts != nullptr || is_small || offsets.are_shown()) return;
  // A private buffer can only be staged, whatever the other ranks announce.
  operation.staged = plan_staged(call, peers_.size(), stage_stores_, operation.chunk_bytes);
  operation.phase = ShmOperation::Phase::kRounds;
}

Result<bool> ShmExecutor::advance(ShmOperation& operation) {
  if (operation.phase == ShmOperation::Phase::kRounds) return advance_rounds(operation);
  if (operation.phase == ShmOperation::Phase::kAnnounced) {
    if (must_wait(operation, PeerCounter::kPosts, operation.sequence)) return false;
    REGATTA_TRY_DO(check_same_call(operation));
    if (operation.call.parts != nullptr) return begin_varying(operation);
    if (fits_slot(operation.call, peers_.size())) {
      reduce_slots(operation.call, peers_, slot_of(operation.sequence));
      return true;
    }
    if (!run_in_place_or_plan_rounds(operation)) return advance_rounds(operation);
  }
  return !must_wait(operation, PeerCounter::kCombined, operation.first_round + 1);
}

// All ranks have announced the call: true when every rank reaches all buffers, and this rank's work
// is done in place.
bool ShmExecutor::run_in_place_or_plan_rounds(ShmOperation& operation) {
  const unsigned slot = slot_of(operation.sequence);
  std::vector<BufferOffsets> offsets;
  bool all_shown = true;
  for (const SegmentRegion* region : peers_.regions) {
    const CallAnnouncement& post = region->entries[slot].post;
    offsets.push_back({post.in, post.out});
    all_shown = all_shown && offsets.back().are_shown();
  }
  if (!all_shown) {
    operation.staged =
        plan_staged(operation.call, peers_.size(), stage_stores_, operation.chunk_bytes);
    operation.phase = ShmOperation::Phase::kRounds;
    return false;
  }
  operation.phase = ShmOperation::Phase::kInPlace;
  rounds_ = operation.first_round + 1;
  publish(peers_.own().filled, rounds_);
  run_in_place(operation.call, peers_, offsets);
  publish(peers_.own().combined, rounds_);
  return true;
}

// Stages the pieces of the current round and of the next one as far as the stages are free; false
// when not even the current one could be staged.
bool ShmExecutor::fill_ahead(ShmOperation& operation) {
  while (operation.filled < operation.staged.rounds && operation.filled <= operation.round + 1) {
    const std::uint64_t round = operation.first_round + operation.filled;
    // The round before the previous one used this stage.
    if (round > 0 && must_wait(operation, PeerCounter::kCombined, round - 1))
      return operation.filled > operation.round;
    fill(operation.staged, peers_, operation.filled, stage_of(round));
    publish(peers_.own().filled, round + 1);
    ++operation.filled;
  }
  return true;
}

Result<bool> ShmExecutor::advance_rounds(ShmOperation& operation) {
  rounds_ = operation.first_round + operation.staged.rounds;
  while (operation.round < operation.staged.rounds) {
    REGATTA_TRY(is_over, run_round(operation));
    if (!is_over) return false;
    ++operation.round;
    operation.is_combined = false;
  }
  if (operation.staged.is_read_in_place && must_wait(operation, PeerCounter::kCombined, rounds_))
    return false;
  if (operation.call.parts != nullptr) end_varying(operation.call, peers_);
  return true;
}

// All ranks have announced their parts.
Result<bool> ShmExecutor::begin_varying(ShmOperation& operation) {
  const unsigned slot = slot_of(operation.sequence);
  const auto name = [&](int peer) { return at(peers_.names, peer); };
  if (const PartMismatch found = find_mismatch(operation.call, peers_, slot); found.peer >= 0)
    return Error{Code::kInvalidInput, name(found.peer) + " gives " + std::to_string(found.given) +
                                          " bytes where " + name(peers_.rank) + " takes " +
                                          std::to_string(found.taken) + " in " +
                                          name_call(operation.code, 0) +
                                          ": call it with the same count and type on both"};
  if (operation.call.kind == CallKind::kReduceScatterV && operation.call.parts->arrivals == nullptr)
    return lack_of_memory(name(peers_.rank) + ": " + name_call(operation.code, 0),
                          out_bytes(operation.call, peers_.size()));
  operation.staged = plan_varying(operation.call, peers_, slot, stage_stores_);
  if (operation.staged.rounds == 0) {
    collect_parts(operation.staged, peers_);
    end_varying(operation.call, peers_);
    return true;
  }
  operation.phase = ShmOperation::Phase::kRounds;
  operation.is_same_call = true;
  return advance_rounds(operation);
}

// True when the round is over.
Result<bool> ShmExecutor::run_round(ShmOperation& operation) {
  const std::uint64_t round = operation.first_round + operation.round;
  if (!operation.is_combined) {
    if (!fill_ahead(operation)) return false;
    if (must_wait(operation, PeerCounter::kFilled, round + 1)) return false;
    if (!operation.is_same_call) REGATTA_TRY_DO(check_same_call(operation));
    operation.is_same_call = true;
    combine(operation.staged, peers_, operation.round, stage_of(round));
    publish(peers_.own().combined, round + 1);
    operation.is_combined = true;
    if (log_) log_->move(Lane::kCollective, moved_bytes(operation));
  }
  if (!operation.staged.copies_results) return true;
  if (must_wait(operation, PeerCounter::kCombined, round + 1)) return false;
  copy_results(operation.staged, peers_, operation.round, stage_of(round));
  return true;
}

// Bytes of the call that have moved after the current round; where the parts vary, of those that
// this rank gives.
std::uint64_t ShmExecutor::moved_bytes(const ShmOperation& operation) const {
  const std::uint64_t staged = (operation.round + 1) * operation.staged.piece_bytes;
  if (operation.call.parts == nullptr) return std::min<std::uint64_t>(operation.call.bytes, staged);
  const CallAnnouncement& post = announcement(operation);
  return operation.staged.is_read_in_place ? stream_bytes(post)
                                           : std::min(stream_bytes(post), staged);
}

// All ranks have announced the operation.
Status ShmExecutor::check_same_call(const ShmOperation& operation) const {
  const unsigned slot = slot_of(operation.sequence);
  const auto differs = [&](const SegmentRegion* region) {
    const CallAnnouncement& post = region->entries[slot].post;
    return post.sequence.load(std::memory_order_acquire) == operation.sequence &&
           (post.call.load(std::memory_order_relaxed) != operation.code ||
            post.bytes.load(std::memory_order_relaxed) != operation.call.bytes);
  };
  if (std::none_of(peers_.regions.begin(), peers_.regions.end(), differs)) return {};
  std::vector<MemberReport> reports;
  for (int peer = 0; peer < peers_.size(); ++peer)
    reports.push_back(announced_report(peers_, peer, operation.sequence));
  return Error{Code::kConflict, find_mismatch(reports, peers_.names)->text};
}

LoggedCall ShmExecutor::logged(const ShmOperation& operation) const {
  return {.sequence = operation.sequence - unlogged_,
          .call = operation.code,
          .bytes = operation.call.bytes,
          .started = operation.started};
}

void ShmExecutor::end(ShmOperation& operation) {
  const Seconds now = std::max(os::tick_now(), operation.started);
  if (log_) log_->end(logged(operation), now);
  progress_.count_step();
  progress_.count_ended();
  if (tuner_ != nullptr) record_times(operation, now);
  operation.state->finish(std::nullopt, now);
}

void ShmExecutor::abort(ShmOperation& operation, const Error& error) {
  const Seconds now = os::monotonic_now();
  if (log_ && operation.sequence > 0) log_->end(logged(operation), now, error.code);
  progress_.count_ended();
  operation.state->finish(error, now);
}

// All ranks have announced the operation, with the time that the one before it took.
void ShmExecutor::record_times(const ShmOperation& operation, Seconds now) {
  if (tuner_->wants_times()) {
    std::vector<double> times_s;
    for (const SegmentRegion* region : peers_.regions)
      times_s.push_back(region->entries[slot_of(operation.sequence)].post.took_s);
    tuner_->learn(times_s);
  }
  // The smallest operations take less time than recording theirs.
  if (operation.phase == ShmOperation::Phase::kAnnounced) return tuner_->end_small(operation.call);
  const double began_s = operation.state->started_s.load(std::memory_order_relaxed);
  tuner_->end(operation.call, now - Seconds{began_s},
              operation.phase == ShmOperation::Phase::kRounds);
}

// True when the operation has to wait until this counter of all ranks is at least `value`.
bool ShmExecutor::must_wait(ShmOperation& operation, PeerCounter counter, std::uint64_t value) {
  const CounterTarget target{counter, value};
  if (have_reached(peers_, target)) return false;
  operation.target = target;
  progress_.block(operation.sequence, operation.code, operation.call.bytes, target);
  return true;
}

// The other ranks see the new count when they poll, and are woken when they sleep.
void ShmExecutor::publish(RoundCounter& counter, std::uint64_t rounds) {
  counter.rounds.store(rounds, std::memory_order_release);
  progress_.count_step();
  signal_event(peers_.others);
}

}  // namespace regatta::comm
