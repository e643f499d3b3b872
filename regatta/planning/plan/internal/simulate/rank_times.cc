#include "regatta/planning/plan/internal/simulate/rank_times.h"

#include <algorithm>

namespace regatta::plan {

RankTimes rank_times(const cost::DeviceRates& rates, const cost::RankShape& shape) {
  const auto time = [&](const cost::Operators& operators) {
    return cost::operators_time(rates, shape.precision, operators).value;
  };
  const cost::BlockForward forward = cost::block_forward(shape);
  const cost::BlockForward recompute = cost::block_recompute(shape);
  const cost::BlockBackward backward = cost::block_backward(shape);
  const cost::HeadBackward head = cost::head_backward(shape);
  return {.attention_forward = time(forward.attention),
          .mlp_forward = time(forward.mlp),
          .attention_recompute = time(recompute.attention),
          .mlp_recompute = time(recompute.mlp),
          .mlp_backward = time(backward.mlp),
          .mlp_overlapped = time(backward.mlp_overlapped),
          .attention_backward = time(backward.attention),
          .attention_overlapped = time(backward.attention_overlapped),
          .last_backward = time(backward.last),
          .embedding_forward = time(cost::embedding_forward(shape)),
          .embedding_backward = time(cost::embedding_backward(shape)),
          .head_forward = time(cost::head_forward(shape)),
          .head_backward = time(head.input),
          .head_overlapped = time(head.overlapped),
          .head_last = time(head.last)};
}

RankTimes slower_of(const RankTimes& a, const RankTimes& b) {
  constexpr double RankTimes::*kPieces[] = {&RankTimes::attention_forward,
                                            &RankTimes::mlp_forward,
                                            &RankTimes::attention_recompute,
                                            &RankTimes::mlp_recompute,
                                            &RankTimes::mlp_backward,
                                            &RankTimes::mlp_overlapped,
                                            &RankTimes::attention_backward,
                                            &RankTimes::attention_overlapped,
                                            &RankTimes::last_backward,
                                            &RankTimes::embedding_forward,
                                            &RankTimes::embedding_backward,
                                            &RankTimes::head_forward,
                                            &RankTimes::head_backward,
                                            &RankTimes::head_overlapped,
                                            &RankTimes::head_last};
  RankTimes slower;
  for (const auto piece : kPieces)
    slower.*piece = std::max(a.*piece, b.*piece);
  return slower;
}

}  // namespace regatta::plan
