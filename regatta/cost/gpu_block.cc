#include "regatta/cost/gpu_block.h"

#include <algorithm>

namespace regatta::cost {
namespace {

constexpr double kElement = 2;  // bytes of a 16-bit number

// The share of the rate of large products that fused attention reaches: Dao, "FlashAttention-2",
// 2023, figure 5: 190 of the about 250 TFLOPS that products reach on an A100 (forward, heads of
// 128).
constexpr double kFlashShare = 0.75;
// Its backward computes the scores again: 5 products where the forward has 2 (the same,
// section 3.1).
constexpr double kFlashBackward = 2.5;

// Adam in mixed precision reads and writes gradient, master weight and two moments in 4 bytes each
// and writes a 16-bit weight; the gradients are read and written before for scaling and their norm.
constexpr double kOptimizerBytes = 44;

class Block {
 public:
  Block(const MatrixEngine& engine, const Stack& stack, const RankWork& work)
      : engine_(engine), stack_(stack), work_(work), attention_(attention_shape(work.model)) {
    const workload::ModelShape& model = work.model;
    tokens_ = work.samples * model.seq;
    between_ = work.sequence_parallel ? tokens_ / work.tp : tokens_;
    heads_ = static_cast<double>(attention_.heads) / work.tp;
  }

  BlockTime time() {
    products();
    if (stack_.traits.flash_attention)
      flash_attention();
    else
      plain_attention();
    between();
    return time_;
  }

 private:
  Seconds pass(double bytes) const { return Seconds{bytes / engine_.memory.value}; }

  // Y = X W over all tokens, and in the backward the gradients of X and of W.
  void linear(double out, double in) {
    time_.forward.matmul += matmul_time(engine_, {.m = tokens_, .n = out, .k = in});
    time_.backward.matmul += matmul_time(engine_, {.m = tokens_, .n = in, .k = out});
    time_.backward.matmul += matmul_time(engine_, {.m = in, .n = out, .k = tokens_});
  }

  void products() {
    const workload::ModelShape& model = work_.model;
    const double h = model.hidden;
    const double ffn = static_cast<double>(model.ffn_hidden) / work_.tp;
    const double kv_heads = std::max(1.0, static_cast<double>(attention_.kv_heads) / work_.tp);
    linear((heads_ + 2 * kv_heads) * attention_.key_dim, h);
    linear(h, heads_ * attention_.value_dim);
    linear(ffn * (mlp_matrices(model) - 1), h);
    linear(h, ffn);
  }

  // Scores and context of every head as products, with masked softmax and dropout between them in
  // memory; heads are copied apart before and together after.
  void plain_attention() {
    const double s = work_.model.seq;
    const double batch = work_.samples * heads_;
    const double d = attention_.key_dim;
    const auto product = [&](double m, double n, double k) {
      return matmul_time(engine_, {.batch = batch, .m = m, .n = n, .k = k});
    };
    const double scores = batch * s * s;
    const double qkv = tokens_ * (heads_ + 2.0 * attention_.kv_heads / work_.tp) * d;
    time_.forward.attention +=
        product(s, s, d) + product(s, d, s) + pass(9 * scores) + pass(2 * kElement * qkv);
    time_.backward.attention +=
        product(s, d, s) * 3.0 + product(s, s, d) + pass(11 * scores) + pass(2 * kElement * qkv);
  }

  void flash_attention() {
    const double s = work_.model.seq;
    const bool is_causal = work_.model.kind == workload::ModelKind::kGpt;
    const double operations = 2 * work_.samples * heads_ * s * s *
                              (attention_.key_dim + attention_.value_dim) * (is_causal ? 0.5 : 1);
    const Seconds forward{operations / (engine_.peak.value * engine_.efficiency * kFlashShare)};
    time_.forward.attention += forward;
    time_.backward.attention += forward * kFlashBackward;
  }

  // Norms; bias, dropout and residual sum; activation function.
  void between() {
    const workload::ModelShape& model = work_.model;
    const double h = model.hidden;
    const double ffn = static_cast<double>(model.ffn_hidden) / work_.tp;
    const double gate = mlp_matrices(model) - 1;  // inputs of the activation function
    time_.forward.passes += pass(2 * 2 * kElement * between_ * h) + pass(2 * 7 * between_ * h) +
                            pass((gate + 1) * kElement * tokens_ * ffn);
    time_.backward.passes += pass(2 * 4 * kElement * between_ * h) + pass(2 * 7 * between_ * h) +
                             pass((2 * gate + 2) * kElement * tokens_ * ffn);
  }

  const MatrixEngine& engine_;
  const Stack& stack_;
  const RankWork& work_;
  workload::AttentionShape attention_;
  double tokens_ = 0;
  double between_ = 0;  // tokens of what lies between the products
  double heads_ = 0;
  BlockTime time_;
};

}  // namespace

MatrixEngine matrix_engine(const topo::DeviceType& device, const Stack& stack) {
  const Calibration& calibration = stack.calibration;
  return {.processors = device.processors,
          .peak = std::max(device.bf16_peak, device.fp16_peak),
          .efficiency = calibration.matrix_efficiency,
          .tile_depth = calibration.tile_depth,
          .misalignment = calibration.misalignment,
          .memory = device.memory_bandwidth * calibration.memory_efficiency,
          .bytes_per_element = kElement};
}

BlockTime gpu_block_time(const MatrixEngine& engine, const Stack& stack, const RankWork& work) {
  return Block(engine, stack, work).time();
}

ComputeTime gpu_ends_time(const MatrixEngine& engine, const RankWork& work) {
  const double tokens = work.samples * work.model.seq;
  const double h = work.model.hidden;
  const double words = static_cast<double>(work.model.vocab) / work.tp;
  ComputeTime time;
  time.matmul = matmul_time(engine, {.m = tokens, .n = words, .k = h}) +
                matmul_time(engine, {.m = tokens, .n = h, .k = words}) +
                matmul_time(engine, {.m = h, .n = words, .k = tokens});
  // Logits in 16 bits, then in fp32 for the loss and its gradient; the embedding's rows thrice.
  constexpr double kLogitBytes = 20;
  time.passes =
      Seconds{(kLogitBytes * tokens * words + 6 * kElement * tokens * h) / engine.memory.value};
  return time;
}

Seconds gpu_optimizer_time(const MatrixEngine& engine, double parameters) {
  return Seconds{kOptimizerBytes * parameters / engine.memory.value};
}

}  // namespace regatta::cost
