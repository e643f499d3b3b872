#include "regatta/runtime/comm/internal/engine/progress_reporter.h"

#include <optional>

#include "regatta/base/core/ids.h"

namespace regatta::comm {
namespace {

bool is_send(const Operation& operation) {
  return operation.schedule.steps().front().kind == StepKind::kSend;
}

// Whether `operation` is the one that `asker` names, or the other end of its transfer.
bool is_queried(const Operation& operation, int asker, const MessageKey& key) {
  if (operation.is_collective) return operation.call_number() == key.operation;
  const Step& step = operation.schedule.steps().front();
  const bool asker_receives = key.step == static_cast<std::uint32_t>(QueryRole::kReceives);
  return at(operation.group->members, step.peer) == asker && is_send(operation) == asker_receives &&
         (operation.number | kPointToPoint) == key.operation;
}

}  // namespace

MessageKey query_key(const StalledCall& stalled) {
  const bool receives = !stalled.is_collective && (stalled.call & 1U) != 0;
  const QueryRole role = stalled.is_shared ? QueryRole::kShares
                         : receives        ? QueryRole::kReceives
                                           : QueryRole::kSends;
  return {stalled.communicator, static_cast<std::uint32_t>(stalled.sequence),
          static_cast<std::uint32_t>(role)};
}

std::uint32_t query_number(const Operation& operation) {
  return operation.is_collective ? operation.call_number()
                                 : operation.transfers.front().key().operation;
}

void ProgressReporter::add_group(const std::shared_ptr<CommunicatorState>& group) {
  std::erase_if(groups_, [](const auto& known) { return known.expired(); });
  groups_.push_back(group);
}

MemberReport ProgressReporter::report(int asker, const MessageKey& key) const {
  MemberReport report = report_operation(asker, key);
  if (report.state == MemberState::kNotCalled) add_other_operation(report);
  return report;
}

MemberReport ProgressReporter::report_operation(int asker, const MessageKey& key) const {
  MemberReport report{.state = MemberState::kNotCalled};
  const auto shared = shm_ ? shm_->member_report(key.group, key.operation) : std::nullopt;
  if (key.step == static_cast<std::uint32_t>(QueryRole::kShares)) return shared.value_or(report);
  for (const auto& group : executor_.groups()) {
    if (group->id != key.group) continue;
    for (const auto& operation : group->active) {
      if (is_queried(*operation, asker, key))
        return {.state = MemberState::kEntered,
                .knows_call = operation->is_collective,
                .call = call_in_world(operation->code, group->members),
                .bytes = operation->bytes};
      if (operation->is_collective) report.state = MemberState::kBehind;
    }
  }
  for (const auto& weak : groups_) {
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

void ProgressReporter::add_other_operation(MemberReport& report) const {
  if (shm_ != nullptr && shm_->report_running(report)) return;
  for (const auto& group : executor_.groups()) {
    if (group->active.empty()) continue;
    report.is_elsewhere = true;
    report.other_call = call_in_world(group->active.front()->code, group->members);
    report.other_bytes = group->active.front()->bytes;
    return;
  }
}

}  // namespace regatta::comm
