// workload/strategy.h: the split of a job over ranks, and the part of the model of each rank.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/workload/internal/strategy_constraint.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {

inline constexpr std::array kRecomputes = {Recompute::kNone, Recompute::kSelective,
                                           Recompute::kPointwise, Recompute::kExperts,
                                           Recompute::kFull};
// Whether it is for blocks with experts alone.
constexpr bool needs_experts(Recompute recompute) {
  return recompute == Recompute::kPointwise || recompute == Recompute::kExperts;
}

// The compression of the gradients between data-parallel replicas; comm/compression.h has the
// kinds.
enum class GradientCompression { kNone, kBf16, kFp16, kFp8, kInt8, kTopK, kPowerSgd, kAutomatic };
inline constexpr std::array kGradientCompressions = {
    GradientCompression::kNone,     GradientCompression::kBf16,     GradientCompression::kFp16,
    GradientCompression::kFp8,      GradientCompression::kInt8,     GradientCompression::kTopK,
    GradientCompression::kPowerSgd, GradientCompression::kAutomatic};

// The order in which a stage works on the micro-batches.
enum class PipelineSchedule {
  k1F1B,         // Narayanan et al., SC'21, section 2.2.1
  kInterleaved,  // the same, section 2.2.2: a stage holds virtual_stages parts of the model
  kZbH1,      // Qi et al., "Zero Bubble Pipeline Parallelism", 2023: weight gradients fill bubbles
  kZbV,       // the same authors, 2024: a stage holds two parts, the second in reverse order of the
              // stages
  kDualPipe,  // DeepSeek-V3, 2024, section 3.2.1: micro-batches from both ends
};
inline constexpr std::array kPipelineSchedules = {
    PipelineSchedule::k1F1B, PipelineSchedule::kInterleaved, PipelineSchedule::kZbH1,
    PipelineSchedule::kZbV, PipelineSchedule::kDualPipe};

// The exchange of keys and values between the ranks that share a sequence.
enum class ContextParallelism {
  kRing,      // blocks go round: Liu et al., "Ring Attention", 2023
  kAllToAll,  // heads for tokens: Jacobs et al., "DeepSpeed Ulysses", 2023
};
inline constexpr std::array kContextParallelisms = {ContextParallelism::kRing,
                                                    ContextParallelism::kAllToAll};

// The data that is kept in the memory of the server and fetched from there when it is needed.
enum class Offload { kNone, kOptimizer, kActivations, kBoth };
inline constexpr std::array kOffloads = {Offload::kNone, Offload::kOptimizer, Offload::kActivations,
                                         Offload::kBoth};

// A complete strategy. world_size = tp * cp * pp * dp; micro-batches per step m = global_batch /
// (dp * micro_batch).
struct Strategy {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int micro_batch = 1;  // samples per micro-batch
  Recompute recompute = Recompute::kNone;
  bool overlap = true;  // data-parallel reduction overlapped with the last backward
  GradientCompression compression = GradientCompression::kNone;
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int virtual_stages = 1;          // parts of the model that a stage holds, interleaved
  bool sequence_parallel = false;  // tensor ranks share the tokens between the products
  int cp = 1;                      // ranks that share the tokens of a sequence
  ContextParallelism context = ContextParallelism::kRing;
  int ep = 1;   // ranks of a stage that share its experts, each of which holds whole layers of them
  int etp = 0;  // ranks that share the products of an expert; 0: as tp
  // Replicas share 1: the optimizer's state, 2: and the gradients, 3: and the weights (Rajbhandari
  // et al., "ZeRO", 2020).
  int zero = 0;
  int shard_ranks = 0;  // that many replicas share; 0: all of them; fewer: hybrid sharding
  Offload offload = Offload::kNone;
  // Blocks of each pipeline stage, or of each part of the model in its order; empty: the even
  // split.
  std::vector<int> stage_layers;

  int world_size() const { return tp * cp * pp * dp; }
  int stage_ranks() const { return tp * cp * dp; }
  int expert_tp() const { return etp > 0 ? etp : tp; }
  friend auto operator<=>(const Strategy&, const Strategy&) = default;
};

// The values that the user fixed; the planner searches the rest.
struct StrategyRequest {
  std::optional<int> tp, pp, dp, cp, ep, etp, micro_batch, virtual_stages, zero, shard_ranks;
  std::optional<Recompute> recompute;
  std::optional<PipelineSchedule> schedule;
  std::optional<ContextParallelism> context;
  std::optional<Offload> offload;
  std::optional<bool> sequence_parallel;
  std::optional<bool> overlap;
  std::optional<GradientCompression> compression;
  std::optional<std::vector<int>> stage_layers;
  std::vector<StrategyConstraint> constraints;  // that every strategy of the search meets

  friend bool operator==(const StrategyRequest&, const StrategyRequest&) = default;
};

// The values of the request, with defaults for the rest; stage_layers decides the number of stages.
Strategy requested(const StrategyRequest& request);
// The values of `first`, and those of `second` that `first` leaves open; the constraints of both.
StrategyRequest merged(const StrategyRequest& first, const StrategyRequest& second);

// kInvalidInput names two keys of the request that contradict each other for every model, or a
// given key and a constraint that excludes it.
Status check_request(const StrategyRequest& request);

// Position of a rank. Tensor-parallel neighbours are adjacent: rank = (pp * DP + dp) * TP + tp.
struct RankCoordinates {
  int tp = 0;
  int dp = 0;
  int pp = 0;
};
RankCoordinates coordinates_of(const Strategy& strategy, Rank rank);
Rank rank_at(const Strategy& strategy, RankCoordinates at);

// The same ranks of a stage as its experts are folded over them, apart from tp, cp and dp:
// rank = ((pp * EDP + edp) * EP + ep) * ETP + etp, as Megatron-Core's order tp-cp-ep-dp-pp has it
// (Liu et al., "MoE Parallel Folding", 2025).
struct ExpertFold {
  int etp = 1;  // that share the products of an expert
  int ep = 1;   // that share the experts
  int edp = 1;  // that hold the same parameters of experts

  int ep_stride() const { return etp; }
  int edp_stride() const { return etp * ep; }
};
// Requires a strategy that micro_batches() takes: etp * ep divides the ranks of a stage.
ExpertFold expert_fold(const Strategy& strategy);
// Whether experts are split otherwise than the rest of the block.
bool is_folded(const Strategy& strategy);

// The ranks that differ from `rank` only in the one coordinate, in its order; `rank` included.
std::vector<Rank> tp_group(const Strategy& strategy, Rank rank);
std::vector<Rank> dp_group(const Strategy& strategy, Rank rank);
std::vector<Rank> pp_group(const Strategy& strategy, Rank rank);

// The data-parallel reduction sends buckets of this many fp32 gradients, 4 MiB: large enough
// that latency does not show, small enough that the last bucket, which nothing hides, is short (Li
// et al., "PyTorch Distributed", VLDB 2020, take 25 MB on faster links). train sends them, cost and
// plan count them.
inline constexpr long long kGradientBucketElements = 1LL << 20;

// Blocks [first, first + count).
struct LayerRange {
  int first = 0;
  int count = 0;
};

// The layers of pipeline stage `pp` where a stage holds one part of the model:
// strategy.stage_layers, else an even split with the remainder in the middle stages first (the
// first and last stages also hold embedding and head).
LayerRange stage_layers(const ModelShape& model, const Strategy& strategy, int pp);

// Parts of the model that every stage holds: virtual_stages when interleaved, 2 with zb-v.
int parts_per_stage(const Strategy& strategy);
// Whether strategy.stage_layers has a number for each part of a stage, not one for all of them.
bool lists_parts(const Strategy& strategy);
// The layers of all parts that a stage holds, with dualpipe of the first of its two.
int layers_on_stage(const ModelShape& model, const Strategy& strategy, int pp);

// The layers of one of the pp * parts_per_stage() parts of the model, in its order: part i is on
// stage i mod pp; with zb-v the second parts are in reverse order of the stages.
LayerRange part_layers(const ModelShape& model, const Strategy& strategy, int part);

// For an even split into `parts`: the first of the layers % parts parts that hold one layer more
// than the others; and the part that holds a layer.
int first_larger_part(const ModelShape& model, int parts);
int part_of_layer(const ModelShape& model, int parts, int layer);

// strategy.stage_layers, where it is given: a number a stage, at least 1 and a multiple of its
// parts, or a number a part, 0 among them but not for a whole stage; and all layers in sum; for
// dualpipe, which has part i and part pp - 1 - i on stage i, the same from both ends.
Status check_stage_layers(const ModelShape& model, const Strategy& strategy);

// Micro-batches of one rank per step. Fails with kInvalidInput when the strategy does not divide
// the job: names the two numbers (tp | heads, ffn_hidden; cp | seq; ep | experts; ep x etp | ranks
// of a stage; etp | expert_ffn_hidden; pp <= layers; dp x micro_batch | global_batch; shard_ranks |
// dp x cp), or two keys that contradict each other (a schedule, check_stage_layers()).
Result<int> micro_batches(const ModelShape& model, const Strategy& strategy, int global_batch);

std::string to_string(const Strategy& strategy);  // "tp2 pp4 dp1 mb1 recompute=none"
// The names in job files and, for some, the enumerator of a name: "selective", "zb-h1",
// "all-to-all".
std::string to_string(Recompute recompute);
std::optional<Recompute> recompute_named(std::string_view name);
std::string to_string(PipelineSchedule schedule);
std::optional<PipelineSchedule> schedule_named(std::string_view name);
std::string to_string(ContextParallelism context);
std::string to_string(Offload offload);
// "none", "bf16", "fp16", "fp8", "int8", "topk", "powersgd", "auto".
std::string to_string(GradientCompression compression);

// The ranks of a training job that send to each other at the same time: rings of its groups and
// neighbours of its pipeline.

struct RankSend {
  Rank from;
  Rank to;

  friend auto operator<=>(const RankSend&, const RankSend&) = default;
};

struct ConcurrentSends {
  std::string name;  // "data-parallel rings"
  std::vector<RankSend> sends;
};

// The data-parallel groups, pipelines and tensor-parallel groups of a strategy, sorted by bytes
// between servers, the most first; none of degree 1. All groups of a kind send together. The first
// and the last stage of a pipeline also exchange where they share embeddings.
std::vector<ConcurrentSends> concurrent_sends(const ModelShape& model, const Strategy& strategy);

}  // namespace regatta::workload
