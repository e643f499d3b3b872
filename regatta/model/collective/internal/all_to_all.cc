#include "regatta/model/collective/internal/all_to_all.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace regatta::collective {

namespace {

// Nothing moves before `ready`, where there is one.
void exchange(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
              const RankParts& give, const RankParts& take, const std::optional<StepIndex>& ready) {
  const auto begin = [&](const Step& step) {
    const StepIndex index = schedule.add(step);
    if (ready) schedule.wait_for(index, *ready);
    return index;
  };
  begin({.dst = buffers.out + take.begin(self.rank),
         .src = buffers.in + give.begin(self.rank),
         .bytes = give.bytes(self.rank)});
  std::optional<StepIndex> sent_before;
  for (int distance = 1; distance < self.world_size; ++distance) {
    const auto tag = static_cast<std::uint32_t>(distance);
    const int from = self.neighbour(-distance);
    begin({.kind = StepKind::kReceive,
           .peer = from,
           .tag = tag,
           .dst = buffers.out + take.begin(from),
           .bytes = take.bytes(from)});
    const int to = self.neighbour(distance);
    const StepIndex sent = begin({.kind = StepKind::kSend,
                                  .peer = to,
                                  .tag = tag,
                                  .src = buffers.in + give.begin(to),
                                  .bytes = give.bytes(to)});
    if (sent_before) schedule.wait_for(sent, *sent_before);
    sent_before = sent;
  }
}

}  // namespace

void pairwise_all_to_all(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers) {
  const auto ranks = static_cast<std::size_t>(self.world_size);
  const RankParts parts(buffers.count * ranks, buffers.element_bytes, self.world_size);
  if (buffers.in != buffers.out)
    return exchange(schedule, self, buffers, parts, parts, std::nullopt);
  Buffers apart = buffers;
  std::byte* const aside = schedule.scratch(parts.end());
  apart.in = aside;
  const StepIndex copied = schedule.add({.dst = aside, .src = buffers.in, .bytes = parts.end()});
  exchange(schedule, self, apart, parts, parts, copied);
}

void pairwise_all_to_all_v(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers, const RankParts& give, const RankParts& take) {
  exchange(schedule, self, buffers, give, take, std::nullopt);
}

}  // namespace regatta::collective
