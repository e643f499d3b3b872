// coll/algorithm/gather_all.h: every rank gives all others one message: 1 step, p-1 messages sent.
// For reductions that need all inputs at one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/coll/algorithm/place.h"
#include "regatta/coll/schedule.h"

namespace regatta::coll {

struct Gathered {
  std::vector<const std::byte*> messages;  // by rank; the own one among them
  std::vector<StepIndex> steps;            // all of the sends and receives
};

// `message` (bytes long) is sent when `written` has ended, where it is given; the others' arrive in
// scratch memory.
inline Gathered gather_all(Schedule& schedule, const Place& place, const std::byte* message,
                           std::size_t bytes, std::uint32_t tag,
                           const std::optional<StepIndex>& written = {}) {
  Gathered gathered;
  gathered.messages.assign(static_cast<std::size_t>(place.world_size), message);
  for (int d = 1; d < place.world_size; ++d) {
    gathered.steps.push_back(schedule.add({.kind = StepKind::kSend,
                                           .peer = place.neighbour(d),
                                           .tag = tag,
                                           .src = message,
                                           .bytes = bytes}));
    if (written) schedule.wait_for(gathered.steps.back(), *written);
    const int from = place.neighbour(-d);
    std::byte* const at = schedule.scratch(bytes);
    gathered.messages[static_cast<std::size_t>(from)] = at;
    gathered.steps.push_back(schedule.add(
        {.kind = StepKind::kReceive, .peer = from, .tag = tag, .dst = at, .bytes = bytes}));
  }
  return gathered;
}

}  // namespace regatta::coll
