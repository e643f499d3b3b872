// Operations that stand still: who is missing? A rank asks the others how far they are; their
// progress threads answer even when their callers hang. Inside a server the shared segments and the
// state of the processes tell the same without an answer. The verdict is diagnose_stall()'s
// (internal/watch/verdict.h).
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/world.h"

namespace regatta::comm {
namespace {

// An operation without progress for this long is looked into.
constexpr Seconds kSuspectTime{0.6};
// How long the answers may take.
constexpr Seconds kAnswerTime{0.6};
// Where two ranks differ and others have not called it: how long to wait for who is the odd one.
constexpr Seconds kVoteTime{0.5};
// How long before the progress timeout the others are asked at the latest.
constexpr Seconds kAskingTime{2.0};
// How much longer than that timeout the verdict waits for ranks that do not answer, when nobody
// else is at fault.
constexpr Seconds kSilenceTime{1.0};
// Ranks that are asked in a large communicator. Each asks others, so all are asked by somebody.
constexpr std::size_t kAskedMost = 64;
// Queries about sends and receives: what the asking rank does.
constexpr std::uint32_t kAskerSends = 0;
constexpr std::uint32_t kAskerReceives = 1;
// And about collectives that go through shared memory, which count on their own.
constexpr std::uint32_t kAskerShares = 2;

bool is_send(const Operation& operation) {
  return operation.schedule.steps().front().kind == StepKind::kSend;
}

// The name of an operation in queries.
MessageKey query_key(const StalledCall& stalled) {
  const bool receives = !stalled.is_collective && (stalled.call & 1U) != 0;
  return {stalled.communicator, static_cast<std::uint32_t>(stalled.sequence),
          stalled.is_shared ? kAskerShares
          : receives        ? kAskerReceives
                            : kAskerSends};
}

std::uint32_t sequence_in_queries(const Operation& operation) {
  return operation.is_collective ? operation.call_number()
                                 : operation.transfers.front().key().operation;
}

StalledCall stalled_call(const Operation& operation, int own_rank) {
  StalledCall stalled{.communicator = operation.group->id,
                      .sequence = sequence_in_queries(operation),
                      .is_collective = operation.is_collective,
                      .call = call_in_world(operation.code, operation.group->members),
                      .bytes = operation.bytes,
                      .since = operation.progressed_at,
                      .waited_for = waited_for(operation)};
  const std::vector<int>& all =
      operation.is_collective ? operation.group->members : stalled.waited_for;
  const std::size_t stride = (all.size() + kAskedMost - 1) / kAskedMost;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_waited_for = std::find(stalled.waited_for.begin(), stalled.waited_for.end(),
                                         all[i]) != stalled.waited_for.end();
    const bool is_turn = (i + static_cast<std::size_t>(own_rank)) % stride == 0;
    if (all[i] != own_rank && (is_turn || is_waited_for)) stalled.seen.push_back({.rank = all[i]});
  }
  return stalled;
}

}  // namespace

void World::remember(const std::shared_ptr<CommunicatorState>& group) {
  std::erase_if(known_groups_, [](const auto& known) { return known.expired(); });
  known_groups_.push_back(group);
}

Seconds World::asking_time() const {
  return std::min(progress_timeout_ / 2, kAskingTime);
}

// How long an operation may stand still before the others are asked.
Seconds World::stall_timeout() const {
  const bool can_time_out = progress_timeout_.value > 0;
  if (!watch_) return progress_timeout_ - asking_time();
  return can_time_out ? std::min(kSuspectTime, progress_timeout_ / 2) : kSuspectTime;
}

void World::check_stalls(Seconds now) {
  if (failed_) return;
  if (!watch_ && progress_timeout_.value <= 0 && matcher_.contradicted() == nullptr) return;
  std::vector<StallDiagnosis> still_open;
  for (StalledCall& stalled : find_stalled(now, stall_timeout())) {
    const auto known = std::find_if(
        stall_diagnoses_.begin(), stall_diagnoses_.end(), [&](const StallDiagnosis& one) {
          return is_same(one.stalled, stalled) && one.stalled.seen.size() == stalled.seen.size();
        });
    const bool stands = known != stall_diagnoses_.end() && (known->stalled.since == stalled.since ||
                                                            matcher_.contradicted() != nullptr);
    if (stands) {
      known->stalled = std::move(stalled);
      still_open.push_back(std::move(*known));
      stall_diagnoses_.erase(known);
    } else {
      still_open.push_back({.stalled = std::move(stalled)});
    }
  }
  for (const StallDiagnosis& ended : std::exchange(stall_diagnoses_, std::move(still_open)))
    note_end(ended, now);
  for (std::size_t i = 0; i < stall_diagnoses_.size() && !failed_; ++i)
    decide(stall_diagnoses_[i], now);
}

std::vector<StalledCall> World::find_stalled(Seconds now, Seconds still) {
  std::vector<StalledCall> all;
  if (shm_ != nullptr) all = shm_->find_stalled(now, still);
  for (const auto& group : executor_.groups())
    for (const auto& operation : group->active)
      if (now - operation->progressed_at >= still || operation.get() == matcher_.contradicted())
        all.push_back(stalled_call(*operation, rank_));
  return all;
}

void World::ask_peers(StallDiagnosis& diagnosis, Seconds now) {
  diagnosis.asked_at = now;
  ++diagnosis.rounds;
  diagnosis.answers.assign(diagnosis.stalled.seen.size(), std::nullopt);
  const PacketHeader query{.kind = PacketKind::kQuery, .key = query_key(diagnosis.stalled)};
  for (const MemberReport& member : diagnosis.stalled.seen)
    links_[static_cast<std::size_t>(member.rank)]->post_control(query, {});
}

// Where this rank is, seen from the operation that `asker` names.
MemberReport World::member_report(int asker, const MessageKey& key) {
  MemberReport report{.state = MemberState::kNotCalled};
  const auto shared = shm_ ? shm_->member_report(key.group, key.operation) : std::nullopt;
  if (key.step == kAskerShares) return shared.value_or(report);
  for (const auto& group : executor_.groups()) {
    if (group->id != key.group) continue;
    const auto is_meant = [&](const Operation& one) {
      if (one.is_collective) return one.call_number() == key.operation;
      const Step& step = one.schedule.steps().front();
      return group->members[static_cast<std::size_t>(step.peer)] == asker &&
             is_send(one) == (key.step == kAskerReceives) &&
             (one.number | kPointToPoint) == key.operation;
    };
    for (const auto& operation : group->active) {
      if (is_meant(*operation))
        return {.state = MemberState::kEntered,
                .knows_call = operation->is_collective,
                .call = call_in_world(operation->code, group->members),
                .bytes = operation->bytes};
      if (operation->is_collective) report.state = MemberState::kBehind;
    }
  }
  for (const auto& weak : known_groups_) {
    const auto group = weak.lock();
    if (!group || group->id != key.group || key.operation >= group->collectives_started) continue;
    report = {.state = MemberState::kCompleted};
    // Where collectives go through shared memory the log is theirs.
    const auto past =
        group->log && !shared ? group->log->find(std::uint64_t{key.operation} + 1) : std::nullopt;
    if (!past) continue;
    report.knows_call = true;
    report.call = call_in_world(past->call, group->members);
    report.bytes = past->bytes;
  }
  return report;
}

// Another operation of this rank that is under way.
void World::tell_running(MemberReport& report) {
  if (shm_ != nullptr && shm_->tell_running(report)) return;
  for (const auto& group : executor_.groups()) {
    if (group->active.empty()) continue;
    report.is_elsewhere = true;
    report.other_call = call_in_world(group->active.front()->code, group->members);
    report.other_bytes = group->active.front()->bytes;
    return;
  }
}

void World::reply_to_query(int asker, const MessageKey& key) {
  ProgressReply answer{.report = member_report(asker, key)};
  if (answer.report.state == MemberState::kNotCalled) tell_running(answer.report);
  answer.busiest = busiest_link();
  refresh_peers();
  const auto held = std::find(is_held_.begin(), is_held_.end(), true);
  if (held != is_held_.end()) answer.stopped_rank = static_cast<int>(held - is_held_.begin());
  links_[static_cast<std::size_t>(asker)]->post_control({.kind = PacketKind::kReply, .key = key},
                                                        encode_progress_reply(answer));
}

void World::note_reply(int peer_rank, const MessageKey& key, std::string_view text) {
  const auto answer = decode_progress_reply(text);
  if (!answer || failed_) return;
  note_link_utilization(peer_rank, answer->busiest);
  for (StallDiagnosis& diagnosis : stall_diagnoses_)
    if (query_key(diagnosis.stalled) == key)
      for (std::size_t i = 0; i < diagnosis.answers.size(); ++i)
        if (diagnosis.stalled.seen[i].rank == peer_rank) diagnosis.answers[i] = answer;
  // Whoever is at fault is known now, perhaps.
  if (matcher_.contradicted() != nullptr) check_stalls(now_);
}

// Looks at the processes of this server, now and then.
void World::refresh_peers() {
  if (now_ - held_at_ < kStallDiagnosisTick) return;
  held_at_ = now_;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] <= 0) continue;
    const auto process = os::read_process(pids_[rank]);
    is_held_[rank] = process && (process->state == 'T' || process->state == 't');
  }
}

// By rank: its process is stopped, as this rank or one that answered sees it.
std::vector<bool> World::held_ranks(const StallDiagnosis& diagnosis) const {
  std::vector<bool> is_held = is_held_;
  for (const auto& answer : diagnosis.answers)
    if (answer && answer->stopped_rank >= 0 && answer->stopped_rank < size())
      is_held[static_cast<std::size_t>(answer->stopped_rank)] = true;
  return is_held;
}

// Every rank has answered, or is known not to, or has had its time.
bool World::is_due(const StallDiagnosis& diagnosis, Seconds now) const {
  if (now - diagnosis.asked_at >= kAnswerTime) return true;
  const std::vector<bool> is_held = held_ranks(diagnosis);
  for (std::size_t i = 0; i < diagnosis.answers.size(); ++i)
    if (!diagnosis.answers[i] && !is_held[static_cast<std::size_t>(diagnosis.stalled.seen[i].rank)])
      return false;
  return true;
}

Verdict World::judge_stall(const StallDiagnosis& diagnosis) const {
  const StalledCall& stalled = diagnosis.stalled;
  StalledOperation operation{.rank = rank_,
                             .call = stalled.call,
                             .bytes = stalled.bytes,
                             .members = {},
                             .waited_for = stalled.waited_for};
  const std::vector<bool> is_held = held_ranks(diagnosis);
  for (std::size_t i = 0; i < stalled.seen.size(); ++i) {
    MemberReport report = stalled.seen[i];
    const bool segment_knows = stalled.is_shared && report.state != MemberState::kNotCalled;
    if (diagnosis.answers[i] && !segment_knows) {
      report = diagnosis.answers[i]->report;
      report.rank = stalled.seen[i].rank;
    }
    report.is_stopped = is_held[static_cast<std::size_t>(report.rank)];
    operation.members.push_back(report);
  }
  if (stalled.is_collective)
    operation.members.push_back({.rank = rank_,
                                 .state = MemberState::kEntered,
                                 .knows_call = true,
                                 .call = stalled.call,
                                 .bytes = stalled.bytes});
  return diagnose_stall(operation, names_);
}

void World::decide(StallDiagnosis& diagnosis, Seconds now) {
  diagnosis.is_contradicted |= matcher_.contradicted() != nullptr &&
                               diagnosis.stalled.communicator == matcher_.contradicted()->group->id;
  const Seconds since = diagnosis.stalled.since;
  const bool can_time_out = progress_timeout_.value > 0;
  const Seconds ask_by = since + progress_timeout_ - asking_time();
  // Less and less often, but once more before the timeout.
  const Seconds rest{static_cast<double>(1 << std::min(diagnosis.rounds, 4)) / 2};
  const bool must_ask = can_time_out && now >= ask_by && diagnosis.asked_at < ask_by;
  if (diagnosis.rounds == 0 || must_ask) return ask_peers(diagnosis, now);
  refresh_peers();
  if (!is_due(diagnosis, now)) return;
  Verdict verdict = judge_stall(diagnosis);
  if (verdict.finding == Finding::kMismatch) {
    if (!diagnosis.mismatch_at) diagnosis.mismatch_at = now;
    if (!verdict.is_certain && now - *diagnosis.mismatch_at < kVoteTime)
      return ask_peers(diagnosis, now);
    const Error error{Code::kConflict, verdict.text};
    return fail(error);
  }
  if (diagnosis.is_contradicted && now - diagnosis.asked_at >= kAnswerTime) {
    const Error error{Code::kConflict,
                      "another call than " +
                          describe_call(diagnosis.stalled.call, diagnosis.stalled.bytes) + " of " +
                          name(rank_) + " came: call the same on all ranks"};
    return fail(error);
  }
  const bool is_open = verdict.finding == Finding::kSilent;
  if (can_time_out && now - since >= progress_timeout_ + (is_open ? kSilenceTime : Seconds{0.0})) {
    const Error error{Code::kTimeout, name_call(diagnosis.stalled.call, diagnosis.stalled.bytes) +
                                          ": no progress for " + format_seconds(progress_timeout_) +
                                          ": " + verdict.text};
    return fail(error);
  }
  if (watch_) report(diagnosis, std::move(verdict), now);
  if (now - diagnosis.asked_at >= rest + kAnswerTime) ask_peers(diagnosis, now);
}

std::string World::describe(const StalledCall& stalled) const {
  return name(rank_) + ": " + describe_call(stalled.call, stalled.bytes);
}

// Shows the verdict in the watch file; logs it where the wait is longer than usual.
void World::report(StallDiagnosis& diagnosis, Verdict verdict, Seconds now) {
  const bool is_new = !diagnosis.reported || diagnosis.reported->finding != verdict.finding ||
                      diagnosis.reported->ranks != verdict.ranks;
  const std::string text = describe(diagnosis.stalled) + ": no progress for " +
                           format_seconds(now - diagnosis.stalled.since) + ": " + verdict.text;
  if (is_new) {
    watch_->show_verdict(text);
    diagnosis.is_logged = false;
  }
  diagnosis.reported = std::move(verdict);
  const Seconds log_after = wait_history_.log_after(diagnosis.reported->finding);
  if (diagnosis.is_logged || now - diagnosis.stalled.since < log_after) return;
  diagnosis.is_logged = true;
  os::log_warning("coll: " + text);
}

void World::note_end(const StallDiagnosis& diagnosis, Seconds now) {
  if (!failed_) wait_history_.record(now - diagnosis.stalled.since);
  if (!diagnosis.reported) return;
  watch_->show_verdict({});
  if (!diagnosis.is_logged) return;
  os::log_warning("coll: " + describe(diagnosis.stalled) + ": goes on after " +
                  format_seconds(now - diagnosis.stalled.since));
}

}  // namespace regatta::comm
