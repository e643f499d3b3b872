// workload/concurrent_sends.h: which ranks of a training job send to which at the same time: rings
// of its groups and neighbours of its pipeline.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::workload {

struct RankSend {
  Rank from;
  Rank to;

  friend auto operator<=>(const RankSend&, const RankSend&) = default;
};

struct ConcurrentSends {
  std::string name;  // "data-parallel rings"
  std::vector<RankSend> sends;
};

// Of the strategy's data-parallel groups, pipelines and tensor-parallel groups, the ones with most
// bytes between servers first; none of degree 1. All groups of a kind send together. The first and
// the last stage of a pipeline exchange too where they share embeddings.
std::vector<ConcurrentSends> concurrent_sends(const ModelShape& model, const Strategy& strategy);

}  // namespace regatta::workload
