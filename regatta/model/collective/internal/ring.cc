#include "regatta/model/collective/internal/ring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/bundle.h"
#include "regatta/model/collective/internal/chunk_window.h"

namespace regatta::collective {
namespace {

constexpr std::size_t kPieceBytesMin = std::size_t{32} << 10;
constexpr std::size_t kPieceBytesMax = std::size_t{512} << 10;
constexpr std::uint32_t kPiecesMax = 8;
// So that the pieces of a step can be counted in 20 bits: 4 GiB of them.
constexpr std::size_t kGivenPieceBytesMin = std::size_t{4} << 10;

// Builds the steps of one rank; remembers for each segment what its pieces wait for.
class RingBuilder {
 public:
  RingBuilder(CollectiveSchedule& schedule, const GroupPosition& self, const RankParts& segments,
              const RingOptions& options)
      : schedule_(schedule),
        self_(self),
        segments_(segments),
        options_(options),
        ready_(static_cast<std::size_t>(self.world_size)) {}

  int segment(int distance) const { return self_.neighbour(distance); }

  // Sends segment k from `from` (its first byte); each piece after the step that made it.
  void send(int k, const std::byte* from, std::uint32_t step) {
    const std::size_t bytes = segments_.bytes(k);
    const PieceSplit cut = split_into_pieces(bytes, options_);
    auto& ready = ready_[as_index(k)];
    ready.resize(cut.pieces, kNoStep);
    last_sends_.assign(cut.pieces, kNoStep);
    for (std::uint32_t i = 0; i < cut.pieces; ++i) {
      const std::size_t at = i * cut.piece_bytes;
      const StepIndex index = schedule_.add({.kind = StepKind::kSend,
                                             .peer = self_.neighbour(1),
                                             .tag = tag(step, i),
                                             .src = from + at,
                                             .bytes = std::min(cut.piece_bytes, bytes - at)});
      if (ready[i] != kNoStep) schedule_.wait_for(index, ready[i]);
      last_sends_[i] = index;
    }
  }

  // Receives segment k into `to`; with `local` it is reduced with the segment that begins there.
  struct Target {
    std::byte* to;
    const std::byte* local = nullptr;
    bool finishes = false;
  };
  void receive(int k, const Target& target, std::uint32_t step,
               const std::vector<StepIndex>& after = {}) {
    const std::size_t bytes = segments_.bytes(k);
    const PieceSplit cut = split_into_pieces(bytes, options_);
    auto& ready = ready_[as_index(k)];
    ready.assign(cut.pieces, kNoStep);
    last_receives_.clear();
    for (std::uint32_t i = 0; i < cut.pieces; ++i) {
      const std::size_t at = i * cut.piece_bytes;
      Step piece{.kind = StepKind::kReceive,
                 .peer = self_.neighbour(-1),
                 .tag = tag(step, i),
                 .dst = target.to + at,
                 .bytes = std::min(cut.piece_bytes, bytes - at),
                 .finishes = target.finishes};
      if (target.local != nullptr) {
        piece.kind = StepKind::kReceiveReduce;
        piece.src = target.local + at;
      }
      const StepIndex index = schedule_.add(piece);
      for (const StepIndex earlier : after)
        schedule_.wait_for(index, earlier);
      if (receives_.size() >= kReceivesAhead)
        schedule_.wait_for(index, receives_[receives_.size() - kReceivesAhead]);
      receives_.push_back(index);
      last_receives_.push_back(index);
      ready[i] = index;
    }
  }

  // The steps of the newest call to send() and to receive().
  const std::vector<StepIndex>& last_sends() const { return last_sends_; }
  const std::vector<StepIndex>& last_receives() const { return last_receives_; }

 private:
  // Pieces of a step are fewer than 2^20.
  static std::uint32_t tag(std::uint32_t step, std::uint32_t piece) { return step << 20 | piece; }

  CollectiveSchedule& schedule_;
  GroupPosition self_;
  RankParts segments_;
  RingOptions options_;
  std::vector<std::vector<StepIndex>> ready_;  // by segment, then piece
  std::vector<StepIndex> receives_;
  std::vector<StepIndex> last_sends_;
  std::vector<StepIndex> last_receives_;
};

}  // namespace

PieceSplit split_into_pieces(std::size_t bytes, const RingOptions& options) {
  if (bytes == 0) return {};
  constexpr std::size_t kAlignment = 64;
  std::size_t piece =
      std::clamp((bytes + kPiecesMax - 1) / kPiecesMax, kPieceBytesMin, kPieceBytesMax);
  if (options.piece_bytes > 0) piece = std::max(options.piece_bytes, kGivenPieceBytesMin);
  piece = (piece + kAlignment - 1) / kAlignment * kAlignment;
  return {piece, static_cast<std::uint32_t>((bytes + piece - 1) / piece)};
}

void ring_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const RingOptions& options) {
  const RankParts segments{buffers.count, buffers.element_bytes, self.world_size};
  RingBuilder ring(schedule, self, segments, options);
  const int last = self.world_size - 2;
  std::uint32_t step = 0;
  for (int s = 0; s <= last; ++s, ++step) {
    const int out_segment = ring.segment(-1 - s);
    const int in_segment = ring.segment(-2 - s);
    // The first part goes out as it came in; the later ones are partial results.
    const std::byte* from = s == 0 ? buffers.in : buffers.out;
    ring.send(out_segment, from + segments.begin(out_segment), step);
    ring.receive(in_segment,
                 {.to = buffers.out + segments.begin(in_segment),
                  .local = buffers.in + segments.begin(in_segment),
                  .finishes = s == last},
                 step);
  }
  // A final segment can only arrive after the partial one that lay at the same place was sent on
  // and came back reduced, so these receives wait for nothing.
  for (int s = 0; s <= last; ++s, ++step) {
    const int out_segment = ring.segment(-s);
    const int in_segment = ring.segment(-1 - s);
    ring.send(out_segment, buffers.out + segments.begin(out_segment), step);
    ring.receive(in_segment, {.to = buffers.out + segments.begin(in_segment)}, step);
  }
}

void ring_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                         const Buffers& buffers, const RingOptions& options) {
  const auto parts = static_cast<std::size_t>(self.world_size);
  ring_reduce_scatter_v(schedule, self, buffers,
                        {buffers.count * parts, buffers.element_bytes, self.world_size}, options);
}

void ring_reduce_scatter_v(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers, const RankParts& segments,
                           const RingOptions& options) {
  RingBuilder ring(schedule, self, segments, options);
  const int last = self.world_size - 2;
  // Partial results alternate between two places: one arrives while the other leaves.
  // Each of two ranks sends while it receives the result. If the receive waited for the sends, both
  // would wait for ever, because a large message leaves when its receiver is ready. So a result
  // that overwrites the input, which the sends still read, goes to a separate place first.
  const bool is_aside =
      last == 0 && overlap(buffers.in, segments.end(), buffers.out, buffers.bytes());
  std::byte* const places[2] = {
      last > 0 || is_aside ? schedule.scratch(segments.bytes_max()) : nullptr,
      last > 1 ? schedule.scratch(segments.bytes_max()) : nullptr};
  std::vector<StepIndex> place_readers[2];  // the last sends from each place: parts may be empty
  std::vector<StepIndex> input_readers;     // steps that read `in`, but the last ones
  for (int s = 0; s <= last; ++s) {
    const auto step = static_cast<std::uint32_t>(s);
    const int out_segment = ring.segment(-1 - s);
    const int in_segment = ring.segment(-2 - s);
    const std::byte* from = s == 0 ? buffers.in + segments.begin(out_segment) : places[(s - 1) % 2];
    const auto first = static_cast<StepIndex>(schedule.steps().size());
    ring.send(out_segment, from, step);
    // `out` may lie anywhere on `in`: it is written when all else was read. A place is free again
    // when the sends of the step before have ended.
    std::vector<StepIndex> after = place_readers[s % 2];
    if (s == last && s > 0) {
      after.insert(after.end(), input_readers.begin(), input_readers.end());
      after = {join(schedule, after)};
    }
    ring.receive(in_segment,
                 {.to = s == last && !is_aside ? buffers.out : places[s % 2],
                  .local = buffers.in + segments.begin(in_segment),
                  .finishes = s == last},
                 step, after);
    if (is_aside) {
      std::vector<StepIndex> both = ring.last_sends();
      both.insert(both.end(), ring.last_receives().begin(), ring.last_receives().end());
      const StepIndex all = join(schedule, both);
      schedule.add(
          {.kind = StepKind::kCopy, .dst = buffers.out, .src = places[0], .bytes = buffers.bytes()},
          {all});
    }
    if (s > 0 && !ring.last_sends().empty()) place_readers[(s - 1) % 2] = ring.last_sends();
    const auto end = static_cast<StepIndex>(schedule.steps().size());
    for (StepIndex k = first; k < end; ++k)
      if (s == 0 || schedule.steps()[k].kind == StepKind::kReceiveReduce)
        input_readers.push_back(k);
  }
}

void ring_all_gather(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const RingOptions& options) {
  const auto parts = static_cast<std::size_t>(self.world_size);
  ring_all_gather_v(schedule, self, buffers,
                    {buffers.count * parts, buffers.element_bytes, self.world_size}, options);
}

void ring_all_gather_v(CollectiveSchedule& schedule, const GroupPosition& self,
                       const Buffers& buffers, const RankParts& segments,
                       const RingOptions& options) {
  RingBuilder ring(schedule, self, segments, options);
  std::byte* const own = buffers.out + segments.begin(self.rank);
  std::vector<StepIndex> copied;
  if (own != buffers.in && buffers.count > 0)
    copied.push_back(schedule.add(
        {.kind = StepKind::kCopy, .dst = own, .src = buffers.in, .bytes = buffers.bytes()}));
  for (int s = 0; s + 1 < self.world_size; ++s) {
    const auto step = static_cast<std::uint32_t>(s);
    const int out_segment = ring.segment(-s);
    const int in_segment = ring.segment(-1 - s);
    // `in` may be the first part of `out`: nothing is received before it was copied away, and what
    // is sent comes from the copy.
    const auto first = static_cast<StepIndex>(schedule.steps().size());
    ring.send(out_segment, buffers.out + segments.begin(out_segment), step);
    if (s == 0)
      for (auto k = first; k < schedule.steps().size(); ++k)
        if (!copied.empty()) schedule.wait_for(k, copied.front());
    ring.receive(in_segment, {.to = buffers.out + segments.begin(in_segment)}, step, copied);
  }
}

void chain_broadcast(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, int root, const RingOptions& options) {
  const int position = (self.rank - root + self.world_size) % self.world_size;
  const std::size_t bytes = buffers.bytes();
  const PieceSplit cut = split_into_pieces(bytes, options);
  std::vector<StepIndex> receives;
  for (std::uint32_t i = 0; i < cut.pieces; ++i) {
    const std::size_t at = i * cut.piece_bytes;
    const Step piece{.tag = i,
                     .dst = buffers.out + at,
                     .src = buffers.out + at,
                     .bytes = std::min(cut.piece_bytes, bytes - at)};
    if (position > 0) {
      Step receive = piece;
      receive.kind = StepKind::kReceive;
      receive.peer = self.neighbour(-1);
      receives.push_back(schedule.add(receive));
      if (i >= kReceivesAhead) schedule.wait_for(receives[i], receives[i - kReceivesAhead]);
    }
    if (position + 1 < self.world_size) {
      Step send = piece;
      send.kind = StepKind::kSend;
      send.peer = self.neighbour(1);
      const StepIndex index = schedule.add(send);
      if (position > 0) schedule.wait_for(index, receives[i]);
    }
  }
}

}  // namespace regatta::collective
