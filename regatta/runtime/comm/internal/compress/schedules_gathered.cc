// The schedules in which everyone gets everyone's code (schedules.h): top_k and power_sgd.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "regatta/model/collective/algorithms.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/compress/power_sgd.h"
#include "regatta/runtime/comm/internal/compress/schedules.h"
#include "regatta/runtime/comm/internal/compress/top_k.h"

namespace regatta::comm::compress {
namespace {

// Selecting from this many elements takes about a millisecond.
constexpr std::size_t kSelectionElements = std::size_t{1} << 20;
constexpr std::size_t kSelectionsAhead = 2;
// The same of a pass of power_sgd: elements of a block of rows, times the rank.
constexpr std::size_t kBlockProducts = std::size_t{1} << 22;

double squares_of(std::span<const float> values) {
  double sum = 0;
  for (const float x : values)
    sum += static_cast<double>(x) * static_cast<double>(x);
  return sum;
}

// out = the entries of all messages, added up.
ErrorSquares add_messages(const std::vector<const std::byte*>& messages, std::size_t entries,
                          std::span<float> out, float scale) {
  ErrorSquares squares;
  std::fill(out.begin(), out.end(), 0.0F);
  for (const std::byte* message : messages) {
    ErrorSquares theirs;
    std::memcpy(&theirs, message, sizeof theirs);
    squares.error += theirs.error;
    add_entries({reinterpret_cast<const TopKEntry*>(message + sizeof theirs), entries}, out, 1);
  }
  squares.value = squares_of(out);
  if (scale != 1)
    for (float& x : out)
      x *= scale;
  return squares;
}

// PowerSGD on one rank. P and Q are messages: their matrix, and behind Q's the error that is left.
class PowerSgd {
 public:
  PowerSgd(CollectiveSchedule& schedule, const GroupPosition& self, const CompressionInput& vector,
           int rank, const std::shared_ptr<ReductionStats>& stats)
      : state_(std::make_shared<State>()), schedule_(schedule), self_(self) {
    State& s = *state_;
    s.vector = vector;
    s.shape = shape_matrix(vector.count, rank);
    s.stats = stats;
    stats->parts.resize(1);
    s.first = first_factor(s.shape);
    if (stats->factor.empty()) stats->factor = s.first;
    s.p.resize(s.shape.left());
    s.q.resize(s.shape.right());
    s.own_p = floats(s.shape.left());
    s.own_q = floats(s.shape.right());
  }

  void build() {
    const StepIndex multiplied = add_passes({}, &State::multiply);
    const GatheredMessages ps =
        gather_all(schedule_, self_, {bytes(state_->own_p), bytes_for(state_->p), 0, multiplied});
    const StepIndex summed =
        after(ps, schedule_.add_call([s = state_, all = ps.messages] { s->take_left(all); }));
    const StepIndex projected = add_passes(summed, &State::project);
    const StepIndex left = add_passes(projected, &State::subtract);
    const GatheredMessages qs =
        gather_all(schedule_, self_, {bytes(state_->own_q), bytes_for(state_->q), 1, left});
    const StepIndex ready =
        after(qs, schedule_.add_call([s = state_, all = qs.messages] { s->take_right(all); }));
    schedule_.wait_for(ready, left);
    schedule_.add_call([s = state_] { s->keep_factor(); }, {add_passes(ready, &State::expand)});
  }

 private:
  struct State {
    CompressionInput vector;
    MatrixShape shape;
    std::shared_ptr<ReductionStats> stats;
    std::vector<float> first;  // factor of a first call
    std::vector<float> p;      // the sum, orthonormal
    std::vector<float> q;      // the sum
    float* own_p = nullptr;
    float* own_q = nullptr;
    double left = 0;  // squares of what the own product leaves out

    std::span<float> matrix() const { return {vector.residual, vector.count}; }

    // For the rows of a block:
    void multiply(const MatrixShape& block) {
      stats->note_start();
      const std::size_t end = std::min(block.to * shape.columns, vector.count);
      for (std::size_t i = block.from * shape.columns; i < end; ++i)
        vector.residual[i] += vector.in[i];
      compress::multiply(block, matrix(), stats->factor, {own_p, p.size()});
      put_error(own_p + p.size(), 0);
    }
    void project(const MatrixShape& block) {
      multiply_transposed(block, matrix(), p, {own_q, q.size()});
    }
    void subtract(const MatrixShape& block) {
      left += compress::subtract(block, p, {own_q, q.size()}, matrix());
      put_error(own_q + q.size(), left);
    }
    void expand(const MatrixShape& block) {
      stats->parts[0].value +=
          compress::expand(block, p, q, {vector.out, vector.count}, vector.scale);
    }

    void take_left(const std::vector<const std::byte*>& messages) {
      sum(messages, p);
      make_orthonormal(shape, p);
    }
    void take_right(const std::vector<const std::byte*>& messages) {
      stats->parts[0].error = sum(messages, q);
    }
    // A column without length would stay so for ever.
    void keep_factor() {
      for (std::size_t c = 0; c < shape.rank; ++c) {
        const auto begin = static_cast<std::ptrdiff_t>(c * shape.columns);
        const auto end = begin + static_cast<std::ptrdiff_t>(shape.columns);
        const bool is_zero =
            std::all_of(q.begin() + begin, q.begin() + end, [](float x) { return x == 0; });
        std::copy((is_zero ? first : q).begin() + begin, (is_zero ? first : q).begin() + end,
                  stats->factor.begin() + begin);
      }
    }
  };

  // A pass over the matrix, a step for each block; one after the other, because sums depend on it.
  StepIndex add_passes(std::optional<StepIndex> last, void (State::*pass)(const MatrixShape&)) {
    for (const MatrixShape& block : cut_rows(state_->shape, kBlockProducts / state_->shape.rank)) {
      const StepIndex step =
          schedule_.add_call([s = state_, block, pass] { (s.get()->*pass)(block); });
      if (last) schedule_.wait_for(step, *last);
      last = step;
    }
    return *last;
  }

  static void put_error(float* at, double error) { std::memcpy(at, &error, sizeof error); }
  // In the order of the ranks; gives the sum of their errors.
  static double sum(const std::vector<const std::byte*>& messages, std::vector<float>& total) {
    double errors = 0;
    std::fill(total.begin(), total.end(), 0.0F);
    for (const std::byte* message : messages) {
      const auto* values = reinterpret_cast<const float*>(message);
      for (std::size_t i = 0; i < total.size(); ++i)
        total[i] += values[i];
      double error = 0;
      std::memcpy(&error, values + total.size(), sizeof error);
      errors += error;
    }
    return errors;
  }

  static std::size_t bytes_for(const std::vector<float>& matrix) {
    return matrix.size() * sizeof(float) + sizeof(double);
  }
  static const std::byte* bytes(const float* message) {
    return reinterpret_cast<const std::byte*>(message);
  }
  float* floats(std::size_t count) {
    return reinterpret_cast<float*>(schedule_.scratch(count * sizeof(float) + sizeof(double)));
  }
  StepIndex after(const GatheredMessages& gathered, StepIndex step) {
    for (const StepIndex earlier : gathered.steps)
      schedule_.wait_for(step, earlier);
    return step;
  }

  std::shared_ptr<State> state_;
  CollectiveSchedule& schedule_;
  GroupPosition self_;
};

}  // namespace

void top_k_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                      const CompressionInput& vector, double fraction,
                      const std::shared_ptr<ReductionStats>& stats) {
  const std::size_t chunks = (vector.count + kSelectionElements - 1) / kSelectionElements;
  stats->parts.resize(chunks);
  ChunkWindow window(schedule, kSelectionsAhead);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t from = chunk * kSelectionElements;
    const std::size_t count = std::min(kSelectionElements, vector.count - from);
    const std::size_t entries = top_k_count(count, fraction);
    const std::size_t bytes = sizeof(ErrorSquares) + entries * sizeof(TopKEntry);
    std::byte* const message = schedule.scratch(bytes);
    const StepIndex selected = window.add(schedule.add_call([=, in = vector.in + from,
                                                             residual = vector.residual + from] {
      stats->note_start();
      auto* chosen = reinterpret_cast<TopKEntry*>(message + sizeof(ErrorSquares));
      const ErrorSquares squares = select_top_k({in, count}, {residual, count}, {chosen, entries});
      std::memcpy(message, &squares, sizeof squares);
    }));
    const GatheredMessages gathered =
        gather_all(schedule, self, {message, bytes, static_cast<std::uint32_t>(chunk), selected});
    const StepIndex added = window.add(schedule.add_call(
        [=, all = gathered.messages, out = vector.out + from, scale = vector.scale] {
          stats->parts[chunk] = add_messages(all, entries, {out, count}, scale);
        }));
    schedule.wait_for(added, selected);
    for (const StepIndex step : gathered.steps)
      schedule.wait_for(added, window.add(step));
    window.end_chunk();
  }
}

void power_sgd_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                          const CompressionInput& vector, int rank,
                          const std::shared_ptr<ReductionStats>& stats) {
  if (vector.count > 0) PowerSgd(schedule, self, vector, rank, stats).build();
}

}  // namespace regatta::comm::compress
