#include "regatta/model/collective/internal/direct.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta::collective {
namespace {

// One contribution to a reduction: where it lies and the step that puts it there.
struct DirectPart {
  const std::byte* at;
  StepIndex step;
  bool is_local;
};

// Combines the parts in the order given, the last operation into `out`, which is written after all
// of `readers` (steps that read what may lie there) have ended. One part alone is copied.
void reduce_parts(CollectiveSchedule& schedule, const std::vector<DirectPart>& parts,
                  const Buffers& buffers, const std::vector<StepIndex>& readers) {
  const std::size_t bytes = buffers.bytes();
  std::byte* const sum = schedule.scratch(bytes);
  DirectPart left = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    const StepIndex index = schedule.add({.kind = StepKind::kReduce,
                                          .dst = is_last ? buffers.out : sum,
                                          .src = left.at,
                                          .other = parts[i].at,
                                          .bytes = bytes,
                                          .finishes = is_last});
    if (!left.is_local) schedule.wait_for(index, left.step);
    if (!parts[i].is_local) schedule.wait_for(index, parts[i].step);
    if (is_last)
      for (const StepIndex reader : readers)
        schedule.wait_for(index, reader);
    left = {sum, index, false};
  }
}

// Every rank gets from every other what `part_of` names of its `in`, as long as the own `out`, and
// combines all of it in rank order.
template <typename PartOf>
void reduce_from_all(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const PartOf& part_of) {
  const std::size_t bytes = buffers.bytes();
  std::vector<DirectPart> parts(static_cast<std::size_t>(self.world_size),
                                DirectPart{buffers.in + part_of(self.rank).from, 0, true});
  std::vector<StepIndex> sends;
  std::byte* const arrivals = schedule.scratch(bytes * parts.size());
  for (int distance = 1; distance < self.world_size; ++distance) {
    const int to = self.neighbour(distance);
    const ByteRange given = part_of(to);
    sends.push_back(schedule.add({.kind = StepKind::kSend,
                                  .peer = to,
                                  .src = buffers.in + given.from,
                                  .bytes = given.bytes}));
    const int from = self.neighbour(-distance);
    const auto index = static_cast<std::size_t>(from);
    std::byte* const at = arrivals + bytes * index;
    parts[index] = {
        at, schedule.add({.kind = StepKind::kReceive, .peer = from, .dst = at, .bytes = bytes}),
        false};
  }
  reduce_parts(schedule, parts, buffers, sends);
}

// The steps of recursive doubling on one rank.
class Doubling {
 public:
  Doubling(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers)
      : schedule_(schedule), self_(self), bytes_(buffers.bytes()), value_{buffers.in, 0, true} {}

  void send(int peer, std::uint32_t tag) {
    const StepIndex index = schedule_.add(
        {.kind = StepKind::kSend, .peer = peer, .tag = tag, .src = value_.at, .bytes = bytes_});
    if (!value_.is_local) schedule_.wait_for(index, value_.step);
    sends_.push_back(index);
  }
  void receive(int peer, std::uint32_t tag) { value_ = received(peer, tag); }
  // The value of the lower rank is the left operand on both sides.
  void receive_and_combine(int peer, std::uint32_t tag) {
    const DirectPart theirs = received(peer, tag);
    const DirectPart& left = peer < self_.rank ? theirs : value_;
    const DirectPart& right = peer < self_.rank ? value_ : theirs;
    std::byte* const sum = schedule_.scratch(bytes_);
    const StepIndex index = schedule_.add(
        {.kind = StepKind::kReduce, .dst = sum, .src = left.at, .other = right.at, .bytes = bytes_},
        {theirs.step});
    if (!value_.is_local) schedule_.wait_for(index, value_.step);
    value_ = {sum, index, false};
  }
  // `out` may be `in`, which the sends read.
  void copy_to(std::byte* out) {
    const StepIndex index = schedule_.add(
        {.kind = StepKind::kCopy, .dst = out, .src = value_.at, .bytes = bytes_, .finishes = true});
    if (!value_.is_local) schedule_.wait_for(index, value_.step);
    for (const StepIndex send : sends_)
      schedule_.wait_for(index, send);
  }

 private:
  DirectPart received(int peer, std::uint32_t tag) {
    std::byte* const to = schedule_.scratch(bytes_);
    return {to,
            schedule_.add(
                {.kind = StepKind::kReceive, .peer = peer, .tag = tag, .dst = to, .bytes = bytes_}),
            false};
  }

  CollectiveSchedule& schedule_;
  GroupPosition self_;
  std::size_t bytes_;
  DirectPart value_;
  std::vector<StepIndex> sends_;
};

}  // namespace

void exchange_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers) {
  reduce_from_all(schedule, self, buffers, [&](int) { return ByteRange{0, buffers.bytes()}; });
}

void doubling_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers) {
  int power = 1;
  while (power * 2 <= self.world_size)
    power *= 2;
  const int extra = self.world_size - power;  // ranks that lend their value to rank - power
  constexpr std::uint32_t kFold = 100;
  constexpr std::uint32_t kUnfold = 101;
  Doubling steps(schedule, self, buffers);
  if (self.rank >= power) {
    steps.send(self.rank - power, kFold);
    steps.receive(self.rank - power, kUnfold);
  } else {
    if (self.rank < extra) steps.receive_and_combine(self.rank + power, kFold);
    std::uint32_t tag = 0;
    for (int distance = 1; distance < power; distance *= 2, ++tag) {
      const int peer = self.rank ^ distance;
      steps.send(peer, tag);
      steps.receive_and_combine(peer, tag);
    }
    if (self.rank < extra) steps.send(self.rank + power, kUnfold);
  }
  steps.copy_to(buffers.out);
}

void direct_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                       const Buffers& buffers) {
  const std::size_t bytes = buffers.bytes();
  const auto part = [&](int rank) { return buffers.out + bytes * static_cast<std::size_t>(rank); };
  std::byte* const own = part(self.rank);
  // `in` may lie anywhere on `out`: it is copied to its place before anything else moves.
  const StepIndex copy = schedule.add({.kind = StepKind::kCopy,
                                       .dst = own,
                                       .src = buffers.in,
                                       .bytes = own == buffers.in ? std::size_t{0} : bytes});
  for (int distance = 1; distance < self.world_size; ++distance) {
    schedule.add(
        {.kind = StepKind::kSend, .peer = self.neighbour(distance), .src = own, .bytes = bytes},
        {copy});
    const int from = self.neighbour(-distance);
    schedule.add({.kind = StepKind::kReceive, .peer = from, .dst = part(from), .bytes = bytes},
                 {copy});
  }
}

void direct_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers) {
  const std::size_t bytes = buffers.bytes();
  reduce_from_all(schedule, self, buffers, [&](int rank) {
    return ByteRange{bytes * static_cast<std::size_t>(rank), bytes};
  });
}

void direct_reduce_scatter_v(CollectiveSchedule& schedule, const GroupPosition& self,
                             const Buffers& buffers, const RankParts& segments) {
  reduce_from_all(schedule, self, buffers, [&](int rank) { return segments.of(rank); });
}

void tree_broadcast(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                    int root) {
  const int position = (self.rank - root + self.world_size) % self.world_size;
  const std::size_t bytes = buffers.bytes();
  int distance = 1;
  bool has_received = false;
  StepIndex received = 0;
  // The lowest set bit of the position is the distance to the sender, each lower bit the distance
  // to a receiver.
  while (distance < self.world_size && (position & distance) == 0)
    distance *= 2;
  if (position != 0) {
    received = schedule.add({.kind = StepKind::kReceive,
                             .peer = self.neighbour(-distance),
                             .dst = buffers.out,
                             .bytes = bytes});
    has_received = true;
  }
  for (int step = distance / 2; step >= 1; step /= 2) {
    if (position + step >= self.world_size) continue;
    const StepIndex index = schedule.add({.kind = StepKind::kSend,
                                          .peer = self.neighbour(step),
                                          .src = buffers.out,
                                          .bytes = bytes});
    if (has_received) schedule.wait_for(index, received);
  }
}

void dissemination_barrier(CollectiveSchedule& schedule, const GroupPosition& self) {
  std::uint32_t tag = 0;
  std::vector<StepIndex> before;
  for (int distance = 1; distance < self.world_size; distance *= 2, ++tag) {
    const Step send{.kind = StepKind::kSend, .peer = self.neighbour(distance), .tag = tag};
    const StepIndex sent = schedule.add(send);
    for (const StepIndex earlier : before)
      schedule.wait_for(sent, earlier);
    const Step receive{.kind = StepKind::kReceive, .peer = self.neighbour(-distance), .tag = tag};
    before.push_back(schedule.add(receive));
  }
}

}  // namespace regatta::collective
