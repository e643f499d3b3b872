#include "regatta/platform/history/change_events.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/control/records.pb.h"

namespace regatta::history {
namespace {

namespace proto = control::proto;

Error unreadable(const store::Change& change) {
  return {Code::kInvalidInput,
          fmt::format("history: record {} cannot be read", printable(change.key, 80))};
}

template <typename Record>
bool parse(const store::Change& change, Record& record) {
  return record.ParseFromArray(change.value->data(), static_cast<int>(change.value->size()));
}

PastAttempt ended_attempt(const proto::JobRecord& record, std::int64_t time_ms) {
  const proto::AttemptRecord& ended = record.ended_attempt();
  PastAttempt attempt{.job = record.id(),
                      .number = ended.number(),
                      .stop = static_cast<control::StopCause>(ended.stop()),
                      .started_ms = ended.started_ms(),
                      .ended_ms = 0,
                      .replicas = {}};
  for (const proto::ReplicaRecord& each : ended.replicas()) {
    PastReplica& past = attempt.replicas.emplace_back();
    past.node = each.node();
    past.replica.role = each.role();
    past.replica.devices = each.devices();
    past.replica.phase = static_cast<control::ReplicaPhase>(each.phase());
    past.replica.exit_status = each.exit_status();
    past.replica.signal = each.signal();
    past.replica.started_ms = each.started_ms();
    past.replica.ended_ms = each.ended_ms();
    attempt.ended_ms = std::max(attempt.ended_ms, each.ended_ms());
  }
  if (attempt.ended_ms == 0) attempt.ended_ms = time_ms;
  return attempt;
}

// The worst state that the node is in: 0 connected, 1 not connected, 2 silent, 3 fenced.
int state_of(const proto::NodeRecord& record) {
  if (record.is_fenced()) return 3;
  if (record.is_silent()) return 2;
  return record.is_connected() ? 0 : 1;
}

constexpr EnumNames<4> kNodeStates = {"connected", "disconnected", "silent", "fenced"};
constexpr EnumNames<4> kNodeStateTexts = {"its agent is connected", "its agent has disconnected",
                                          "it is not heard",
                                          "it has not been heard for its lease: its replicas are "
                                          "over"};

}  // namespace

void ChangeReader::learn(const ToldObject& object) {
  if (object.job == 0) {
    nodes_[object.node] = {.intent = object.phase, .state = 0};
    return;
  }
  KnownJob& known = jobs_[object.job];
  known.phase = static_cast<control::JobPhase>(object.phase);
  known.is_held = object.is_held;
}

Result<ChangeStory> ChangeReader::read_job(const store::Change& change, std::int64_t time_ms,
                                           bool is_old) {
  proto::JobRecord record;
  if (!parse(change, record)) return unreadable(change);
  const auto phase = static_cast<control::JobPhase>(record.phase());
  if (record.phase() < 0 || record.phase() >= static_cast<int>(control::kJobPhaseNames.size()))
    return unreadable(change);
  const std::string handle = record.array() > 0 ? fmt::format("{}-{}[{}]", record.name(),
                                                              record.array(), record.array_index())
                                                : fmt::format("{}-{}", record.name(), record.id());
  ChangeStory story;
  const auto tell = [&](std::int64_t at_ms, std::string_view reason, std::string text) {
    story.events.push_back({.id = 0,
                            .time_ms = at_ms,
                            .revision = change.revision,
                            .kind = "job",
                            .object = handle,
                            .reason = std::string(reason),
                            .text = std::move(text)});
  };
  const auto [found, is_new] = jobs_.try_emplace(record.id());
  KnownJob& known = found->second;
  if (record.id() > last_job_)
    tell(is_old ? record.submitted_ms() : time_ms, "submitted",
         fmt::format("{} submitted it to queue {}", record.user(), record.queue()));
  if (record.is_held() != known.is_held)
    tell(time_ms, record.is_held() ? "held" : "released",
         record.is_held() ? "it is held by its user" : "it may start");
  const bool is_told = is_new ? phase != control::JobPhase::kPending : phase != known.phase;
  if (is_told) {
    const bool has_end = is_old && record.ended_ms() > 0;
    const std::int64_t old_ms = has_end ? record.ended_ms() : record.started_ms();
    tell(is_old && old_ms > 0 ? old_ms : time_ms, at(control::kJobPhaseNames, record.phase()),
         record.reason());
  }
  if (record.has_ended_attempt() && record.ended_attempt().number() > known.attempt) {
    known.attempt = record.ended_attempt().number();
    story.ended = ended_attempt(record, time_ms);
  }
  last_job_ = std::max<control::JobId>(last_job_, record.id());
  known.phase = phase;
  known.is_held = record.is_held();
  if (control::is_over(phase)) jobs_.erase(found);
  return story;
}

Result<ChangeStory> ChangeReader::read_node(const store::Change& change, std::int64_t time_ms,
                                            bool is_old) {
  proto::NodeRecord record;
  if (!parse(change, record)) return unreadable(change);
  if (record.intent() < 0 || record.intent() >= static_cast<int>(control::kNodeIntentNames.size()))
    return unreadable(change);
  ChangeStory story;
  const auto tell = [&](std::int64_t at_ms, std::string_view reason, std::string_view text) {
    story.events.push_back({.id = 0,
                            .time_ms = at_ms,
                            .revision = change.revision,
                            .kind = "node",
                            .object = record.name(),
                            .reason = std::string(reason),
                            .text = std::string(text)});
  };
  const auto [found, is_new] = nodes_.try_emplace(record.name());
  KnownNode& known = found->second;
  // A controller that starts does not know whether it has told of a node: its first state since
  // then is told.
  if (is_new && is_old) tell(record.joined_ms(), "joined", "it has joined");
  if (!is_old && (is_new || state_of(record) != known.state))
    tell(time_ms, at(kNodeStates, state_of(record)), at(kNodeStateTexts, state_of(record)));
  if (record.intent() != known.intent)
    tell(time_ms, at(control::kNodeIntentNames, record.intent()),
         fmt::format("an operator set it to {}", at(control::kNodeIntentNames, record.intent())));
  known = {.intent = record.intent(), .state = state_of(record)};
  return story;
}

Result<ChangeStory> ChangeReader::read(const store::Change& change, std::int64_t time_ms,
                                       bool is_old) {
  if (change.key.starts_with("job/")) {
    if (change.value) return read_job(change, time_ms, is_old);
    jobs_.erase(parse_number<control::JobId>(change.key.substr(4)).value_or(0));
    return ChangeStory{};
  }
  if (change.key.starts_with("node/") && change.value) return read_node(change, time_ms, is_old);
  if (!change.key.starts_with("queues/") || is_old) return ChangeStory{};
  ChangeStory story;
  story.events.push_back({.id = 0,
                          .time_ms = time_ms,
                          .revision = change.revision,
                          .kind = "queues",
                          .object = "",
                          .reason = "set",
                          .text = "an operator set the quotas of the queues"});
  return story;
}

}  // namespace regatta::history
