#include "regatta/model/collective/internal/hierarchical.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/model/collective/internal/chunk_window.h"
#include "regatta/model/collective/internal/server_rows.h"

namespace regatta::collective {
namespace {

constexpr std::size_t kChunksMax = 16;

class HierarchicalBuilder {
 public:
  HierarchicalBuilder(CollectiveSchedule& schedule, const GroupPosition& self,
                      const Buffers& buffers, const cost::HierarchicalLayout& grid)
      : schedule_(schedule), buffers_(buffers), grid_(grid) {
    for (std::size_t s = 0; s < grid.servers.size(); ++s)
      for (std::size_t l = 0; l < grid.servers[s].size(); ++l)
        if (grid.servers[s][l] == self.rank) {
          server_ = static_cast<int>(s);
          local_ = static_cast<int>(l);
        }
  }

  void add_chunk(std::size_t number, const ByteRange& chunk) {
    chunk_ = number;
    range_ = chunk;
    first_step_ = static_cast<StepIndex>(schedule_.steps().size());
    read_in_.assign(static_cast<std::size_t>(locals()), kNoStep);
    ready_ = kNoStep;
    final_.assign(static_cast<std::size_t>(servers()), kNoStep);
    reduce_inside();
    if (grid_.is_ring)
      ring_between();
    else
      direct_between();
    spread_inside();
    const StepIndex end = schedule_.add({.kind = StepKind::kCopy});
    for (StepIndex step = first_step_; step < end; ++step)
      schedule_.wait_for(end, step);
    ends_.push_back(end);
  }

 private:
  int servers() const { return static_cast<int>(grid_.servers.size()); }
  int locals() const { return grid_.ranks_per_server(); }

  // The part [begin, end) of the elements of `range`, as shares of the whole.
  ByteRange part(const ByteRange& range, double begin, double end) const {
    const std::size_t elements = range.bytes / buffers_.element_bytes;
    const auto at = [&](double share) {
      const auto index =
          static_cast<std::size_t>(std::llround(share * static_cast<double>(elements)));
      return std::min(index, elements) * buffers_.element_bytes;
    };
    return {range.from + at(begin), at(end) - at(begin)};
  }
  // The part of the chunk that rank `local` of each server reduces.
  ByteRange slice(int local) const {
    const double count = locals();
    return part(range_, local / count, (local + 1) / count);
  }
  // Server `server`'s part of a slice.
  ByteRange piece(int local, int server) const {
    double begin = 0;
    for (int s = 0; s < server; ++s)
      begin += grid_.weights[as_index(s)];
    const bool is_last = server + 1 == servers();
    const double end = is_last ? 1 : begin + grid_.weights[as_index(server)];
    return part(slice(local), begin, end);
  }

  // kNoStep where there is nothing to move. Messages to a peer for one purpose go chunk after
  // chunk: side by side all of them would end late, and nothing would come back meanwhile.
  StepIndex send(int peer, std::uint32_t tag, const std::byte* base, const ByteRange& what,
                 StepIndex after) {
    if (what.bytes == 0) return kNoStep;
    const StepIndex step = add({.kind = StepKind::kSend,
                                .peer = peer,
                                .tag = tag,
                                .src = base + what.from,
                                .bytes = what.bytes},
                               after);
    const auto [last, is_first] = last_sends_.try_emplace({peer, tag & 0xffffU}, step);
    if (!is_first) schedule_.wait_for(step, std::exchange(last->second, step));
    return step;
  }
  StepIndex receive(int peer, std::uint32_t tag, const ByteRange& what, StepIndex after) {
    if (what.bytes == 0) return kNoStep;
    return add({.kind = StepKind::kReceive,
                .peer = peer,
                .tag = tag,
                .dst = buffers_.out + what.from,
                .bytes = what.bytes},
               after);
  }
  // out = base (op) what comes.
  StepIndex reduce(int peer, std::uint32_t tag, const std::byte* base, const ByteRange& what,
                   StepIndex after, bool finishes) {
    if (what.bytes == 0) return kNoStep;
    return add({.kind = StepKind::kReceiveReduce,
                .peer = peer,
                .tag = tag,
                .dst = buffers_.out + what.from,
                .src = base + what.from,
                .bytes = what.bytes,
                .finishes = finishes},
               after);
  }
  StepIndex add(const Step& step, StepIndex after) {
    const StepIndex index = schedule_.add(step);
    if (after != kNoStep) schedule_.wait_for(index, after);
    if (ends_.size() >= kChunksAhead) schedule_.wait_for(index, ends_[ends_.size() - kChunksAhead]);
    return index;
  }

  // Every rank gets its slice of the chunk, summed over the server.
  void reduce_inside() {
    for (int d = 1; d < locals(); ++d) {
      const int local = wrap_around(local_, d, locals());
      read_in_[as_index(local)] =
          send(rank_at(grid_.servers, server_, local), tag_of(chunk_, MessagePurpose::kGather, 0),
               buffers_.in, slice(local), kNoStep);
    }
    for (int d = 1; d < locals(); ++d) {
      const std::byte* base = d == 1 ? buffers_.in : buffers_.out;
      ready_ =
          reduce(rank_at(grid_.servers, server_, wrap_around(local_, -d, locals())),
                 tag_of(chunk_, MessagePurpose::kGather, 0), base, slice(local_), ready_, false);
    }
  }

  // Where the sum over the server lies.
  const std::byte* sum() const { return locals() > 1 ? buffers_.out : buffers_.in; }
  int partner(int server) const { return rank_at(grid_.servers, server, local_); }

  void ring_between() {
    const int n = servers();
    const int to = partner(wrap_around(server_, 1, n));
    const int from = partner(wrap_around(server_, -1, n));
    std::vector<StepIndex> sent(static_cast<std::size_t>(n), kNoStep);
    StepIndex made = ready_;
    for (int k = 0; k + 1 < n; ++k) {
      const int out = wrap_around(server_, -1 - k, n);
      const int in = wrap_around(server_, -2 - k, n);
      const auto tag = tag_of(chunk_, MessagePurpose::kReduce, k);
      sent[as_index(out)] = send(to, tag, k == 0 ? sum() : buffers_.out, piece(local_, out), made);
      made = reduce(from, tag, sum(), piece(local_, in), ready_, k + 2 == n);
    }
    final_[as_index(server_)] = made;
    for (int k = 0; k + 1 < n; ++k) {
      const int out = wrap_around(server_, -k, n);
      const int in = wrap_around(server_, -1 - k, n);
      const auto tag = tag_of(chunk_, MessagePurpose::kResult, k);
      send(to, tag, buffers_.out, piece(local_, out), final_[as_index(out)]);
      // Its old content went away in the first half.
      final_[as_index(in)] = receive(from, tag, piece(local_, in), sent[as_index(in)]);
    }
  }

  void direct_between() {
    const int n = servers();
    std::vector<StepIndex> sent(static_cast<std::size_t>(n), kNoStep);
    for (int d = 1; d < n; ++d) {
      const int owner = wrap_around(server_, d, n);
      sent[as_index(owner)] = send(partner(owner), tag_of(chunk_, MessagePurpose::kReduce, 0),
                                   sum(), piece(local_, owner), ready_);
    }
    StepIndex made = ready_;
    const ByteRange own = piece(local_, server_);
    for (int d = 1; d < n; ++d)
      made =
          reduce(partner(wrap_around(server_, -d, n)), tag_of(chunk_, MessagePurpose::kReduce, 0),
                 d == 1 ? sum() : buffers_.out, own, made, d + 1 == n);
    final_[as_index(server_)] = made;
    for (int d = 1; d < n; ++d) {
      send(partner(wrap_around(server_, d, n)), tag_of(chunk_, MessagePurpose::kResult, 0),
           buffers_.out, own, made);
      const int owner = wrap_around(server_, -d, n);
      final_[as_index(owner)] = receive(partner(owner), tag_of(chunk_, MessagePurpose::kResult, 0),
                                        piece(local_, owner), sent[as_index(owner)]);
    }
  }

  // The others of the server get each piece of the slice as it is known.
  void spread_inside() {
    for (int s = 0; s < servers(); ++s) {
      const auto tag = tag_of(chunk_, MessagePurpose::kSpread, s);
      for (int d = 1; d < locals(); ++d) {
        send(rank_at(grid_.servers, server_, wrap_around(local_, d, locals())), tag, buffers_.out,
             piece(local_, s), final_[as_index(s)]);
        const int local = wrap_around(local_, -d, locals());
        // In place its old content has to be sent before.
        const bool in_place = buffers_.in == buffers_.out;
        receive(rank_at(grid_.servers, server_, local), tag, piece(local, s),
                in_place ? read_in_[as_index(local)] : kNoStep);
      }
    }
  }

  CollectiveSchedule& schedule_;
  const Buffers buffers_;
  const cost::HierarchicalLayout& grid_;
  int server_ = 0;
  int local_ = 0;
  std::vector<StepIndex> ends_;                                    // of the chunks so far
  std::map<std::pair<int, std::uint32_t>, StepIndex> last_sends_;  // by peer, purpose and index
  // The chunk under way.
  std::size_t chunk_ = 0;
  ByteRange range_;
  StepIndex first_step_ = 0;
  std::vector<StepIndex> read_in_;  // by local: the send of the input's slice
  StepIndex ready_ = kNoStep;       // the own slice is summed over the server
  std::vector<StepIndex> final_;    // by server: its piece of the own slice is the result
};

}  // namespace

void hierarchical_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                             const Buffers& buffers, const cost::HierarchicalLayout& grid) {
  const std::size_t chunks =
      std::clamp<std::size_t>(buffers.bytes() / kChunkBytesMin, 1, kChunksMax);
  const std::size_t elements = (buffers.count + chunks - 1) / chunks;
  HierarchicalBuilder builder(schedule, self, buffers, grid);
  for (std::size_t chunk = 0; chunk * elements < buffers.count; ++chunk) {
    const std::size_t first = chunk * elements;
    const std::size_t count = std::min(elements, buffers.count - first);
    builder.add_chunk(chunk, {first * buffers.element_bytes, count * buffers.element_bytes});
  }
}

}  // namespace regatta::collective
