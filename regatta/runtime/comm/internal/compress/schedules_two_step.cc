#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "regatta/base/os/clock.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/compress/schedules.h"

namespace regatta::comm::compress {
namespace {

constexpr std::size_t kChunkElementsMin = std::size_t{1} << 18;
// More chunks hide nothing more, until they become so long that a call works on one for longer than
// a millisecond.
constexpr std::size_t kChunksEnough = 32;
constexpr std::size_t kChunkElementsMax = std::size_t{1} << 21;
// Chunks that a rank works on at the same time.
constexpr std::size_t kChunksAhead = 8;
// Chunks that a rank has coded and not yet given to the network.
constexpr std::size_t kCodedAhead = 3;

enum class MessagePurpose : std::uint32_t { kPart, kResult };

struct Share {
  std::size_t from = 0;  // element of `in`
  std::size_t count = 0;
};

// A message is the ErrorSquares of its elements and their code.
std::size_t message_bytes(CompressionKind kind, std::size_t count) {
  constexpr std::size_t kLine = 64;
  return (sizeof(ErrorSquares) + encoded_bytes(kind, count) + kLine - 1) / kLine * kLine;
}

// Chance that differs from call to call and from element to element.
std::uint32_t seed_at(std::uint32_t seed, std::size_t from) {
  return seed == 0 ? 0 : (seed + static_cast<std::uint32_t>(from) * 0x85ebca6bU) | 1U;
}

class Builder {
 public:
  Builder(CollectiveSchedule& schedule, const GroupPosition& self, const CompressionInput& vector,
          std::shared_ptr<ReductionStats> stats, bool scatters)
      : schedule_(schedule),
        self_(self),
        vector_(vector),
        stats_(std::move(stats)),
        scatters_(scatters),
        window_(schedule, kChunksAhead) {
    const std::size_t all = scatters ? vector.count * ranks() : vector.count;
    const std::size_t chunks =
        std::max(std::clamp<std::size_t>(all / kChunkElementsMin, 1, kChunksEnough),
                 all / kChunkElementsMax);
    chunk_count_ =
        round_up((vector.count + chunks - 1) / chunks, scatters ? kBlock : kBlock * ranks());
    part_count_ = scatters ? chunk_count_ : chunk_count_ / ranks();
    allot();
    stats_->parts.resize((vector.count + chunk_count_ - 1) / chunk_count_ * ranks());
  }

  Builder& build() {
    for (std::size_t from = 0; from < vector_.count; from += chunk_count_)
      add_chunk(from);
    return *this;
  }

  // The result lay aside, because `out` overlaps what was to be read.
  void copy_result(float* out) {
    window_.wait_for_all(schedule_.add({.kind = StepKind::kCopy,
                                        .dst = reinterpret_cast<std::byte*>(out),
                                        .src = reinterpret_cast<const std::byte*>(vector_.out),
                                        .bytes = vector_.count * sizeof(float)}));
  }

 private:
  // Memory of one chunk under way.
  struct Desk {
    std::vector<std::byte*> sent;     // by rank: its part in code; later the result that it owns
    std::vector<std::byte*> arrived;  // by rank: the own part as that rank has it
    std::byte* result = nullptr;      // the sum of the own part in code
    float* sum = nullptr;
  };

  std::size_t ranks() const { return static_cast<std::size_t>(self_.world_size); }
  static std::size_t round_up(std::size_t x, std::size_t unit) {
    return (x + unit - 1) / unit * unit;
  }
  std::uint32_t tag(MessagePurpose purpose) const {
    return static_cast<std::uint32_t>(window_.chunk()) << 1 | static_cast<std::uint32_t>(purpose);
  }
  std::size_t bytes_of(const Share& part) const {
    return sizeof(ErrorSquares) + encoded_bytes(vector_.kind, part.count);
  }
  float* residual_at(const Share& part) const {
    return vector_.residual == nullptr ? nullptr : vector_.residual + part.from;
  }

  void allot() {
    const std::size_t bytes = message_bytes(vector_.kind, part_count_);
    for (std::size_t i = 0; i < std::min(kChunksAhead, vector_.count / chunk_count_ + 1); ++i) {
      Desk& desk = desks_.emplace_back();
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        desk.sent.push_back(schedule_.scratch(bytes));
        desk.arrived.push_back(schedule_.scratch(bytes));
      }
      desk.result = schedule_.scratch(bytes);
      desk.sum = reinterpret_cast<float*>(schedule_.scratch(part_count_ * sizeof(float)));
    }
  }
  const Desk& desk() const { return desks_[window_.slot()]; }

  // The part of the chunk at `from` that rank `owner` adds up.
  Share part(std::size_t from, int owner) const {
    const auto k = static_cast<std::size_t>(owner);
    const std::size_t end = std::min(from + chunk_count_, vector_.count);
    if (scatters_) return {k * vector_.count + from, end - from};
    const std::size_t begin = std::min(from + k * part_count_, end);
    return {begin, std::min(part_count_, end - begin)};
  }
  float* out_at(const Share& part) const {
    return vector_.out + (scatters_ ? part.from % vector_.count : part.from);
  }

  void add_chunk(std::size_t from) {
    const Share own = part(from, self_.rank);
    sent_.assign(ranks(), 0);
    given_.emplace_back();
    std::vector<StepIndex> arrived;
    for (int d = 1; d < self_.world_size; ++d) {
      send_part(self_.neighbour(d), part(from, self_.neighbour(d)));
      const int peer = self_.neighbour(-d);
      if (own.count > 0)
        arrived.push_back(window_.add(schedule_.add({.kind = StepKind::kReceive,
                                                     .peer = peer,
                                                     .tag = tag(MessagePurpose::kPart),
                                                     .dst = desk().arrived[index(peer)],
                                                     .bytes = bytes_of(own)})));
    }
    if (own.count > 0) add_up(own, arrived);
    if (!scatters_)
      for (int d = 1; d < self_.world_size; ++d)
        receive_result(self_.neighbour(-d), part(from, self_.neighbour(-d)));
    window_.end_chunk();
  }

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void send_part(int to, const Share& theirs) {
    if (theirs.count == 0) return;
    std::byte* const message = desk().sent[index(to)];
    const Encoding encoding{.kind = vector_.kind,
                            .in = vector_.in + theirs.from,
                            .residual = residual_at(theirs),
                            .out = message + sizeof(ErrorSquares),
                            .count = theirs.count,
                            .seed = seed_at(vector_.seed, theirs.from)};
    const StepIndex encoded = pace(schedule_.add_call([encoding, message, stats = stats_] {
      stats->note_start();
      const ErrorSquares squares = encode(encoding);
      std::memcpy(message, &squares, sizeof squares);
    }));
    sent_[index(to)] = window_.add(schedule_.add({.kind = StepKind::kSend,
                                                  .peer = to,
                                                  .tag = tag(MessagePurpose::kPart),
                                                  .src = message,
                                                  .bytes = bytes_of(theirs)},
                                                 {encoded}));
    given_.back().push_back(sent_[index(to)]);
  }

  // Coding waits for the network, or a large vector would be coded before its first byte leaves.
  StepIndex pace(StepIndex coding) {
    if (given_.size() > kCodedAhead)
      for (const StepIndex sent : given_[given_.size() - 1 - kCodedAhead])
        schedule_.wait_for(coding, sent);
    return window_.add(coding);
  }

  // The own part: its rank's value is exact, the others' come in code; in the order of the ranks.
  void add_up(const Share& own, const std::vector<StepIndex>& arrived) {
    const Desk desk = this->desk();
    const std::size_t tally_at = window_.chunk() * ranks() + index(self_.rank);
    const StepIndex step = window_.add(schedule_.add_call(
        [vector = vector_, own, desk, rank = self_.rank, tally_at, stats = stats_,
         out = out_at(own), residual = residual_at(own), scatters = scatters_] {
          float* const sum = desk.sum;
          ErrorSquares squares;
          for (std::size_t r = 0; r < desk.arrived.size(); ++r) {
            if (r == index(rank)) {
              add_own(vector.in + own.from, residual, sum, own.count, r == 0);
              continue;
            }
            ErrorSquares theirs;
            std::memcpy(&theirs, desk.arrived[r], sizeof theirs);
            squares.error += theirs.error;
            const std::byte* code = desk.arrived[r] + sizeof theirs;
            if (r == 0)
              decode(vector.kind, code, sum, own.count, 1);
            else
              decode_add(vector.kind, code, sum, own.count);
          }
          if (scatters) {
            for (std::size_t i = 0; i < own.count; ++i) {
              squares.value += static_cast<double>(sum[i]) * static_cast<double>(sum[i]);
              out[i] = sum[i] * vector.scale;
            }
          } else {
            const ErrorSquares coded = encode({.kind = vector.kind,
                                               .in = sum,
                                               .residual = residual,
                                               .out = desk.result + sizeof squares,
                                               .count = own.count,
                                               .seed = seed_at(vector.seed, own.from)});
            squares.value = coded.value;
            squares.error += coded.error;
            std::memcpy(desk.result, &squares, sizeof squares);
            decode(vector.kind, desk.result + sizeof squares, out, own.count, vector.scale);
          }
          stats->parts[tally_at] = squares;
        }));
    for (const StepIndex earlier : arrived)
      schedule_.wait_for(step, earlier);
    if (scatters_) return;
    for (int d = 1; d < self_.world_size; ++d)
      window_.add(schedule_.add({.kind = StepKind::kSend,
                                 .peer = self_.neighbour(d),
                                 .tag = tag(MessagePurpose::kResult),
                                 .src = desk.result,
                                 .bytes = bytes_of(own)},
                                {step}));
  }

  // sum (+)= in + residual; the residual is used up.
  static void add_own(const float* in, float* residual, float* sum, std::size_t count,
                      bool is_first) {
    if (is_first)
      std::memcpy(sum, in, count * sizeof(float));
    else
      for (std::size_t i = 0; i < count; ++i)
        sum[i] += in[i];
    if (residual == nullptr) return;
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += residual[i];
      residual[i] = 0;
    }
  }

  void receive_result(int owner, const Share& theirs) {
    if (theirs.count == 0) return;
    // The bytes that were sent to the owner are not needed any more.
    std::byte* const message = desk().sent[index(owner)];
    const StepIndex received = window_.add(schedule_.add({.kind = StepKind::kReceive,
                                                          .peer = owner,
                                                          .tag = tag(MessagePurpose::kResult),
                                                          .dst = message,
                                                          .bytes = bytes_of(theirs)},
                                                         {sent_[index(owner)]}));
    const std::size_t tally_at = window_.chunk() * ranks() + index(owner);
    window_.add(schedule_.add_call(
        [message, kind = vector_.kind, out = out_at(theirs), count = theirs.count,
         scale = vector_.scale, tally_at, stats = stats_] {
          std::memcpy(&stats->parts[tally_at], message, sizeof(ErrorSquares));
          decode(kind, message + sizeof(ErrorSquares), out, count, scale);
        },
        {received}));
  }

  CollectiveSchedule& schedule_;
  const GroupPosition self_;
  const CompressionInput vector_;
  const std::shared_ptr<ReductionStats> stats_;
  const bool scatters_;
  ChunkWindow window_;
  std::size_t chunk_count_ = 0;  // elements of a chunk (of each part, when scattering)
  std::size_t part_count_ = 0;   // elements of a rank's part of it
  std::vector<Desk> desks_;
  std::vector<std::vector<StepIndex>> given_;  // by chunk: the sends of its parts
  std::vector<StepIndex> sent_;                // of the chunk under way, by rank
};

// Whether the result of a part overwrites what is still to be read.
bool is_hazardous(const GroupPosition& self, const CompressionInput& vector) {
  const std::size_t bytes = vector.count * sizeof(float);
  const float* const own = vector.in + static_cast<std::size_t>(self.rank) * vector.count;
  return vector.out != own && overlap(reinterpret_cast<const std::byte*>(vector.out), bytes,
                                      reinterpret_cast<const std::byte*>(vector.in),
                                      bytes * static_cast<std::size_t>(self.world_size));
}

}  // namespace

void ReductionStats::note_start() {
  // The progress thread alone writes it.
  if (started_s.load(std::memory_order_relaxed) == 0)
    started_s.store(os::monotonic_now().value, std::memory_order_relaxed);
}

double ReductionStats::relative_error() const {
  ErrorSquares all;
  for (const ErrorSquares& part : parts) {
    all.value += part.value;
    all.error += part.error;
  }
  return all.error == 0 ? 0 : std::sqrt(all.error / all.value);
}

void two_step_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                         const CompressionInput& vector,
                         const std::shared_ptr<ReductionStats>& stats) {
  if (vector.count > 0) Builder(schedule, self, vector, stats, false).build();
}

void one_step_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                             const CompressionInput& vector,
                             const std::shared_ptr<ReductionStats>& stats) {
  if (vector.count == 0) return;
  if (!is_hazardous(self, vector)) {
    Builder(schedule, self, vector, stats, true).build();
    return;
  }
  CompressionInput aside = vector;
  aside.out = reinterpret_cast<float*>(schedule.scratch(vector.count * sizeof(float)));
  Builder(schedule, self, aside, stats, true).build().copy_result(vector.out);
}

}  // namespace regatta::comm::compress
