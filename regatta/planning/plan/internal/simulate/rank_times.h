// plan/internal/simulate/rank_times.h: how long one rank computes at each piece of a step, by the
// cost model.
#pragma once

#include "regatta/model/cost/compute.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

// Seconds; the pieces are those of cost/compute.h.
struct RankTimes {
  double attention_forward = 0;
  double mlp_forward = 0;
  double attention_recompute = 0;
  double mlp_recompute = 0;
  double mlp_backward = 0;
  double mlp_overlapped = 0;
  double attention_backward = 0;
  double attention_overlapped = 0;
  double last_backward = 0;
  double embedding_forward = 0;
  double embedding_backward = 0;
  double head_forward = 0;
  double head_backward = 0;
  double head_overlapped = 0;
  double head_last = 0;
};

RankTimes rank_times(const cost::DeviceRates& rates, const cost::RankShape& shape);

// The larger of each piece: what a group in lockstep takes.
RankTimes slower_of(const RankTimes& a, const RankTimes& b);

}  // namespace regatta::plan
