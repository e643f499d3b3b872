#include "regatta/runtime/comm/internal/engine/operation_executor.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/reduce_kernels.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/algorithm_selector.h"

namespace regatta::comm {

void OperationExecutor::submit(std::unique_ptr<Operation> operation, Seconds now) {
  const std::shared_ptr<CommunicatorState> group = operation->group;
  if (std::find(groups_.begin(), groups_.end(), group) == groups_.end()) groups_.push_back(group);
  if (operation->is_collective) {
    group->waiting.push_back(std::move(operation));
    start_next(*group, now);
  } else {
    start(std::move(operation), now);
  }
  drop_idle_groups();
}

void OperationExecutor::start_next(CommunicatorState& group, Seconds now) {
  while (!group.waiting.empty() && !group.runs_collective) {
    if (group.algorithm_selector != nullptr)
      if (auto timing_exchange =
              group.algorithm_selector->timing_exchange_before(*group.waiting.front()))
        group.waiting.push_front(std::move(timing_exchange));
    std::unique_ptr<Operation> next = std::move(group.waiting.front());
    group.waiting.pop_front();
    group.runs_collective = true;
    if (!next->is_timing_exchange) group.collectives_started = next->number + 1;
    if (next->call) group.algorithm_selector->begin(*next);
    start(std::move(next), now);
  }
}

void OperationExecutor::start(std::unique_ptr<Operation> started, Seconds now) {
  Operation& operation = *started;
  CommunicatorState& group = *operation.group;
  group.active.push_back(std::move(started));
  operation.begun_at = operation.progressed_at = now;
  if (operation.log() != nullptr) operation.log()->begin(operation.logged());
  if (operation.schedule.lacked_bytes() > 0) {
    error_ = lack_of_memory(operation.name, operation.schedule.lacked_bytes());
    return;
  }
  operation.prepare();
  for (StepIndex step = 0; step < operation.conditions.size(); ++step)
    if (operation.conditions[step] == 0) ready_.push_back(step);
  std::reverse(ready_.begin(), ready_.end());
  run_ready(operation);
  if (operation.steps_left == 0) end_operation(operation, now);
}

void OperationExecutor::run_ready(Operation& operation) {
  while (!ready_.empty()) {
    const StepIndex step = ready_.back();
    ready_.pop_back();
    run_step(operation, step);
  }
}

void OperationExecutor::run_step(Operation& operation, StepIndex index) {
  const Step& step = operation.schedule.steps()[index];
  const Reduction& reduction = operation.schedule.reduction;
  switch (step.kind) {
    case StepKind::kSend:
      return matcher_.post_send(operation.transfers[index]);
    case StepKind::kReceive:
    case StepKind::kReceiveReduce:
      return matcher_.post_receive(operation.transfers[index]);
    case StepKind::kReduce:
      combine(reduction, step.dst, step.src, step.other, step.bytes);
      break;
    case StepKind::kCopy:
      if (step.bytes > 0 && step.dst != step.src) std::memmove(step.dst, step.src, step.bytes);
      break;
    case StepKind::kCall:
      calls_.push_back({&operation, index});
      return;
  }
  if (step.finishes) finish(reduction, step.dst, step.bytes);
  end_step(operation, index);
}

void OperationExecutor::end_step(Operation& operation, StepIndex step) {
  --operation.steps_left;
  for (auto i = operation.dependents_from[step]; i < operation.dependents_from[step + 1]; ++i) {
    const StepIndex follower = operation.dependents[i];
    if (--operation.conditions[follower] == 0) ready_.push_back(follower);
  }
}

void OperationExecutor::continue_after(Operation& operation, StepIndex step, Seconds now) {
  end_step(operation, step);
  run_ready(operation);
  if (operation.steps_left > 0) return;
  const std::shared_ptr<CommunicatorState> group = operation.group;
  end_operation(operation, now);
  start_next(*group, now);
}

bool OperationExecutor::advance(Seconds now) {
  bool moved = false;
  // A step that ends at once, because its message was there already, adds to the list again.
  for (auto ended = matcher_.consume_ended(); !ended.empty(); ended = matcher_.consume_ended()) {
    moved = true;
    for (const MessageTransfer* transfer : ended)
      continue_after(*transfer->operation, transfer->step, now);
  }
  // One call, then messages move again.
  if (!calls_.empty()) {
    moved = true;
    const auto [operation, step] = calls_.front();
    calls_.pop_front();
    operation->schedule.call(step);
    operation->progressed_at = now;
    continue_after(*operation, step, now);
  }
  if (moved) drop_idle_groups();
  return moved;
}

void OperationExecutor::end_operation(Operation& operation, Seconds now) {
  std::vector<std::unique_ptr<Operation>>& active = operation.group->active;
  const auto place = std::find_if(active.begin(), active.end(),
                                  [&](const auto& one) { return one.get() == &operation; });
  REGATTA_CHECK(place != active.end());
  const std::unique_ptr<Operation> ended = std::move(*place);
  active.erase(place);
  if (ended->is_collective) {
    ended->group->runs_collective = false;
    if (ended->group->algorithm_selector != nullptr) ended->group->algorithm_selector->end(*ended);
  }
  if (ended->log() != nullptr && !ended->is_timing_exchange)
    ended->log()->end(ended->logged(), now);
  ended->handle->finish(std::nullopt, now);
}

void OperationExecutor::drop_idle_groups() {
  std::erase_if(groups_,
                [](const auto& group) { return group->waiting.empty() && group->active.empty(); });
}

void OperationExecutor::fail_all(const Error& error, Seconds now) {
  matcher_.clear();
  calls_.clear();
  for (const auto& group : std::exchange(groups_, {})) {
    for (const auto& operation : group->active) {
      if (operation->log() != nullptr) operation->log()->end(operation->logged(), now, error.code);
      operation->handle->finish(error, now);
    }
    for (const auto& operation : group->waiting)
      operation->handle->finish(error, now);
    group->active.clear();
    group->waiting.clear();
    group->runs_collective = false;
  }
}

std::vector<int> waited_for(const Operation& operation) {
  std::vector<int> ranks;
  for (const MessageTransfer& transfer : operation.transfers)
    if (transfer.is_active && std::find(ranks.begin(), ranks.end(), transfer.peer) == ranks.end())
      ranks.push_back(transfer.peer);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace regatta::comm
