#include "regatta/model/collective/internal/halving.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/model/collective/internal/rank_parts.h"

namespace regatta::collective {
namespace {

// p, p halved and rounded up, ..., 1.
std::vector<int> halves(int ranks) {
  std::vector<int> counts{ranks};
  while (counts.back() > 1)
    counts.push_back((counts.back() + 1) / 2);
  return counts;
}

// The steps of one rank. Parts are counted from the rank's own one, which is part 0: while
// reducing, a rank works for `parts` ranks, itself and those behind it.
class Halving {
 public:
  Halving(CollectiveSchedule& schedule, const GroupPosition& self, const RankParts& segments)
      : schedule_(schedule), self_(self), segments_(segments), halves_(halves(self.world_size)) {}

  // Reduces the own part to `result`. Partial results lie in `work`, which has the shape of `in`
  // and may be `in`.
  void reduce(const std::byte* in, std::byte* work, std::byte* result) {
    for (std::size_t k = 0; k + 1 < halves_.size(); ++k) {
      const int half = halves_[k + 1];
      const int count = halves_[k] - half;
      const bool is_last = half == 1;
      const std::byte* const from = k == 0 ? in : work;
      send(self_.neighbour(half), runs(half, count), from, tag(k));
      std::vector<StepIndex> received;
      std::uint32_t number = 0;
      for (const ByteRange& run : runs(0, count)) {
        const Step step{.kind = StepKind::kReceiveReduce,
                        .peer = self_.neighbour(-half),
                        .tag = tag(k) + number++,
                        .dst = is_last ? result : work + run.from,
                        .src = from + run.from,
                        .bytes = run.bytes,
                        .finishes = is_last};
        received.push_back(add(step, made_));
      }
      // The part in the middle of an odd number has met nothing yet.
      if (k == 0 && count < half && work != in) keep_middle(in, work, half - 1);
      made_.insert(made_.end(), received.begin(), received.end());
    }
  }

  // `out` has this rank's part and receives the others after `ready`. The values at their places
  // were sent on before they arrive, since they are made of these values.
  void gather(std::byte* out, const std::vector<StepIndex>& ready) {
    for (std::size_t k = halves_.size() - 1; k-- > 0;) {
      const int half = halves_[k + 1];
      const int count = halves_[k] - half;
      const std::uint32_t first = tag(k + halves_.size());
      send(self_.neighbour(-half), runs(0, count), out, first);
      std::uint32_t number = 0;
      std::vector<StepIndex> received;
      for (const ByteRange& run : runs(half, count))
        received.push_back(add({.kind = StepKind::kReceive,
                                .peer = self_.neighbour(half),
                                .tag = first + number++,
                                .dst = out + run.from,
                                .bytes = run.bytes},
                               ready));
      made_.insert(made_.end(), received.begin(), received.end());
    }
  }

  // Later sends wait for `step` too.
  void note(StepIndex step) { made_.push_back(step); }

 private:
  static std::uint32_t tag(std::size_t round) { return static_cast<std::uint32_t>(round) * 2; }

  // The parts [first, first + count) that have bytes.
  std::vector<ByteRange> runs(int first, int count) const {
    const int begin = self_.neighbour(first);
    const int end = std::min(begin + count, self_.world_size);
    std::vector<ByteRange> all;
    const auto append = [&](int from, int to) {
      const std::size_t at = segments_.begin(from);
      const std::size_t end_at = segments_.of(to - 1).end();
      if (end_at > at) all.push_back({at, end_at - at});
    };
    append(begin, end);
    if (end - begin < count) append(0, count - (end - begin));
    return all;
  }

  StepIndex add(const Step& step, const std::vector<StepIndex>& after) {
    const StepIndex index = schedule_.add(step);
    for (const StepIndex earlier : after)
      schedule_.wait_for(index, earlier);
    return index;
  }

  void send(int peer, const std::vector<ByteRange>& what, const std::byte* from,
            std::uint32_t first) {
    std::uint32_t number = 0;
    for (const ByteRange& run : what)
      add({.kind = StepKind::kSend,
           .peer = peer,
           .tag = first + number++,
           .src = from + run.from,
           .bytes = run.bytes},
          made_);
  }

  void keep_middle(const std::byte* in, std::byte* work, int part) {
    for (const ByteRange& run : runs(part, 1))
      note(schedule_.add({.kind = StepKind::kCopy,
                          .dst = work + run.from,
                          .src = in + run.from,
                          .bytes = run.bytes}));
  }

  CollectiveSchedule& schedule_;
  GroupPosition self_;
  RankParts segments_;
  std::vector<int> halves_;
  std::vector<StepIndex> made_;  // what made the parts that are here
};

}  // namespace

void halving_doubling_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                                 const Buffers& buffers) {
  const RankParts segments{buffers.count, buffers.element_bytes, self.world_size};
  Halving halving(schedule, self, segments);
  halving.reduce(buffers.in, buffers.out, buffers.out + segments.begin(self.rank));
  halving.gather(buffers.out, {});
}

void halving_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers) {
  const auto parts = static_cast<std::size_t>(self.world_size);
  const RankParts segments{buffers.count * parts, buffers.element_bytes, self.world_size};
  const std::size_t all = segments.end();
  // The last receive must not wait for the sends, which read `in`: the partner's would wait too.
  const bool is_aside = overlap(buffers.in, all, buffers.out, buffers.bytes());
  std::byte* const result = is_aside ? schedule.scratch(buffers.bytes()) : buffers.out;
  // Half of it is touched, so half of it is real memory.
  std::byte* const work = schedule.scratch(all);
  Halving(schedule, self, segments).reduce(buffers.in, work, result);
  if (!is_aside) return;
  const StepIndex copy = schedule.add(
      {.kind = StepKind::kCopy, .dst = buffers.out, .src = result, .bytes = buffers.bytes()});
  for (StepIndex step = 0; step < copy; ++step)
    schedule.wait_for(copy, step);
}

void doubling_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers) {
  const auto parts = static_cast<std::size_t>(self.world_size);
  const RankParts segments{buffers.count * parts, buffers.element_bytes, self.world_size};
  Halving halving(schedule, self, segments);
  std::byte* const own = buffers.out + segments.begin(self.rank);
  std::vector<StepIndex> ready;
  if (own != buffers.in && buffers.count > 0) {
    ready.push_back(schedule.add(
        {.kind = StepKind::kCopy, .dst = own, .src = buffers.in, .bytes = buffers.bytes()}));
    halving.note(ready.front());
  }
  halving.gather(buffers.out, ready);
}

}  // namespace regatta::collective
