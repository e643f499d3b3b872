#include "regatta/model/cost/gpu_block.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/cost/internal/gpu_state_space.h"

namespace regatta::cost {
namespace {

using workload::BlockMlp;
using workload::Mixer;
using workload::Precision;

// Fused attention computes the scores again in its backward: 5 products where the forward has 2
// (Dao, "FlashAttention-2", 2023, section 3.1).
constexpr double kFlashBackward = 2.5;
// The rate of the longest sequences and heads of 128 is not reached by shorter ones: read from
// figure 5 of the same (A100, forward and backward, causal: 83, 110, 135, 150 and 165 TFLOPS for
// 512, 1024, 2048, 4096 and 16384 tokens).
constexpr double kFlashCausalTokens = 500;
constexpr double kFlashTokens = 100;

// Adam in mixed precision reads and writes gradient, master weight and two moments in 4 bytes each
// and writes a 16-bit weight; the gradients are read and written before for scaling and their norm.
constexpr double kOptimizerBytes = 44;

// Bytes that passes read and write in 16 bits, per element. Scores: mask, softmax and dropout in
// one kernel, or in place, 4 and 5 bytes. Sums: bias, dropout and residual. Widths: bias and
// activation function, what they take more than one kernel.
struct PassBytes {
  double scores_forward;
  double scores_backward;
  double sums_forward;
  double sums_backward;
  double widths_forward;
};
constexpr PassBytes kFused{9, 11, 7, 7, 0};
constexpr PassBytes kOneByOne{13, 15, 15, 13, 4};

class Block {
 public:
  Block(const GpuEngines& engines, const SoftwareStack& stack, const RankWork& work)
      : engines_(engines),
        stack_(stack),
        work_(work),
        passes_(stack.traits.fuses_passes ? kFused : kOneByOne),
        attention_(attention_shape(work.model)),
        element_(engines.scores.bytes_per_element) {
    tokens_ = work.tokens();
    between_ = work.sequence_parallel ? tokens_ / work.tp : tokens_;
    heads_ = static_cast<double>(attention_.heads) / work.tp;
    kv_heads_ = std::max(1.0, static_cast<double>(attention_.kv_heads) / work.tp);
  }

  BlockTime time(workload::BlockKind kind) {
    if (has_attention(kind.mixer)) attention(kind.mixer);
    if (kind.mixer == Mixer::kStateSpace) state_space();
    norms_and_sums(kind.parts());
    if (kind.mlp == BlockMlp::kExperts) {
      const Seconds before = time_.forward.total() - time_.pointwise;
      experts();
      time_.experts = time_.forward.total() - time_.pointwise - before;
    }
    if (kind.mlp == BlockMlp::kPlain)
      mlp(tokens_, static_cast<double>(work_.model.ffn_hidden) / work_.tp);
    if (kind.predicts) prediction();
    return time_;
  }

 private:
  Seconds pass(double bytes) const { return Seconds{bytes / engines_.products.memory.value}; }

  // Y = X W for `batch` weights over `tokens` each, and in the backward the gradients of X and,
  // unless it is frozen, of W.
  void linear(double out, double in, double tokens, double batch = 1, bool has_adapter = false) {
    const MatrixEngine& engine = engines_.products;
    const auto product = [&](double m, double n, double k) {
      return matmul_time(engine, {.batch = batch, .m = m, .n = n, .k = k});
    };
    const Seconds weight = is_frozen(work_.model) ? Seconds{} : product(in, out, tokens);
    if (has_adapter) adapter(out, in, tokens, batch);
    time_.forward.matmul += product(tokens, out, in);
    time_.backward.matmul += product(tokens, in, out) + weight;
    time_.weight_gradient += weight;
    // Copies of the input and of the output's gradient.
    if (engines_.cast_bytes == 0) return;
    if (is_tuned(work_.model)) time_.forward.passes += pass(engines_.cast_bytes * batch * out * in);
    time_.forward.passes += pass(engines_.cast_bytes * batch * tokens * in);
    time_.backward.passes += pass(engines_.cast_bytes * batch * tokens * out);
  }

  // X goes through two trained matrices of a low rank, too, and the results are summed; so are the
  // gradients of X.
  void adapter(double out, double in, double tokens, double batch) {
    const auto product = [&](double m, double n, double k) {
      return matmul_time(engines_.scores, {.batch = batch, .m = m, .n = n, .k = k});
    };
    const double rank = work_.model.adapters.rank;
    const Seconds weight = product(in, rank, tokens) + product(rank, out, tokens);
    const double sums = 3 * element_ * batch * tokens;
    time_.forward.matmul += product(tokens, rank, in) + product(tokens, out, rank);
    time_.backward.matmul += product(tokens, rank, out) + product(tokens, in, rank) + weight;
    time_.weight_gradient += weight;
    time_.forward.passes += pass(sums * out);
    time_.backward.passes += pass(sums * in);
  }

  void attention(Mixer mixer) {
    projections();
    if (stack_.traits.flash_attention)
      flash_attention(seen_tokens(work_.model, mixer));
    else
      plain_attention();
  }

  void state_space() {
    const workload::StateSpace share = state_space_share(work_);
    const double h = work_.model.hidden;
    linear(static_cast<double>(share.projected()), h, tokens_);
    linear(h, static_cast<double>(share.inner()), tokens_);
    const BlockTime scan = gpu_scan_time(engines_, work_);
    time_.forward += scan.forward;
    time_.backward += scan.backward;
  }

  // Two hidden states become one; the norms of both and of the result are passes.
  void prediction() {
    const double h = work_.model.hidden;
    linear(h / work_.tp, 2 * h, tokens_);
    time_.forward.passes += pass(3 * 2 * element_ * between_ * h);
    time_.backward.passes += pass(3 * 4 * element_ * between_ * h);
  }

  void projections() {
    const workload::ModelShape& model = work_.model;
    const double h = model.hidden;
    if (has_latent_attention(model))
      latent_projections();
    else
      linear(heads_ * attention_.key_dim + 2 * kv_heads_ * attention_.key_dim, h, tokens_, 1,
             model.adapters.qkv);
    linear(h, heads_ * attention_.value_dim, tokens_, 1, model.adapters.proj);
    const double keys = tokens_ * (heads_ + kv_heads_) * attention_.key_dim;
    if (model.qk_norms) {
      time_.forward.passes += pass(2 * element_ * keys);
      time_.backward.passes += pass(4 * element_ * keys);
    }
    if (model.positions != workload::PositionEncoding::kRotary) return;
    const Seconds turned = pass(2 * element_ * tokens_ * (heads_ + kv_heads_) * attention_.key_dim);
    time_.forward.passes += turned;
    time_.backward.passes += turned;
  }

  // Short vectors of a token, then the heads from them.
  void latent_projections() {
    const double h = work_.model.hidden;
    const workload::LatentAttention& latent = work_.model.latent;
    const double queries = heads_ * attention_.key_dim;
    const auto project = [&](double out, double in) {
      linear(out, in, tokens_, 1, work_.model.adapters.qkv);
    };
    if (latent.query_rank > 0) project(latent.query_rank, h);
    project(latent.kv_rank + latent.rotary_dim, h);
    if (latent.query_rank == 0) project(queries, h);
    const Seconds before = time_.forward.total();
    if (latent.query_rank > 0) project(queries, latent.query_rank);
    project(heads_ * (latent.plain_dim + latent.value_dim), latent.kv_rank);
    time_.pointwise += time_.forward.total() - before;
  }

  // Scores and context of every head as products, with masked softmax and dropout between them in
  // memory, those that a mask hides, too; heads are copied apart before and together after.
  void plain_attention() {
    const double s = work_.model.seq;
    const double batch = work_.samples * heads_ / work_.cp;
    const double d = attention_.key_dim;
    const auto product = [&](double m, double n, double k) {
      return matmul_time(engines_.scores, {.batch = batch, .m = m, .n = n, .k = k});
    };
    const double scores = batch * s * s;
    const double qkv = tokens_ * (heads_ + 2.0 * attention_.kv_heads / work_.tp) * d;
    time_.forward.attention += product(s, s, d) + product(s, d, s) +
                               pass(passes_.scores_forward * scores) + pass(2 * element_ * qkv);
    time_.backward.attention += product(s, d, s) * 3.0 + product(s, s, d) +
                                pass(passes_.scores_backward * scores) + pass(2 * element_ * qkv);
  }

  // A row of scores is as long as the tokens that its query sees, and begins and ends as a longer
  // one does.
  void flash_attention(double seen) {
    const double s = work_.model.seq;
    const bool is_causal = work_.model.kind == workload::ModelKind::kGpt;
    const double dims = attention_.key_dim + attention_.value_dim;
    const double operations = 2 * work_.samples * heads_ * s * seen / work_.cp * dims;
    constexpr double kBestHead = 128;
    const double head = std::min(dims / 2, kBestHead);
    const double softmax = engines_.softmax_width;
    const double start = engines_.row_start * (is_causal ? kFlashCausalTokens / 2 : kFlashTokens);
    const double share =
        seen / (seen + start) * head / (head + softmax) * (kBestHead + softmax) / kBestHead;
    const Seconds forward{operations / (engines_.fused_attention.value * share)};
    time_.forward.attention += forward;
    time_.backward.attention += forward * kFlashBackward;
  }

  // Each part has a norm, then bias, dropout and residual sum.
  void norms_and_sums(int parts) {
    const double h = work_.model.hidden;
    const Seconds norms = pass(parts * 2 * element_ * between_ * h);
    time_.pointwise += norms;
    time_.forward.passes += norms + pass(parts * passes_.sums_forward * between_ * h);
    time_.backward.passes += pass(parts * 4 * element_ * between_ * h) +
                             pass(parts * passes_.sums_backward * between_ * h);
  }

  // `batch` MLPs of `width` over `tokens` of width `h` each, with their activation function.
  void mlp(double tokens, double width, double batch = 1) {
    mlp(tokens, work_.model.hidden, width, batch);
  }
  void mlp(double tokens, double h, double width, double batch) {
    const double gate = mlp_matrices(work_.model) - 1;  // inputs of the activation function
    linear(width * gate, h, tokens, batch, work_.model.adapters.fc1);
    linear(h, width, tokens, batch, work_.model.adapters.fc2);
    const Seconds activation =
        pass(((gate + 1) * element_ + passes_.widths_forward) * batch * tokens * width);
    time_.pointwise += activation;
    time_.forward.passes += activation;
    time_.backward.passes += pass((2 * gate + 2) * element_ * batch * tokens * width);
  }

  // The rank's experts over what all ranks of the group send it: the fullest rank decides. The
  // etp * ep ranks of a fold have the tokens of etp * ep / tp tensor groups, whose visits the ep
  // share: tokens * top_k * etp / tp each, on experts / ep matrices of expert_ffn_hidden / etp
  // columns. So a rank computes as much for every etp, with more tokens or wider matrices. Tokens
  // are sorted by expert before they are sent, and back and summed after.
  void experts() {
    const workload::Experts& experts = work_.model.experts;
    const double h = work_.model.hidden;
    const double width = static_cast<double>(experts.ffn_hidden) / work_.etp;
    const double load =
        experts.capacity > 0 ? std::min(experts.imbalance, experts.capacity) : experts.imbalance;
    const double routed = tokens_ * experts.top_k * load;
    const double visits = routed * (static_cast<double>(work_.etp) / work_.tp);
    const double own = static_cast<double>(experts.count) / work_.ep;
    // Grouped products pad what an expert gets to whole tiles of 16 tokens (Transformer Engine).
    constexpr double kPadding = 16;
    const double sent = dispatched_width(work_.model);
    mlp(std::ceil(visits / own / kPadding) * kPadding, sent, width, own);
    if (work_.model.linear_biases) expert_biases(visits, sent, width);
    if (experts.latent > 0) {
      linear(sent, h, between_);
      linear(h, sent, between_);
    }
    if (experts.shared > 0)
      mlp(tokens_, static_cast<double>(experts.ffn_hidden) / work_.tp * experts.shared);
    const double sorts = stack_.traits.sorts_while_sending ? 1 : stack_.traits.sorts_twice ? 4 : 2;
    const Seconds sorted =
        pass(sorts * 2 * element_ * routed * sent / (work_.sequence_parallel ? work_.tp : 1));
    time_.forward.passes += sorted;
    time_.backward.passes += sorted;
  }

  // The biases of experts differ from token to token. That of the last product is added in fp32,
  // weighted by the router, expert by expert (Megatron-Core, TEGroupedMLP._apply_bias): product,
  // sum, concatenation and cast, and in the backward the gradients of the bias and of its weight.
  void expert_biases(double visits, double sent, double width) {
    const double gate = mlp_matrices(work_.model) - 1;
    // The gradient of a bias is a sum over the tokens of its expert.
    const Seconds sums = pass(element_ * visits * (gate * width + sent));
    time_.backward.passes += sums;
    if (stack_.traits.fuses_experts) return;
    constexpr double kForward = 28;  // bytes of an element
    constexpr double kBackward = 40;
    time_.forward.passes += pass(kForward * visits * sent);
    time_.backward.passes += pass(kBackward * visits * sent);
  }

  const GpuEngines& engines_;
  const SoftwareStack& stack_;
  const RankWork& work_;
  const PassBytes& passes_;
  workload::AttentionShape attention_;
  double element_ = 2;
  double tokens_ = 0;
  double between_ = 0;  // tokens of what lies between the products
  double heads_ = 0;
  double kv_heads_ = 0;
  BlockTime time_;
};

// Products whose rows tensor cores cannot read are left to the vector units, in fp32, of whose peak
// a product reaches about this share (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture",
// 2018, section 4).
constexpr double kVectorEfficiency = 0.9;

// How products of eight bits or fewer read their factors.
struct NarrowFormat {
  double bytes_per_element = 0;  // with the scales
  double cast_bytes = 0;         // as GpuEngines::cast_bytes
};

// A factor is copied as it is and transposed. Scales: a byte for 32 elements of mxfp8 and for 16 of
// nvfp4 (Rouhani et al., "Microscaling Data Formats", 2023; NVIDIA, "Pretraining Large Language
// Models with NVFP4", 2025, section 2), which a second kernel puts into the order that products
// read.
NarrowFormat narrow_format(Precision precision) {
  constexpr double kElement = 2;  // of the copy's source
  if (precision == Precision::kFp8) return {.bytes_per_element = 1, .cast_bytes = kElement + 2};
  if (precision == Precision::kMxfp8) {
    constexpr double kScale = 1.0 / 32;
    return {.bytes_per_element = 1 + kScale,
            .cast_bytes = kElement + 2 * (1 + kScale) + 2 * 2 * kScale};
  }
  // The largest element of the whole tensor is read first, that of its transpose after the random
  // Hadamard transform in the same pass; then one kernel rounds the copy, and one transforms,
  // transposes and rounds the other (the same, section 4.2 and appendix C; Transformer Engine 2.8,
  // hadamard_transform).
  constexpr double kScale = 1.0 / 16;
  return {.bytes_per_element = 0.5 + kScale,
          .cast_bytes = 3 * kElement + 2 * (0.5 + kScale) + 2 * 2 * kScale};
}

}  // namespace

FlopsPerSecond matrix_peak(const topo::DeviceType& device, Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return device.fp32_peak;
    case Precision::kTf32:
      return device.bf16_peak * 0.5;  // of every generation that has both
    case Precision::kFp16:
      return device.fp16_peak;
    case Precision::kBf16:
      return device.bf16_peak;
    case Precision::kFp8:
      return device.fp8_peak;
    case Precision::kMxfp8:
      return device.mxfp8_peak;
    case Precision::kNvfp4:
      return device.nvfp4_peak;
  }
  return {};
}

Status check_precision(const topo::DeviceType& device, Precision precision) {
  if (matrix_peak(device, precision).value <= 0) {
    std::vector<std::string> known;
    for (const Precision one : workload::kPrecisions)
      if (matrix_peak(device, one).value > 0) known.push_back(to_string(one));
    const std::string name = to_string(precision);
    return Error{
        Code::kUnsupported,
        fmt::format("precision: {} has no {}; take {}or give devices.{}_peak of its server type",
                    device.name, name,
                    known.empty() ? "" : fmt::format("one of {}, ", join(known, ", ")), name)};
  }
  if (device.processors > 0) return {};
  return Error{Code::kUnsupported, fmt::format("device {}: its processors are not known; give "
                                               "devices.processors of its server type",
                                               device.name)};
}

RankWork rank_work(const workload::ModelShape& model, const workload::Strategy& strategy) {
  return {.model = model,
          .samples = static_cast<double>(strategy.micro_batch),
          .tp = strategy.tp,
          .sequence_parallel = strategy.sequence_parallel,
          .cp = strategy.cp,
          .ep = strategy.ep,
          .etp = strategy.expert_tp()};
}

GpuEngines gpu_engines(const topo::DeviceType& device, const SoftwareStack& stack,
                       Precision precision) {
  const Calibration& calibration = stack.calibration;
  const DeviceEfficiency shares = device_efficiency(device.name);
  const Precision sixteen = is_eight_bits_or_less(precision) ? Precision::kBf16 : precision;
  GpuEngines engines;
  engines.scores = {.processors = device.processors,
                    .peak = matrix_peak(device, sixteen),
                    .efficiency = calibration.matrix_efficiency * shares.matrix,
                    .tile_depth = calibration.tile_depth,
                    .misalignment = calibration.misalignment,
                    .unaligned = matrix_peak(device, sixteen) / device.fp32_peak *
                                 calibration.matrix_efficiency * shares.matrix / kVectorEfficiency,
                    .memory = device.memory_bandwidth * calibration.memory_efficiency,
                    .bytes_per_element = static_cast<double>(bytes_per_element(sixteen))};
  engines.products = engines.scores;
  engines.fused_attention =
      engines.scores.peak *
      ((stack.traits.latest_attention ? shares.attention : shares.older_attention) *
       stack.traits.attention_share);
  engines.softmax_width = shares.softmax_width;
  engines.row_start = shares.row_start;
  engines.host_link = shares.host_link;
  if (is_eight_bits_or_less(precision)) {
    const NarrowFormat format = narrow_format(precision);
    const double share = precision == Precision::kNvfp4 ? shares.matrix_nvfp4 : shares.matrix_fp8;
    engines.cast_bytes = format.cast_bytes;
    if (precision == Precision::kFp8 && stack.traits.scales_by_tensor) engines.cast_bytes += 2;
    engines.products.peak = matrix_peak(device, precision);
    engines.products.efficiency = calibration.matrix_efficiency * share;
    engines.products.bytes_per_element = format.bytes_per_element;
    // Beginning and ending a tile takes as long as in 16 bits.
    engines.products.tile_depth *= engines.products.peak / engines.scores.peak;
  }
  return engines;
}

BlockTime gpu_block_time(const GpuEngines& engines, const SoftwareStack& stack,
                         const RankWork& work, workload::BlockKind kind) {
  return Block(engines, stack, work).time(kind);
}

ComputeTime gpu_embedding_and_head_time(const GpuEngines& engines, const SoftwareStack& stack,
                                        const RankWork& work) {
  const MatrixEngine& engine = engines.scores;  // logits keep 16 bits
  const double tokens = work.tokens();
  const double h = work.model.hidden;
  const double words = std::ceil(static_cast<double>(work.model.vocab) / work.tp);
  ComputeTime time;
  time.matmul = matmul_time(engine, {.m = tokens, .n = words, .k = h}) +
                matmul_time(engine, {.m = tokens, .n = h, .k = words});
  if (!is_frozen(work.model)) time.matmul += matmul_time(engine, {.m = h, .n = words, .k = tokens});
  // Logits in 16 bits, then in fp32 for the loss and its gradient; the embedding's rows thrice.
  time.passes = Seconds{
      (stack.traits.logit_bytes * tokens * words + 6 * engine.bytes_per_element * tokens * h) /
      engine.memory.value};
  return time;
}

Seconds gpu_optimizer_time(const GpuEngines& engines, double parameters) {
  return Seconds{kOptimizerBytes * parameters / engines.scores.memory.value};
}

}  // namespace regatta::cost
