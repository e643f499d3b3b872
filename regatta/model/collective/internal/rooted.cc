#include "regatta/model/collective/internal/rooted.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/ring.h"

namespace regatta::collective {
namespace {

std::size_t part_at(const Buffers& buffers, int rank) {
  return buffers.bytes() * static_cast<std::size_t>(rank);
}

void copy_part(CollectiveSchedule& schedule, std::byte* to, const std::byte* from,
               std::size_t bytes) {
  if (to != from) schedule.add({.kind = StepKind::kCopy, .dst = to, .src = from, .bytes = bytes});
}

}  // namespace

void direct_gather(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                   int root) {
  const std::size_t bytes = buffers.bytes();
  if (self.rank != root) {
    schedule.add({.kind = StepKind::kSend, .peer = root, .src = buffers.in, .bytes = bytes});
    return;
  }
  copy_part(schedule, buffers.out + part_at(buffers, root), buffers.in, bytes);
  for (int distance = 1; distance < self.world_size; ++distance) {
    const int from = self.neighbour(distance);
    schedule.add({.kind = StepKind::kReceive,
                  .peer = from,
                  .dst = buffers.out + part_at(buffers, from),
                  .bytes = bytes});
  }
}

void direct_scatter(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                    int root) {
  const std::size_t bytes = buffers.bytes();
  if (self.rank != root) {
    schedule.add({.kind = StepKind::kReceive, .peer = root, .dst = buffers.out, .bytes = bytes});
    return;
  }
  copy_part(schedule, buffers.out, buffers.in + part_at(buffers, root), bytes);
  for (int distance = 1; distance < self.world_size; ++distance) {
    const int to = self.neighbour(distance);
    schedule.add({.kind = StepKind::kSend,
                  .peer = to,
                  .src = buffers.in + part_at(buffers, to),
                  .bytes = bytes});
  }
}

void direct_reduce(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                   int root) {
  const std::size_t bytes = buffers.bytes();
  if (self.rank != root) {
    schedule.add({.kind = StepKind::kSend, .peer = root, .src = buffers.in, .bytes = bytes});
    return;
  }
  std::vector<const std::byte*> parts(static_cast<std::size_t>(self.world_size), buffers.in);
  std::vector<StepIndex> receives;
  std::byte* const arrivals = schedule.scratch(bytes * parts.size());
  for (int distance = 1; distance < self.world_size; ++distance) {
    const int from = self.neighbour(distance);
    std::byte* const at = arrivals + part_at(buffers, from);
    parts[as_index(from)] = at;
    receives.push_back(
        schedule.add({.kind = StepKind::kReceive, .peer = from, .dst = at, .bytes = bytes}));
  }
  // Partial sums stay apart from `out`, which may be the own input.
  std::byte* const sum = schedule.scratch(bytes);
  const std::byte* left = parts.front();
  StepIndex before = 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    const StepIndex index = schedule.add({.kind = StepKind::kReduce,
                                          .dst = is_last ? buffers.out : sum,
                                          .src = left,
                                          .other = parts[i],
                                          .bytes = bytes,
                                          .finishes = is_last});
    for (const StepIndex received : receives)
      if (i == 1) schedule.wait_for(index, received);
    if (i > 1) schedule.wait_for(index, before);
    left = sum;
    before = index;
  }
}

void chain_reduce(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                  int root, const RingOptions& options) {
  // Position 0 is the root; the last position begins.
  const int position = (self.rank - root + self.world_size) % self.world_size;
  const bool is_first = position == self.world_size - 1;
  const bool is_root = position == 0;
  const std::size_t bytes = buffers.bytes();
  const PieceSplit cut = split_into_pieces(bytes, options);
  std::byte* const partial = is_root ? buffers.out : (is_first ? nullptr : schedule.scratch(bytes));
  for (std::uint32_t i = 0; i < cut.pieces; ++i) {
    const std::size_t at = i * cut.piece_bytes;
    const std::size_t part = std::min(cut.piece_bytes, bytes - at);
    StepIndex received = 0;
    if (!is_first)
      received = schedule.add({.kind = StepKind::kReceiveReduce,
                               .peer = self.neighbour(1),
                               .tag = i,
                               .dst = partial + at,
                               .src = buffers.in + at,
                               .bytes = part,
                               .finishes = is_root});
    if (is_root) continue;
    const StepIndex sent = schedule.add({.kind = StepKind::kSend,
                                         .peer = self.neighbour(-1),
                                         .tag = i,
                                         .src = (is_first ? buffers.in : partial) + at,
                                         .bytes = part});
    if (!is_first) schedule.wait_for(sent, received);
  }
}

}  // namespace regatta::collective
