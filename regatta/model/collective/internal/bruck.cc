#include "regatta/model/collective/internal/bruck.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/bundle.h"

namespace regatta::collective {
namespace {

// A part in transit: its place, and the step that put it there.
struct Part {
  const std::byte* at;
  std::optional<StepIndex> made;
};

std::size_t part_at(const Buffers& buffers, int rank) {
  return buffers.bytes() * static_cast<std::size_t>(rank);
}

}  // namespace

void bruck_all_to_all(CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers) {
  if (buffers.count == 0) return;
  const int ranks = self.world_size;
  const std::size_t bytes = buffers.bytes();
  const std::byte* in = buffers.in;
  std::optional<StepIndex> aside;
  if (in == buffers.out) {
    std::byte* const copy = schedule.scratch(part_at(buffers, ranks));
    aside = schedule.add({.dst = copy, .src = in, .bytes = part_at(buffers, ranks)});
    in = copy;
  }
  // parts[i] comes from, or goes to, the rank at distance i.
  std::vector<Part> parts;
  for (int i = 0; i < ranks; ++i)
    parts.push_back({in + part_at(buffers, self.neighbour(i)), aside});
  std::uint32_t tag = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++tag) {
    SourcePieces pieces;
    std::vector<StepIndex> after;
    for (int i = distance; i < ranks; ++i) {
      const Part& part = parts[as_index(i)];
      if ((i & distance) == 0) continue;
      pieces.add(part.at, bytes);
      if (part.made && std::find(after.begin(), after.end(), *part.made) == after.end())
        after.push_back(*part.made);
    }
    send_bundle(schedule, {self.neighbour(distance), tag}, pieces, after);
    std::byte* arrived = schedule.scratch(pieces.bytes());
    const StepIndex received = schedule.add({.kind = StepKind::kReceive,
                                             .peer = self.neighbour(-distance),
                                             .tag = tag,
                                             .dst = arrived,
                                             .bytes = pieces.bytes()});
    for (int i = distance; i < ranks; ++i) {
      if ((i & distance) == 0) continue;
      parts[as_index(i)] = {arrived, received};
      arrived += bytes;
    }
  }
  for (int i = 0; i < ranks; ++i) {
    const Part& part = parts[as_index(i)];
    const StepIndex copy = schedule.add({.dst = buffers.out + part_at(buffers, self.neighbour(-i)),
                                         .src = part.at,
                                         .bytes = bytes});
    if (part.made) schedule.wait_for(copy, *part.made);
    if (aside) schedule.wait_for(copy, *aside);
  }
}

void bruck_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers) {
  if (buffers.count == 0) return;
  const int ranks = self.world_size;
  // work[i] is the part of the i-th rank behind this one.
  std::byte* const work = schedule.scratch(part_at(buffers, ranks));
  std::vector<StepIndex> made = {
      schedule.add({.dst = work, .src = buffers.in, .bytes = buffers.bytes()})};
  std::uint32_t tag = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++tag) {
    const std::size_t bytes = part_at(buffers, std::min(distance, ranks - distance));
    const StepIndex sent = schedule.add({.kind = StepKind::kSend,
                                         .peer = self.neighbour(-distance),
                                         .tag = tag,
                                         .src = work,
                                         .bytes = bytes});
    for (const StepIndex earlier : made)
      schedule.wait_for(sent, earlier);
    made.push_back(schedule.add({.kind = StepKind::kReceive,
                                 .peer = self.neighbour(distance),
                                 .tag = tag,
                                 .dst = work + part_at(buffers, distance),
                                 .bytes = bytes}));
  }
  const std::size_t to_end = part_at(buffers, ranks - self.rank);
  const Step rest{.dst = buffers.out + part_at(buffers, self.rank), .src = work, .bytes = to_end};
  const Step front{.dst = buffers.out, .src = work + to_end, .bytes = part_at(buffers, self.rank)};
  for (const Step& step : {rest, front}) {
    const StepIndex copy = schedule.add(step);
    for (const StepIndex earlier : made)
      schedule.wait_for(copy, earlier);
  }
}

}  // namespace regatta::collective
