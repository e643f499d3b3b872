// pipeline/internal/stage_order.h: writes down the order of one stage, each part's micro-batches in
// turn; what order.cc and the files of single schedules share.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "regatta/model/pipeline/order.h"

namespace regatta::pipeline {

// Appends the next micro-batch of a part (0 or 1) at each call. A schedule may be written for more
// micro-batches than there are: what is past the last one is left out.
class StageOrder {
 public:
  explicit StageOrder(const Shape& shape);

  void forward(int part) { append(PieceKind::kForward, part, forwards_); }
  void backward(int part) { append(PieceKind::kBackward, part, backwards_); }
  // A forward of one part while another's backward runs.
  void overlapped(int forward_part, int backward_part);
  // Leaves the weight gradient for later.
  void input_gradient(int part);
  // Of one part, or of the input gradient that has waited longest; nothing when none waits.
  void weight_gradient(int part);
  void oldest_weight_gradient();

  int forwards(int part) const { return forwards_[static_cast<std::size_t>(part)]; }
  std::vector<Piece> take() { return std::move(pieces_); }

 private:
  void append(PieceKind kind, int part, std::array<int, 2>& counts);

  std::array<int, 2> first_{};  // micro-batch of each part
  std::array<int, 2> count_{};
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
  std::vector<Piece> waiting_;  // weight gradients
  std::vector<Piece> pieces_;
};

std::vector<Piece> zb_h1(const Shape& shape, int stage);
std::vector<Piece> zb_v(const Shape& shape, int stage);
std::vector<Piece> dual_pipe(const Shape& shape, int stage);

}  // namespace regatta::pipeline
