#include "regatta/model/collective/internal/ordered.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/chunk_window.h"
#include "regatta/model/collective/internal/gather_all.h"
#include "regatta/model/collective/internal/server_rows.h"
#include "regatta/model/collective/streamed_copy.h"
#include "regatta/model/cost/collective.h"

namespace regatta::collective {
namespace {

// More chunks hide nothing more, until they become so long that a call works on one for longer than
// a millisecond. Tags have room for 512 GiB.
constexpr std::size_t kChunksEnough = 32;
constexpr std::size_t kChunkBytesMax = std::size_t{8} << 20;
// Up to here two ranks exchange whole vectors.
constexpr std::size_t kSmallOfTwo = std::size_t{256} << 10;
constexpr int kEveryone = -1;

// Part k of `count` parts, as even as whole elements allow; ranges in bytes.
ByteRange nth_part(const ByteRange& range, int k, int count, std::size_t element_bytes) {
  const auto n = static_cast<std::size_t>(count);
  const std::size_t elements = range.bytes / element_bytes;
  const auto begin = [&](std::size_t i) {
    return (elements / n * i + std::min(elements % n, i)) * element_bytes;
  };
  const auto index = static_cast<std::size_t>(k);
  return {range.from + begin(index), begin(index + 1) - begin(index)};
}

// Into how many chunks, which are worked on one behind the other, so many bytes are cut.
int count_chunks(std::size_t bytes) {
  return static_cast<int>(std::max(
      std::clamp<std::size_t>(bytes / kChunkBytesMin, 1, kChunksEnough), bytes / kChunkBytesMax));
}

// The servers in the order of their ranks when each is a whole subtree, else every rank alone.
ServerRows rows_of(int ranks, const cost::HierarchicalLayout* grid) {
  ServerRows alone;
  for (int rank = 0; rank < ranks; ++rank)
    alone.push_back({rank});
  if (grid == nullptr) return alone;
  ServerRows rows = grid->servers;
  for (auto& row : rows)
    std::sort(row.begin(), row.end());
  std::sort(rows.begin(), rows.end());
  int next = 0;
  for (const auto& row : rows) {
    if (!std::has_single_bit(row.size())) return alone;
    for (const int rank : row)
      if (rank != next++) return alone;
  }
  return rows;
}

// A step that reduces what lies at `sources` to `out`.
StepIndex add_reduction(CollectiveSchedule& schedule, const Reduction& reduction,
                        std::vector<const std::byte*> sources, std::byte* out, std::size_t bytes) {
  return schedule.add_call([reduction, sources = std::move(sources), out, bytes] {
    std::byte* const to = out;
    combine_many(reduction, {.cached = {&to, 1}, .streamed = {}}, sources, bytes);
  });
}

class OrderedBuilder {
 public:
  // The whole result goes to every rank, or to `root` alone.
  OrderedBuilder(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                 ServerRows rows, int root)
      : schedule_(schedule),
        buffers_(buffers),
        rows_(std::move(rows)),
        rank_(self.rank),
        root_(root),
        window_(schedule, kChunksAhead) {
    for (std::size_t s = 0; s < rows_.size(); ++s)
      for (std::size_t l = 0; l < rows_[s].size(); ++l)
        if (rows_[s][l] == rank_) {
          server_ = static_cast<int>(s);
          local_ = static_cast<int>(l);
        }
    const int chunks = count_chunks(buffers.bytes());
    const auto chunk = [&](int k) {
      return nth_part({0, buffers.bytes()}, k, chunks, buffers.element_bytes);
    };
    allot(chunk(0).bytes);
    for (int k = 0; k < chunks; ++k)
      add_chunk(chunk(k));
  }

 private:
  // Where a chunk's parts arrive; used again kChunksAhead chunks later.
  struct Desk {
    std::byte* gathered = nullptr;  // by local: their slices
    std::byte* partial = nullptr;   // the sum of them
    std::byte* arrived = nullptr;   // by server: their pieces
    std::byte* result = nullptr;    // where `out` is not for it
  };

  int servers() const { return static_cast<int>(rows_.size()); }
  int locals() const { return static_cast<int>(rows_.front().size()); }
  static std::size_t times(int count, std::size_t bytes) {
    return static_cast<std::size_t>(count) * bytes;
  }

  void allot(std::size_t chunk_bytes) {
    const auto share = [&](int parts) {
      const std::size_t elements = chunk_bytes / buffers_.element_bytes;
      return (elements / static_cast<std::size_t>(parts) + 1) * buffers_.element_bytes;
    };
    slice_bytes_ = share(locals());
    piece_bytes_ = slice_bytes_ / static_cast<std::size_t>(servers()) / buffers_.element_bytes *
                       buffers_.element_bytes +
                   2 * buffers_.element_bytes;
    for (std::size_t i = 0; i < kChunksAhead; ++i) {
      Desk desk;
      if (locals() > 1) {
        desk.gathered = schedule_.scratch(times(locals(), slice_bytes_));
        desk.partial = schedule_.scratch(slice_bytes_);
      }
      desk.arrived = schedule_.scratch(times(servers(), piece_bytes_));
      if (root_ != kEveryone && root_ != rank_) desk.result = schedule_.scratch(piece_bytes_);
      desks_.push_back(desk);
    }
  }

  void add_chunk(const ByteRange& chunk) {
    chunk_ = window_.chunk();
    range_ = chunk;
    read_in_.assign(static_cast<std::size_t>(locals()), kNoStep);
    final_.assign(static_cast<std::size_t>(servers()), kNoStep);
    reduce_inside();
    reduce_between();
    if (root_ == kEveryone)
      give_result_back();
    else
      give_result_to_root();
    window_.end_chunk();
  }

  const Desk& desk() const { return desks_[window_.slot()]; }
  ByteRange slice(int local) const {
    return nth_part(range_, local, locals(), buffers_.element_bytes);
  }
  ByteRange piece(int local, int server) const {
    return nth_part(slice(local), server, servers(), buffers_.element_bytes);
  }

  // kNoStep where there is nothing to move.
  StepIndex send(int peer, std::uint32_t tag, const std::byte* from, std::size_t bytes,
                 StepIndex after) {
    if (bytes == 0) return kNoStep;
    return pace(
        schedule_.add(
            {.kind = StepKind::kSend, .peer = peer, .tag = tag, .src = from, .bytes = bytes}),
        after);
  }
  StepIndex receive(int peer, std::uint32_t tag, std::byte* to, std::size_t bytes,
                    StepIndex after) {
    if (bytes == 0) return kNoStep;
    return pace(
        schedule_.add(
            {.kind = StepKind::kReceive, .peer = peer, .tag = tag, .dst = to, .bytes = bytes}),
        after);
  }
  StepIndex pace(StepIndex step, StepIndex after) {
    if (after != kNoStep) schedule_.wait_for(step, after);
    return window_.add(step);
  }
  // Waits for all of `after` that there are.
  StepIndex reduce(const Reduction& reduction, std::vector<const std::byte*> sources,
                   std::byte* out, std::size_t bytes, const std::vector<StepIndex>& after) {
    const StepIndex step =
        pace(add_reduction(schedule_, reduction, std::move(sources), out, bytes), kNoStep);
    for (const StepIndex earlier : after)
      if (earlier != kNoStep) schedule_.wait_for(step, earlier);
    return step;
  }

  // The own slice, summed over the server, to desk().partial.
  void reduce_inside() {
    ready_ = kNoStep;
    if (locals() == 1) return;
    const ByteRange own = slice(local_);
    std::vector<const std::byte*> sources(static_cast<std::size_t>(locals()));
    std::vector<StepIndex> arrived;
    sources[as_index(local_)] = buffers_.in + own.from;
    for (int d = 1; d < locals(); ++d) {
      const auto tag = tag_of(chunk_, MessagePurpose::kGather, 0);
      const int to = wrap_around(local_, d, locals());
      read_in_[as_index(to)] = send(rank_at(rows_, server_, to), tag, buffers_.in + slice(to).from,
                                    slice(to).bytes, kNoStep);
      const int from = wrap_around(local_, -d, locals());
      std::byte* const at = desk().gathered + times(from, slice_bytes_);
      sources[as_index(from)] = at;
      arrived.push_back(receive(rank_at(rows_, server_, from), tag, at, own.bytes, kNoStep));
    }
    Reduction partial = schedule_.reduction;
    if (partial.op == ReduceOp::kAverage) partial.op = ReduceOp::kSum;
    if (own.bytes > 0)
      ready_ = reduce(partial, std::move(sources), desk().partial, own.bytes, arrived);
  }

  // This server's value of what lies at `range` of the vector.
  const std::byte* value(const ByteRange& range) const {
    return locals() > 1 ? desk().partial + (range.from - slice(local_).from)
                        : buffers_.in + range.from;
  }
  std::byte* result(const ByteRange& range) const {
    return desk().result != nullptr ? desk().result : buffers_.out + range.from;
  }

  void reduce_between() {
    const int n = servers();
    const ByteRange own = piece(local_, server_);
    std::vector<const std::byte*> sources(static_cast<std::size_t>(n));
    std::vector<StepIndex> after{ready_};
    sources[as_index(server_)] = value(own);
    sent_.assign(static_cast<std::size_t>(n), kNoStep);
    for (int d = 1; d < n; ++d) {
      const auto tag = tag_of(chunk_, MessagePurpose::kReduce, 0);
      const int to = wrap_around(server_, d, n);
      const ByteRange theirs = piece(local_, to);
      sent_[as_index(to)] =
          send(rank_at(rows_, to, local_), tag, value(theirs), theirs.bytes, ready_);
      const int from = wrap_around(server_, -d, n);
      std::byte* const at = desk().arrived + times(from, piece_bytes_);
      sources[as_index(from)] = at;
      after.push_back(receive(rank_at(rows_, from, local_), tag, at, own.bytes, kNoStep));
    }
    if (own.bytes > 0)
      final_[as_index(server_)] =
          reduce(schedule_.reduction, std::move(sources), result(own), own.bytes, after);
  }

  void give_result_back() {
    const int n = servers();
    const ByteRange own = piece(local_, server_);
    for (int d = 1; d < n; ++d) {
      const auto tag = tag_of(chunk_, MessagePurpose::kResult, 0);
      send(rank_at(rows_, wrap_around(server_, d, n), local_), tag, buffers_.out + own.from,
           own.bytes, final_[as_index(server_)]);
      const int owner = wrap_around(server_, -d, n);
      const ByteRange theirs = piece(local_, owner);
      // In place, what lay there has to be sent before.
      final_[as_index(owner)] =
          receive(rank_at(rows_, owner, local_), tag, buffers_.out + theirs.from, theirs.bytes,
                  sent_[as_index(owner)]);
      if (final_[as_index(owner)] != kNoStep && ready_ != kNoStep)
        schedule_.wait_for(final_[as_index(owner)], ready_);
    }
    for (int s = 0; s < n; ++s)
      spread_inside(s);
  }

  // The others of the server get server `s`'s piece of the slice.
  void spread_inside(int s) {
    const auto tag = tag_of(chunk_, MessagePurpose::kSpread, s);
    for (int d = 1; d < locals(); ++d) {
      const ByteRange mine = piece(local_, s);
      send(rank_at(rows_, server_, wrap_around(local_, d, locals())), tag, buffers_.out + mine.from,
           mine.bytes, final_[as_index(s)]);
      const int from = wrap_around(local_, -d, locals());
      const ByteRange theirs = piece(from, s);
      receive(rank_at(rows_, server_, from), tag, buffers_.out + theirs.from, theirs.bytes,
              read_in_[as_index(from)]);
    }
  }

  void give_result_to_root() {
    const auto tag = tag_of(chunk_, MessagePurpose::kResult, 0);
    const ByteRange own = piece(0, server_);
    if (rank_ != root_) {
      send(root_, tag, desk().result, own.bytes, final_[as_index(server_)]);
      return;
    }
    for (int s = 0; s < servers(); ++s) {
      if (s == server_) continue;
      const ByteRange theirs = piece(0, s);
      receive(rank_at(rows_, s, 0), tag, buffers_.out + theirs.from, theirs.bytes,
              sent_[as_index(s)]);
    }
  }

  CollectiveSchedule& schedule_;
  const Buffers buffers_;
  const ServerRows rows_;
  const int rank_;
  const int root_;
  int server_ = 0;
  int local_ = 0;
  std::size_t slice_bytes_ = 0;  // the longest
  std::size_t piece_bytes_ = 0;
  std::vector<Desk> desks_;
  ChunkWindow window_;
  // The chunk under way.
  std::size_t chunk_ = 0;
  ByteRange range_;
  StepIndex ready_ = kNoStep;       // the own slice is summed over the server
  std::vector<StepIndex> read_in_;  // by local: the send of the input's slice
  std::vector<StepIndex> sent_;     // by server: the send of its piece
  std::vector<StepIndex> final_;    // by server: its piece of the own slice is the result
};

// One step: everyone gets everything.
void exchange(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
  GatheredMessages all = gather_all(schedule, self, {.data = buffers.in, .bytes = buffers.bytes()});
  const StepIndex sum = add_reduction(schedule, schedule.reduction, std::move(all.messages),
                                      buffers.out, buffers.bytes());
  for (const StepIndex step : all.steps)
    schedule.wait_for(sum, step);
}

}  // namespace

void ordered_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                        const Buffers& buffers, const cost::HierarchicalLayout* grid) {
  const auto others = static_cast<std::size_t>(self.world_size - 1);
  // Two ranks send no more in this form: the longer one would only save half of the additions.
  const auto small =
      self.world_size == 2 ? kSmallOfTwo : static_cast<std::size_t>(cost::kSmallMessageBytes);
  if (buffers.bytes() * others <= small) return exchange(schedule, self, buffers);
  // Sums in f64 would have to travel as such.
  const bool is_wide = schedule.reduction.sums_in_f64 && can_sum_in_f64(schedule.reduction);
  OrderedBuilder(schedule, self, buffers, rows_of(self.world_size, is_wide ? nullptr : grid),
                 kEveryone);
}

void ordered_reduce(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
                    int root) {
  OrderedBuilder(schedule, self, buffers, rows_of(self.world_size, nullptr), root);
}

void ordered_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers) {
  std::vector<ByteRange> parts;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(self.world_size); ++rank)
    parts.push_back({rank * buffers.bytes(), buffers.bytes()});
  ordered_reduce_scatter_v(schedule, self, buffers, RankParts(std::move(parts)));
}

void ordered_reduce_scatter_v(CollectiveSchedule& schedule, const GroupPosition& self,
                              const Buffers& buffers, const RankParts& parts) {
  const ByteRange own = parts.of(self.rank);
  const std::byte* const mine = buffers.in + own.from;
  const bool is_aside =
      buffers.out != mine && overlap(buffers.out, own.bytes, buffers.in, parts.end());
  std::byte* const out = is_aside ? schedule.scratch(own.bytes) : buffers.out;
  const int chunks = count_chunks(parts.bytes_max());
  const auto cut = [&](const ByteRange& part, int k) {
    return nth_part(part, k, chunks, buffers.element_bytes);
  };
  const std::size_t desk_bytes = cut(own, 0).bytes;
  std::vector<std::byte*> desks;
  for (std::size_t i = 0; i < kChunksAhead; ++i)
    desks.push_back(schedule.scratch(desk_bytes * static_cast<std::size_t>(self.world_size)));
  ChunkWindow window(schedule, kChunksAhead);
  std::vector<StepIndex> ends;
  for (int k = 0; k < chunks; ++k) {
    const auto tag = tag_of(window.chunk(), MessagePurpose::kReduce, 0);
    const ByteRange chunk = cut(own, k);
    std::vector<const std::byte*> sources(static_cast<std::size_t>(self.world_size),
                                          buffers.in + chunk.from);
    std::vector<StepIndex> steps;
    const auto add = [&](const Step& step) {
      if (step.bytes > 0) steps.push_back(window.add(schedule.add(step)));
    };
    for (int d = 1; d < self.world_size; ++d) {
      const int to = self.neighbour(d);
      const ByteRange theirs = cut(parts.of(to), k);
      add({.kind = StepKind::kSend,
           .peer = to,
           .tag = tag,
           .src = buffers.in + theirs.from,
           .bytes = theirs.bytes});
      const int from = self.neighbour(-d);
      std::byte* const at = desks[window.slot()] + desk_bytes * static_cast<std::size_t>(from);
      sources[as_index(from)] = at;
      add({.kind = StepKind::kReceive, .peer = from, .tag = tag, .dst = at, .bytes = chunk.bytes});
    }
    if (chunk.bytes > 0) {
      const StepIndex sum =
          window.add(add_reduction(schedule, schedule.reduction, std::move(sources),
                                   out + (chunk.from - own.from), chunk.bytes));
      for (const StepIndex step : steps)
        schedule.wait_for(sum, step);
      ends.push_back(sum);
    }
    window.end_chunk();
  }
  if (!is_aside) return;
  const StepIndex copy =
      schedule.add({.kind = StepKind::kCopy, .dst = buffers.out, .src = out, .bytes = own.bytes});
  for (const StepIndex end : ends)
    schedule.wait_for(copy, end);
}

}  // namespace regatta::collective
