#include "regatta/coll/algorithm/all_to_all.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace regatta::coll {

void pairwise_all_to_all(Schedule& schedule, const Place& place, const Buffers& buffers) {
  const std::size_t bytes = buffers.bytes();
  const std::size_t all = bytes * static_cast<std::size_t>(place.world_size);
  const auto part_at = [&](int rank) { return bytes * static_cast<std::size_t>(rank); };
  const std::byte* in = buffers.in;
  std::optional<StepIndex> copied;
  if (in == buffers.out) {
    std::byte* const aside = schedule.scratch(all);
    copied = schedule.add({.kind = StepKind::kCopy, .dst = aside, .src = in, .bytes = all});
    in = aside;
  } else {
    schedule.add({.kind = StepKind::kCopy,
                  .dst = buffers.out + part_at(place.rank),
                  .src = in + part_at(place.rank),
                  .bytes = bytes});
  }
  std::optional<StepIndex> sent_before;
  for (int distance = 1; distance < place.world_size; ++distance) {
    const auto tag = static_cast<std::uint32_t>(distance);
    const int from = place.neighbour(-distance);
    const StepIndex received = schedule.add({.kind = StepKind::kReceive,
                                             .peer = from,
                                             .tag = tag,
                                             .dst = buffers.out + part_at(from),
                                             .bytes = bytes});
    const int to = place.neighbour(distance);
    const StepIndex sent = schedule.add(
        {.kind = StepKind::kSend, .peer = to, .tag = tag, .src = in + part_at(to), .bytes = bytes});
    for (const StepIndex step : {received, sent})
      if (copied) schedule.wait_for(step, *copied);
    if (sent_before) schedule.wait_for(sent, *sent_before);
    sent_before = sent;
  }
}

}  // namespace regatta::coll
