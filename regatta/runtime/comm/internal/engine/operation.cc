#include "regatta/runtime/comm/internal/engine/operation.h"

#include <cstddef>
#include <cstdint>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

LoggedCall Operation::logged() const {
  return {.lane = is_collective ? Lane::kCollective : Lane::kTransfer,
          .sequence = std::uint64_t{call_number()} + 1,
          .call = code,
          .bytes = bytes,
          .started = begun_at};
}

void Operation::prepare() {
  const auto& steps = schedule.steps();
  const std::size_t count = steps.size();
  steps_left = count;
  transfers.resize(count);
  conditions.assign(count, 0);
  dependents_from.assign(count + 1, 0);
  for (const auto& [earlier, later] : schedule.edges()) {
    ++conditions[later];
    ++dependents_from[earlier + 1];
  }
  for (std::size_t i = 0; i < count; ++i)
    dependents_from[i + 1] += dependents_from[i];
  dependents.resize(schedule.edges().size());
  std::vector<std::uint32_t> next(dependents_from.begin(), dependents_from.end() - 1);
  for (const auto& [earlier, later] : schedule.edges())
    dependents[next[earlier]++] = later;

  // Numbers that would reach the bits of the marks start again from 0.
  const std::uint32_t key_number = !is_collective       ? number | kPointToPoint
                                   : is_timing_exchange ? number
                                                        : number & (kTimingExchangeNumber - 1);
  const std::uint32_t mark = fingerprint(code, bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    MessageTransfer& transfer = transfers[i];
    transfer.operation = this;
    transfer.step = static_cast<StepIndex>(i);
    if (step.peer < 0) continue;
    transfer.peer = at(group->members, step.peer);
    transfer.out.key = {group->id, key_number, step.tag};
    transfer.out.data = step.src;
    transfer.out.bytes = step.bytes;
    transfer.out.connections = connections;
    if (is_collective) transfer.out.call = mark;
  }
}

}  // namespace regatta::comm
