#include "regatta/runtime/comm/internal/engine/stall_monitor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/log.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/progress_reporter.h"

namespace regatta::comm {
namespace {

// An operation without progress for this long is diagnosed.
constexpr Seconds kSuspectTime{0.6};
// How long the replies may take.
constexpr Seconds kReplyTime{0.6};
// How long to wait for the other ranks where two ranks called different things and a majority is
// needed to say which one is wrong.
constexpr Seconds kMajorityTime{0.5};
// How long before the progress timeout the peers are queried at the latest.
constexpr Seconds kQueryTime{2.0};
// How much longer than that timeout the verdict waits for ranks that do not reply, when no other
// rank is at fault.
constexpr Seconds kSilenceTime{1.0};
// Queried ranks of a large communicator. Each queries others, so every rank is queried by some.
constexpr std::size_t kQueriedMax = 64;

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

StalledCall stalled_call(const Operation& operation, int own_rank) {
  StalledCall stalled{.communicator = operation.group->id,
                      .sequence = query_number(operation),
                      .is_collective = operation.is_collective,
                      .call = call_in_world(operation.code, operation.group->members),
                      .bytes = operation.bytes,
                      .since = operation.progressed_at,
                      .waited_for = waited_for(operation)};
  const std::vector<int>& all =
      operation.is_collective ? operation.group->members : stalled.waited_for;
  const std::size_t stride = (all.size() + kQueriedMax - 1) / kQueriedMax;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_turn = (i + as_index(own_rank)) % stride == 0;
    if (all[i] != own_rank && (is_turn || contains(stalled.waited_for, all[i])))
      stalled.seen.push_back({.rank = all[i]});
  }
  return stalled;
}

}  // namespace

Seconds StallMonitor::query_time() const {
  return std::min(setup_.progress_timeout / 2, kQueryTime);
}

// How long an operation may stand still before the peers are queried.
Seconds StallMonitor::stall_timeout() const {
  const bool can_time_out = setup_.progress_timeout.value > 0;
  if (!setup_.watch) return setup_.progress_timeout - query_time();
  return can_time_out ? std::min(kSuspectTime, setup_.progress_timeout / 2) : kSuspectTime;
}

std::optional<Error> StallMonitor::check(Seconds now) {
  const bool can_time_out = setup_.progress_timeout.value > 0;
  if (!setup_.watch && !can_time_out && setup_.matcher.contradicted() == nullptr)
    return std::nullopt;
  update_diagnoses(now);
  for (StallDiagnosis& diagnosis : diagnoses_)
    if (auto error = advance(diagnosis, now)) return error;
  return std::nullopt;
}

// Keeps the diagnoses of operations that still stand, ends the others, and opens new ones.
void StallMonitor::update_diagnoses(Seconds now) {
  std::vector<StallDiagnosis> open;
  for (StalledCall& stalled : find_stalled(now)) {
    const auto known =
        std::find_if(diagnoses_.begin(), diagnoses_.end(), [&](const StallDiagnosis& one) {
          return is_same(one.stalled, stalled) && one.stalled.seen.size() == stalled.seen.size();
        });
    const bool stands = known != diagnoses_.end() && (known->stalled.since == stalled.since ||
                                                      setup_.matcher.contradicted() != nullptr);
    if (stands) {
      known->stalled = std::move(stalled);
      open.push_back(std::move(*known));
      diagnoses_.erase(known);
    } else {
      open.push_back({.stalled = std::move(stalled)});
    }
  }
  for (const StallDiagnosis& ended : std::exchange(diagnoses_, std::move(open)))
    end(ended, now);
}

std::vector<StalledCall> StallMonitor::find_stalled(Seconds now) const {
  const Seconds still = stall_timeout();
  std::vector<StalledCall> all;
  if (setup_.shm != nullptr) all = setup_.shm->find_stalled(now, still);
  for (const auto& group : setup_.executor.groups())
    for (const auto& operation : group->active)
      if (now - operation->progressed_at >= still ||
          operation.get() == setup_.matcher.contradicted())
        all.push_back(stalled_call(*operation, setup_.rank));
  return all;
}

void StallMonitor::reset(Seconds now) {
  for (const StallDiagnosis& ended : std::exchange(diagnoses_, {}))
    end(ended, now);
}

void StallMonitor::query_peers(StallDiagnosis& diagnosis, Seconds now) {
  diagnosis.queried_at = now;
  ++diagnosis.rounds;
  diagnosis.replies.assign(diagnosis.stalled.seen.size(), std::nullopt);
  const PacketHeader query{.kind = PacketKind::kQuery, .key = query_key(diagnosis.stalled)};
  for (const MemberReport& member : diagnosis.stalled.seen)
    setup_.links.post_control(member.rank, query);
}

void StallMonitor::receive_reply(int peer, const MessageKey& key, const ProgressReply& reply) {
  for (StallDiagnosis& diagnosis : diagnoses_)
    if (query_key(diagnosis.stalled) == key)
      for (std::size_t i = 0; i < diagnosis.replies.size(); ++i)
        if (diagnosis.stalled.seen[i].rank == peer) diagnosis.replies[i] = reply;
}

// By world rank: its process is stopped, as this rank or one that replied sees it.
std::vector<bool> StallMonitor::stopped_ranks(const StallDiagnosis& diagnosis) const {
  std::vector<bool> is_stopped = setup_.stopped.by_rank();
  for (const auto& reply : diagnosis.replies)
    if (reply && reply->stopped_rank >= 0 && as_index(reply->stopped_rank) < is_stopped.size())
      is_stopped[as_index(reply->stopped_rank)] = true;
  return is_stopped;
}

// Every rank has replied, is stopped and cannot, or had its time.
bool StallMonitor::has_all_replies(const StallDiagnosis& diagnosis, Seconds now) const {
  if (now - diagnosis.queried_at >= kReplyTime) return true;
  const std::vector<bool> is_stopped = stopped_ranks(diagnosis);
  for (std::size_t i = 0; i < diagnosis.replies.size(); ++i)
    if (!diagnosis.replies[i] && !at(is_stopped, diagnosis.stalled.seen[i].rank)) return false;
  return true;
}

Verdict StallMonitor::judge(const StallDiagnosis& diagnosis) const {
  const StalledCall& stalled = diagnosis.stalled;
  StalledOperation operation{.rank = setup_.rank,
                             .call = stalled.call,
                             .bytes = stalled.bytes,
                             .members = {},
                             .waited_for = stalled.waited_for};
  const std::vector<bool> is_stopped = stopped_ranks(diagnosis);
  for (std::size_t i = 0; i < stalled.seen.size(); ++i) {
    MemberReport report = stalled.seen[i];
    const bool segment_knows = stalled.is_shared && report.state != MemberState::kNotCalled;
    if (diagnosis.replies[i] && !segment_knows) {
      report = diagnosis.replies[i]->report;
      report.rank = stalled.seen[i].rank;
    }
    report.is_stopped = at(is_stopped, report.rank);
    operation.members.push_back(report);
  }
  if (stalled.is_collective)
    operation.members.push_back({.rank = setup_.rank,
                                 .state = MemberState::kEntered,
                                 .knows_call = true,
                                 .call = stalled.call,
                                 .bytes = stalled.bytes});
  return diagnose_stall(operation, setup_.names);
}

// At first, and once more before the progress timeout.
bool StallMonitor::must_query(const StallDiagnosis& diagnosis, Seconds now) const {
  if (diagnosis.rounds == 0) return true;
  if (setup_.progress_timeout.value <= 0) return false;
  const Seconds query_by = diagnosis.stalled.since + setup_.progress_timeout - query_time();
  return now >= query_by && diagnosis.queried_at < query_by;
}

std::optional<Error> StallMonitor::timeout_error(const StallDiagnosis& diagnosis,
                                                 const Verdict& verdict, Seconds now) const {
  if (setup_.progress_timeout.value <= 0) return std::nullopt;
  const Seconds extra = verdict.finding == Finding::kSilent ? kSilenceTime : Seconds{0.0};
  if (now - diagnosis.stalled.since < setup_.progress_timeout + extra) return std::nullopt;
  return Error{Code::kTimeout, name_call(diagnosis.stalled.call, diagnosis.stalled.bytes) +
                                   ": no progress for " + format_seconds(setup_.progress_timeout) +
                                   ": " + verdict.text};
}

// One step of a diagnosis: queries the peers, or judges their replies.
std::optional<Error> StallMonitor::advance(StallDiagnosis& diagnosis, Seconds now) {
  const Operation* contradicted = setup_.matcher.contradicted();
  diagnosis.is_contradicted |=
      contradicted != nullptr && diagnosis.stalled.communicator == contradicted->group->id;
  if (must_query(diagnosis, now)) {
    query_peers(diagnosis, now);
    return std::nullopt;
  }
  setup_.stopped.refresh(now);
  if (!has_all_replies(diagnosis, now)) return std::nullopt;
  Verdict verdict = judge(diagnosis);
  if (verdict.finding == Finding::kMismatch) {
    if (!diagnosis.mismatch_at) diagnosis.mismatch_at = now;
    if (verdict.is_certain || now - *diagnosis.mismatch_at >= kMajorityTime)
      return Error{Code::kConflict, verdict.text};
    query_peers(diagnosis, now);
    return std::nullopt;
  }
  if (diagnosis.is_contradicted && now - diagnosis.queried_at >= kReplyTime)
    return Error{Code::kConflict,
                 "a peer made another call than " +
                     describe_call(diagnosis.stalled.call, diagnosis.stalled.bytes) + " of " +
                     at(setup_.names, setup_.rank) + ": call the same on all ranks"};
  if (auto error = timeout_error(diagnosis, verdict, now)) return error;
  if (setup_.watch) report(diagnosis, std::move(verdict), now);
  // The longer the stall, the rarer the queries.
  const Seconds rest{static_cast<double>(1 << std::min(diagnosis.rounds, 4)) / 2};
  if (now - diagnosis.queried_at >= rest + kReplyTime) query_peers(diagnosis, now);
  return std::nullopt;
}

std::string StallMonitor::describe(const StalledCall& stalled) const {
  return at(setup_.names, setup_.rank) + ": " + describe_call(stalled.call, stalled.bytes);
}

// Shows the verdict in the watch file; logs it where the wait is longer than usual.
void StallMonitor::report(StallDiagnosis& diagnosis, Verdict verdict, Seconds now) {
  const Seconds wait = now - diagnosis.stalled.since;
  const bool is_new = !diagnosis.reported || diagnosis.reported->finding != verdict.finding ||
                      diagnosis.reported->ranks != verdict.ranks;
  const std::string text = describe(diagnosis.stalled) + ": no progress for " +
                           format_seconds(wait) + ": " + verdict.text;
  if (is_new) {
    setup_.watch->show_verdict(text);
    diagnosis.is_logged = false;
  }
  diagnosis.reported = std::move(verdict);
  if (diagnosis.is_logged || wait < wait_history_.log_after(diagnosis.reported->finding)) return;
  diagnosis.is_logged = true;
  os::log_warning("coll: " + text);
}

// The operation goes on, or has ended.
void StallMonitor::end(const StallDiagnosis& diagnosis, Seconds now) {
  const Seconds wait = now - diagnosis.stalled.since;
  wait_history_.record(wait);
  if (!diagnosis.reported) return;
  setup_.watch->show_verdict({});
  if (diagnosis.is_logged)
    os::log_warning("coll: " + describe(diagnosis.stalled) + ": goes on after " +
                    format_seconds(wait));
}

}  // namespace regatta::comm
