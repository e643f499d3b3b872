// collective/internal/gather_all.h: every rank sends all others one message: 1 step, p-1 messages
// sent. For reductions that need all inputs at one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

struct GatheredMessages {
  std::vector<const std::byte*> messages;  // by rank, this one included
  std::vector<StepIndex> steps;            // all of the sends and receives
};

struct GatherMessage {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;  // the same on every rank
  std::uint32_t tag = 0;
  std::optional<StepIndex> written = {};  // it is sent when this step has ended
};

// The others' messages arrive in scratch memory.
inline GatheredMessages gather_all(CollectiveSchedule& schedule, const GroupPosition& self,
                                   const GatherMessage& message) {
  GatheredMessages gathered;
  gathered.messages.assign(static_cast<std::size_t>(self.world_size), message.data);
  for (int d = 1; d < self.world_size; ++d) {
    gathered.steps.push_back(schedule.add({.kind = StepKind::kSend,
                                           .peer = self.neighbour(d),
                                           .tag = message.tag,
                                           .src = message.data,
                                           .bytes = message.bytes}));
    if (message.written) schedule.wait_for(gathered.steps.back(), *message.written);
    const int from = self.neighbour(-d);
    std::byte* const at = schedule.scratch(message.bytes);
    gathered.messages[as_index(from)] = at;
    gathered.steps.push_back(schedule.add({.kind = StepKind::kReceive,
                                           .peer = from,
                                           .tag = message.tag,
                                           .dst = at,
                                           .bytes = message.bytes}));
  }
  return gathered;
}

}  // namespace regatta::collective
