#include "regatta/model/pipeline/simulate.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "regatta/model/pipeline/internal/chain.h"

namespace regatta::pipeline {
namespace {

bool is_forward(const Piece& piece) {
  return piece.kind == PieceKind::kForward;
}

// The simulated step as it goes on.
class Engine {
 public:
  Engine(const Shape& shape, const Order& order, const Times& times)
      : shape_(shape), order_(order), times_(times), chain_(shape), parts_(parts_of(shape)) {
    const auto stages = order.size();
    done_.assign(3 * stages * static_cast<std::size_t>(parts_ * shape.micro_batches), kNotYet);
    next_.assign(stages, 0);
    free_.assign(stages, 0);
    result_.busy.resize(stages);
    for (const auto& pieces : order)
      result_.spans.emplace_back().reserve(pieces.size());
  }

  Result<Simulation> run() {
    for (int stage = shape_.stages; stage-- > 0;)
      awake_.push_back(stage);
    while (!awake_.empty()) {
      const int stage = awake_.back();
      awake_.pop_back();
      while (take_next(stage)) {
      }
    }
    for (std::size_t stage = 0; stage < order_.size(); ++stage) {
      if (next_[stage] < order_[stage].size()) return deadlock(stage);
      result_.makespan = std::max(result_.makespan, Seconds{free_[stage]});
    }
    return std::move(result_);
  }

 private:
  static constexpr double kNotYet = -1;

  double& done(PieceKind kind, Place at, int micro_batch) {
    // A whole backward does for those after it what an input gradient does.
    const int row = kind == PieceKind::kForward ? 0 : kind == PieceKind::kWeightGradient ? 2 : 1;
    const int cell = ((row * shape_.stages + at.stage) * parts_ + at.part) * shape_.micro_batches;
    return done_[static_cast<std::size_t>(cell + micro_batch)];
  }

  // When the message is there that the forward (or gradient) of `from` sends to `stage`; nothing
  // when it is not yet computed.
  std::optional<double> arrival(PieceKind kind, Place from, int micro_batch, int stage) {
    const double end = done(kind, from, micro_batch);
    if (end == kNotYet) return std::nullopt;
    return end + message(from.stage, stage);
  }

  double message(int from, int to) const {
    if (from == to) return 0;
    const int low = std::min(from, to);
    const int edge = std::max(from, to) - low == 1 ? low : shape_.stages - 1;
    return times_.messages[static_cast<std::size_t>(edge)].value;
  }

  // The earliest start of a piece as far as others decide; nothing when one of them has not ended.
  std::optional<double> ready(int stage, const Piece& piece) {
    const Place here{stage, piece.part};
    if (piece.kind == PieceKind::kWeightGradient)
      return arrival(PieceKind::kInputGradient, here, piece.micro_batch, stage);
    if (!is_forward(piece) && done(PieceKind::kForward, here, piece.micro_batch) == kNotYet)
      return std::nullopt;
    const auto from = is_forward(piece) ? chain_.before(here) : chain_.after(here);
    return from ? arrival(piece.kind, *from, piece.micro_batch, stage) : 0;
  }

  double duration(const Piece& piece, std::size_t stage) const {
    const PartTimes& part =
        times_
            .parts[stage * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(piece.part)];
    switch (piece.kind) {
      case PieceKind::kForward:
        return part.forward.value;
      case PieceKind::kBackward:
        return (part.input_gradient + part.weight_gradient).value;
      case PieceKind::kInputGradient:
        return part.input_gradient.value;
      case PieceKind::kWeightGradient:
        return part.weight_gradient.value;
    }
    return 0;
  }

  // One piece of the stage, or the two that overlap; false when it has to wait or has ended.
  bool take_next(int stage) {
    const auto s = static_cast<std::size_t>(stage);
    const auto& pieces = order_[s];
    if (next_[s] == pieces.size()) return false;
    const std::size_t count = pieces[next_[s]].overlaps_next ? 2 : 1;
    double start = free_[s];
    double took = 0;
    for (std::size_t i = next_[s]; i < next_[s] + count; ++i) {
      const auto at = ready(stage, pieces[i]);
      if (!at) return false;
      start = std::max(start, *at);
      took += duration(pieces[i], s);
    }
    if (count == 2) took *= times_.overlapped_share;
    free_[s] = start + took;
    result_.busy[s] += Seconds{took};
    for (std::size_t i = 0; i < count; ++i)
      end_piece(stage, pieces[next_[s]++], {{start}, {start + took}});
    return true;
  }

  // Notes the piece's end and wakes the stage that may wait for it.
  void end_piece(int stage, const Piece& piece, Span span) {
    const auto s = static_cast<std::size_t>(stage);
    const Place here{stage, piece.part};
    done(piece.kind, here, piece.micro_batch) = span.end.value;
    result_.spans[s].push_back(span);
    if (piece.kind == PieceKind::kWeightGradient) return;
    const auto to = is_forward(piece) ? chain_.after(here) : chain_.before(here);
    if (!to || to->stage == stage) return;
    if (times_.is_blocking) free_[s] += message(stage, to->stage);
    awake_.push_back(to->stage);
  }

  Error deadlock(std::size_t stage) const {
    return {
        Code::kInvalidInput,
        fmt::format("order of stage {}: its piece {} waits for one that never ends; put what it "
                    "needs before it",
                    stage, next_[stage])};
  }

  const Shape& shape_;
  const Order& order_;
  const Times& times_;
  Chain chain_;
  int parts_;
  std::vector<double> done_;       // end of each piece, or kNotYet
  std::vector<std::size_t> next_;  // piece of each stage
  std::vector<double> free_;       // when each stage is free again
  std::vector<int> awake_;         // stages that may go on
  Simulation result_;
};

Status check_sizes(const Shape& shape, const Order& order, const Times& times) {
  REGATTA_TRY_DO(check(shape));
  const auto stages = static_cast<std::size_t>(shape.stages);
  const int parts = parts_of(shape);
  if (order.size() != stages || times.messages.size() != stages ||
      times.parts.size() != stages * static_cast<std::size_t>(parts)) {
    return Error{
        Code::kInvalidInput,
        fmt::format("pipeline of {} stages with {} parts each: order of {}, times of {} "
                    "parts and {} messages; give one for each",
                    stages, parts, order.size(), times.parts.size(), times.messages.size())};
  }
  for (const auto& pieces : order) {
    if (!pieces.empty() && pieces.back().overlaps_next) {
      return Error{Code::kInvalidInput,
                   "order: the last piece of a stage overlaps the next; there is none"};
    }
    for (const Piece& piece : pieces) {
      if (piece.part < 0 || piece.part >= parts || piece.micro_batch < 0 ||
          piece.micro_batch >= shape.micro_batches) {
        return Error{Code::kInvalidInput,
                     fmt::format("order: no micro-batch {} of part {}; there are {} of {} parts",
                                 piece.micro_batch, piece.part, shape.micro_batches, parts)};
      }
    }
  }
  return {};
}

}  // namespace

Times equal_times(const Shape& shape, const PartTimes& part, Seconds message) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  return {.parts = std::vector(stages * static_cast<std::size_t>(parts_of(shape)), part),
          .messages = std::vector(stages, message)};
}

Result<Simulation> simulate(const Shape& shape, const Order& order, const Times& times) {
  REGATTA_TRY_DO(check_sizes(shape, order, times));
  return Engine(shape, order, times).run();
}

std::vector<double> peak_activations(const Shape& shape, const Order& order,
                                     const std::vector<double>& sizes) {
  std::vector<double> peaks;
  const auto parts = static_cast<std::size_t>(parts_of(shape));
  for (std::size_t stage = 0; stage < order.size(); ++stage) {
    double held = 0;
    double peak = 0;
    for (const Piece& piece : order[stage]) {
      const double size = sizes[stage * parts + static_cast<std::size_t>(piece.part)];
      if (is_forward(piece))
        peak = std::max(peak, held += size);
      else if (piece.kind != PieceKind::kInputGradient)
        held -= size;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace regatta::pipeline
