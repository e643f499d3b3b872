// Operations that stand still: who is missing? A rank asks the others how far they are; their
// progress threads answer even when their callers hang. Inside a server the shelves and the state
// of the processes tell the same without an answer. The verdict is judge()'s
// (internal/watch/verdict.h).
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/log.h"
#include "regatta/base/core/units_text.h"
#include "regatta/base/os/proc_table.h"
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
// Who is only late is logged at most this often, and a blocked path only after a while: both are
// ordinary where ranks compute or links are thin.
constexpr Seconds kLateLogTime{30.0};
constexpr Seconds kBlockedLogTime{3.0};
// Queries about sends and receives: what the asking rank does.
constexpr std::uint32_t kAskerSends = 0;
constexpr std::uint32_t kAskerReceives = 1;
// And about collectives that go through shared memory, which count on their own.
constexpr std::uint32_t kAskerShares = 2;

bool is_send(const Operation& operation) {
  return operation.schedule.steps().front().kind == StepKind::kSend;
}

// The name of an operation in queries.
MessageKey query_key(const StuckCall& stuck) {
  const bool receives = !stuck.is_collective && (stuck.call & 1U) != 0;
  return {stuck.communicator, static_cast<std::uint32_t>(stuck.sequence),
          stuck.is_shared ? kAskerShares
          : receives      ? kAskerReceives
                          : kAskerSends};
}

std::uint32_t sequence_in_queries(const Operation& operation) {
  return operation.is_collective ? operation.call_number()
                                 : operation.transfers.front().key().operation;
}

StuckCall stuck_call(const Operation& operation, int own_rank) {
  StuckCall stuck{.communicator = operation.group->id,
                  .sequence = sequence_in_queries(operation),
                  .is_collective = operation.is_collective,
                  .call = operation.code,
                  .bytes = operation.bytes,
                  .since = operation.progressed_at,
                  .waited_for = waited_for(operation)};
  const std::vector<int>& all =
      operation.is_collective ? operation.group->members : stuck.waited_for;
  const std::size_t stride = (all.size() + kAskedMost - 1) / kAskedMost;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_waited_for = std::find(stuck.waited_for.begin(), stuck.waited_for.end(),
                                         all[i]) != stuck.waited_for.end();
    const bool is_turn = (i + static_cast<std::size_t>(own_rank)) % stride == 0;
    if (all[i] != own_rank && (is_turn || is_waited_for)) stuck.seen.push_back({.rank = all[i]});
  }
  return stuck;
}

}  // namespace

void World::remember(const std::shared_ptr<Group>& group) {
  std::erase_if(known_groups_, [](const auto& known) { return known.expired(); });
  known_groups_.push_back(group);
}

Seconds World::asking_time() const {
  return std::min(progress_timeout_ / 2, kAskingTime);
}

// How long an operation may stand still before the others are asked.
Seconds World::patience_with_stalls() const {
  const bool can_time_out = progress_timeout_.value > 0;
  if (!watch_) return progress_timeout_ - asking_time();
  return can_time_out ? std::min(kSuspectTime, progress_timeout_ / 2) : kSuspectTime;
}

void World::check_stalls(Seconds now) {
  if (failed_) return;
  if (!watch_ && progress_timeout_.value <= 0 && mailbox_.contradicted() == nullptr) return;
  std::vector<Inquiry> still_open;
  for (StuckCall& stuck : find_stuck(now, patience_with_stalls())) {
    const auto known = std::find_if(inquiries_.begin(), inquiries_.end(), [&](const Inquiry& one) {
      return is_same(one.stuck, stuck) && one.stuck.seen.size() == stuck.seen.size();
    });
    const bool stands = known != inquiries_.end() &&
                        (known->stuck.since == stuck.since || mailbox_.contradicted() != nullptr);
    if (stands) {
      known->stuck = std::move(stuck);
      still_open.push_back(std::move(*known));
      inquiries_.erase(known);
    } else {
      still_open.push_back({.stuck = std::move(stuck)});
    }
  }
  for (const Inquiry& ended : std::exchange(inquiries_, std::move(still_open)))
    note_end(ended, now);
  for (std::size_t i = 0; i < inquiries_.size() && !failed_; ++i)
    decide(inquiries_[i], now);
}

std::vector<StuckCall> World::find_stuck(Seconds now, Seconds still) {
  std::vector<StuckCall> all;
  if (shm_ != nullptr) all = shm_->find_stuck(now, still);
  for (const auto& group : runner_.groups())
    for (const auto& operation : group->active)
      if (now - operation->progressed_at >= still || operation.get() == mailbox_.contradicted())
        all.push_back(stuck_call(*operation, rank_));
  return all;
}

void World::ask_peers(Inquiry& inquiry, Seconds now) {
  inquiry.asked_at = now;
  ++inquiry.rounds;
  inquiry.answers.assign(inquiry.stuck.seen.size(), std::nullopt);
  const PacketHeader query{.kind = PacketKind::kQuery, .key = query_key(inquiry.stuck)};
  for (const MemberReport& member : inquiry.stuck.seen)
    links_[static_cast<std::size_t>(member.rank)]->post_control(query, {});
}

// Where this rank is, seen from the operation that `asker` names.
MemberReport World::standing(int asker, const MessageKey& key) {
  MemberReport report{.standing = Standing::kNotCalled};
  const auto shared = shm_ ? shm_->standing(key.group, key.operation) : std::nullopt;
  if (key.step == kAskerShares) return shared.value_or(report);
  for (const auto& group : runner_.groups()) {
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
        return {.standing = Standing::kInIt,
                .knows_call = operation->is_collective,
                .call = operation->code,
                .bytes = operation->bytes};
      if (operation->is_collective) report.standing = Standing::kBehind;
    }
  }
  for (const auto& weak : known_groups_) {
    const auto group = weak.lock();
    if (!group || group->id != key.group || key.operation >= group->collectives_started) continue;
    report = {.standing = Standing::kPast};
    // Where collectives go through shared memory the log is theirs.
    const auto past =
        group->log && !shared ? group->log->find(std::uint64_t{key.operation} + 1) : std::nullopt;
    if (!past) continue;
    report.knows_call = true;
    report.call = past->call;
    report.bytes = past->bytes;
  }
  return report;
}

// Another operation of this rank that is under way.
void World::tell_running(MemberReport& report) {
  if (shm_ != nullptr && shm_->tell_running(report)) return;
  for (const auto& group : runner_.groups()) {
    if (group->active.empty()) continue;
    report.is_elsewhere = true;
    report.other_call = group->active.front()->code;
    report.other_bytes = group->active.front()->bytes;
    return;
  }
}

void World::answer_query(int asker, const MessageKey& key) {
  Answer answer{.report = standing(asker, key)};
  if (answer.report.standing == Standing::kNotCalled) tell_running(answer.report);
  answer.busiest = busiest_link();
  refresh_peers();
  const auto held = std::find(is_held_.begin(), is_held_.end(), true);
  if (held != is_held_.end()) answer.stopped_rank = static_cast<int>(held - is_held_.begin());
  links_[static_cast<std::size_t>(asker)]->post_control({.kind = PacketKind::kReply, .key = key},
                                                        encode_answer(answer));
}

void World::note_reply(int peer_rank, const MessageKey& key, std::string_view text) {
  const auto answer = decode_answer(text);
  if (!answer || failed_) return;
  note_pace(peer_rank, answer->busiest);
  for (Inquiry& inquiry : inquiries_)
    if (query_key(inquiry.stuck) == key)
      for (std::size_t i = 0; i < inquiry.answers.size(); ++i)
        if (inquiry.stuck.seen[i].rank == peer_rank) inquiry.answers[i] = answer;
  // Whoever is at fault is known now, perhaps.
  if (mailbox_.contradicted() != nullptr) check_stalls(now_);
}

// Looks at the processes of this server, now and then.
void World::refresh_peers() {
  if (now_ - held_at_ < kInquiryTick) return;
  held_at_ = now_;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] <= 0) continue;
    const auto process = os::read_process(pids_[rank]);
    is_held_[rank] = process && (process->state == 'T' || process->state == 't');
  }
}

// By rank: its process is stopped, as this rank or one that answered sees it.
std::vector<bool> World::held_ranks(const Inquiry& inquiry) const {
  std::vector<bool> is_held = is_held_;
  for (const auto& answer : inquiry.answers)
    if (answer && answer->stopped_rank >= 0 && answer->stopped_rank < size())
      is_held[static_cast<std::size_t>(answer->stopped_rank)] = true;
  return is_held;
}

// Every rank has answered, or is known not to, or has had its time.
bool World::is_due(const Inquiry& inquiry, Seconds now) const {
  if (now - inquiry.asked_at >= kAnswerTime) return true;
  const std::vector<bool> is_held = held_ranks(inquiry);
  for (std::size_t i = 0; i < inquiry.answers.size(); ++i)
    if (!inquiry.answers[i] && !is_held[static_cast<std::size_t>(inquiry.stuck.seen[i].rank)])
      return false;
  return true;
}

Verdict World::judge_inquiry(const Inquiry& inquiry) const {
  const StuckCall& stuck = inquiry.stuck;
  StalledOperation operation{.rank = rank_,
                             .call = stuck.call,
                             .bytes = stuck.bytes,
                             .members = {},
                             .waited_for = stuck.waited_for};
  const std::vector<bool> is_held = held_ranks(inquiry);
  for (std::size_t i = 0; i < stuck.seen.size(); ++i) {
    MemberReport report = stuck.seen[i];
    const bool shelf_knows = stuck.is_shared && report.standing != Standing::kNotCalled;
    if (inquiry.answers[i] && !shelf_knows) {
      report = inquiry.answers[i]->report;
      report.rank = stuck.seen[i].rank;
    }
    report.is_stopped = is_held[static_cast<std::size_t>(report.rank)];
    operation.members.push_back(report);
  }
  if (stuck.is_collective)
    operation.members.push_back({.rank = rank_,
                                 .standing = Standing::kInIt,
                                 .knows_call = true,
                                 .call = stuck.call,
                                 .bytes = stuck.bytes});
  return judge(operation, names_);
}

void World::decide(Inquiry& inquiry, Seconds now) {
  inquiry.is_contradicted |= mailbox_.contradicted() != nullptr &&
                             inquiry.stuck.communicator == mailbox_.contradicted()->group->id;
  const Seconds since = inquiry.stuck.since;
  const bool can_time_out = progress_timeout_.value > 0;
  const Seconds ask_by = since + progress_timeout_ - asking_time();
  // Less and less often, but once more before the timeout.
  const Seconds rest{static_cast<double>(1 << std::min(inquiry.rounds, 4)) / 2};
  const bool must_ask = can_time_out && now >= ask_by && inquiry.asked_at < ask_by;
  if (inquiry.rounds == 0 || must_ask) return ask_peers(inquiry, now);
  refresh_peers();
  if (!is_due(inquiry, now)) return;
  Verdict verdict = judge_inquiry(inquiry);
  if (verdict.finding == Finding::kMismatch) {
    if (!inquiry.mismatch_at) inquiry.mismatch_at = now;
    if (!verdict.is_certain && now - *inquiry.mismatch_at < kVoteTime)
      return ask_peers(inquiry, now);
    const Error error{Code::kConflict, verdict.text};
    return fail(error);
  }
  if (inquiry.is_contradicted && now - inquiry.asked_at >= kAnswerTime) {
    const Error error{Code::kConflict, "another call than " +
                                           describe_call(inquiry.stuck.call, inquiry.stuck.bytes) +
                                           " of " + name(rank_) +
                                           " came: call the same on all ranks"};
    return fail(error);
  }
  const bool is_open = verdict.finding == Finding::kSilent;
  if (can_time_out && now - since >= progress_timeout_ + (is_open ? kSilenceTime : Seconds{0.0})) {
    const Error error{Code::kTimeout, name_call(inquiry.stuck.call, inquiry.stuck.bytes) +
                                          ": no progress for " + format_seconds(progress_timeout_) +
                                          ": " + verdict.text};
    return fail(error);
  }
  if (watch_) tell(inquiry, std::move(verdict), now);
  if (now - inquiry.asked_at >= rest + kAnswerTime) ask_peers(inquiry, now);
}

std::string World::describe(const StuckCall& stuck) const {
  return name(rank_) + ": " + describe_call(stuck.call, stuck.bytes);
}

// In the record always; by a log line where it is no everyday thing.
void World::tell(Inquiry& inquiry, Verdict verdict, Seconds now) {
  const bool is_new = !inquiry.told || inquiry.told->finding != verdict.finding ||
                      inquiry.told->ranks != verdict.ranks;
  const std::string text = describe(inquiry.stuck) + ": no progress for " +
                           format_seconds(now - inquiry.stuck.since) + ": " + verdict.text;
  if (is_new) {
    watch_->show_verdict(text);
    inquiry.is_logged = false;
  }
  inquiry.told = std::move(verdict);
  if (inquiry.is_logged) return;
  switch (inquiry.told->finding) {
    case Finding::kNotCalled:
      if (told_late_at_ && now - *told_late_at_ < kLateLogTime) return;
      told_late_at_ = now;
      log_info("coll: " + text);
      break;
    case Finding::kBlocked:
      if (now - inquiry.stuck.since < kBlockedLogTime) return;
      log_warning("coll: " + text);
      break;
    default:
      log_warning("coll: " + text);
  }
  inquiry.is_logged = true;
}

void World::note_end(const Inquiry& inquiry, Seconds now) {
  if (!inquiry.told) return;
  watch_->show_verdict({});
  if (!inquiry.is_logged) return;
  const std::string text = "coll: " + describe(inquiry.stuck) + ": goes on after " +
                           format_seconds(now - inquiry.stuck.since);
  if (inquiry.told->finding == Finding::kNotCalled)
    log_info(text);
  else
    log_warning(text);
}

}  // namespace regatta::comm
