// workload/strategy.h: how a job is spread over ranks, and which part of the model each rank holds.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/core/ids.h"
#include "regatta/core/result.h"
#include "regatta/workload/model.h"

namespace regatta::workload {

enum class Recompute {
  kNone,
  kSelective,  // scores, softmax and context alone: Korthikanti et al., 2022, section 5
  kFull,
};

// How the gradients of data-parallel replicas travel: coll/compress/compression.h has the kinds.
enum class Compression { kNone, kBf16, kFp16, kFp8, kInt8, kTopK, kPowerSgd, kAutomatic };
inline constexpr std::array kCompressions = {
    Compression::kNone, Compression::kBf16, Compression::kFp16,     Compression::kFp8,
    Compression::kInt8, Compression::kTopK, Compression::kPowerSgd, Compression::kAutomatic};

// A complete strategy. world_size = tp * pp * dp; micro-batches per step m = global_batch / (dp *
// micro_batch).
struct Strategy {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int micro_batch = 1;  // samples per micro-batch
  Recompute recompute = Recompute::kNone;
  bool overlap = true;  // data-parallel reduction overlapped with the last backward
  Compression compression = Compression::kNone;
  int virtual_stages = 1;          // parts of the model that a stage holds, interleaved
  bool sequence_parallel = false;  // tensor ranks share the tokens between the products
  int zero = 0;                    // 1: replicas share the optimizer's state

  int world_size() const { return tp * pp * dp; }
  friend auto operator<=>(const Strategy&, const Strategy&) = default;
};

// What the user fixed; the planner searches the rest.
struct StrategyRequest {
  std::optional<int> tp, pp, dp, micro_batch;
  std::optional<Recompute> recompute;
  std::optional<bool> overlap;
  std::optional<Compression> compression;
};

// Position of a rank. Tensor-parallel neighbours are adjacent: rank = (pp * DP + dp) * TP + tp.
struct RankCoordinates {
  int tp = 0;
  int dp = 0;
  int pp = 0;
};
RankCoordinates coordinates_of(const Strategy& strategy, Rank rank);
Rank rank_at(const Strategy& strategy, RankCoordinates at);

// The ranks that differ from `rank` only in the one coordinate, in its order; `rank` included.
std::vector<Rank> tp_group(const Strategy& strategy, Rank rank);
std::vector<Rank> dp_group(const Strategy& strategy, Rank rank);
std::vector<Rank> pp_group(const Strategy& strategy, Rank rank);

// The data-parallel reduction leaves in buckets of this many fp32 gradients, 4 MiB: large enough
// that latency does not show, small enough that the last bucket, which nothing hides, is short (Li
// et al., "PyTorch Distributed", VLDB 2020, take 25 MB on faster links). train sends them, cost and
// plan count them.
inline constexpr long long kGradientBucketElements = 1LL << 20;

// Blocks [first, first + count) of pipeline stage `pp`: as even as possible, the remainder to the
// middle stages first (the first and last stages also hold embedding and head).
struct LayerRange {
  int first = 0;
  int count = 0;
};
LayerRange stage_layers(const ModelShape& model, int pp_size, int pp);

// Micro-batches of one rank per step. Fails with kInvalidInput when the strategy does not divide
// the job: names the two numbers (tp | heads, ffn_hidden, vocab; pp <= layers; dp * micro_batch |
// global_batch).
Result<int> micro_batches(const ModelShape& model, const Strategy& strategy, int global_batch);

std::string to_string(const Strategy& strategy);  // "tp2 pp4 dp1 mb1 recompute=none"
std::string to_string(Recompute recompute);
// "none", "bf16", "fp16", "fp8", "int8", "topk", "powersgd", "auto", and the way back.
std::string to_string(Compression compression);
std::optional<Compression> compression_named(std::string_view name);

}  // namespace regatta::workload
