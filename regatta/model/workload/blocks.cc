#include "regatta/model/workload/blocks.h"

#include <algorithm>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::workload {
namespace {

// Kinds without a layer_pattern.
constexpr int kWithExperts = 1;
constexpr int kWithWindow = 2;

// Kinds with one.
constexpr std::string_view kLetters = "*-EM";
constexpr std::array<BlockKind, 4> kParts = {
    BlockKind{.mixer = Mixer::kAttention, .mlp = BlockMlp::kNone},
    BlockKind{.mixer = Mixer::kNone, .mlp = BlockMlp::kPlain},
    BlockKind{.mixer = Mixer::kNone, .mlp = BlockMlp::kExperts},
    BlockKind{.mixer = Mixer::kStateSpace, .mlp = BlockMlp::kNone}};
static_assert(kLetters.size() == kParts.size());

bool layer_has_window(const ModelShape& model, int layer) {
  const AttentionWindow& window = model.window;
  if (window.tokens == 0) return false;
  return window.full_every == 0 || (layer + 1) % window.full_every != 0;
}

bool layer_has_experts(const ModelShape& model, int layer) {
  const Experts& experts = model.experts;
  return has_experts(model) && layer >= experts.dense_layers && (layer + 1) % experts.every == 0;
}

}  // namespace

BlockKind block_kind(const ModelShape& model, int kind) {
  REGATTA_CHECK(kind >= 0 && kind < kBlockKinds);
  if (kind == kPredictionKind) {
    return {.mlp = has_experts(model) ? BlockMlp::kExperts : BlockMlp::kPlain, .predicts = true};
  }
  if (!model.layer_pattern.empty()) return at(kParts, kind);
  return {.mixer = kind >= kWithWindow ? Mixer::kWindowAttention : Mixer::kAttention,
          .mlp = kind % kWithWindow == kWithExperts ? BlockMlp::kExperts : BlockMlp::kPlain};
}

int block_kind_of_layer(const ModelShape& model, int layer) {
  if (!model.layer_pattern.empty()) {
    const std::size_t kind = kLetters.find(at(model.layer_pattern, layer));
    REGATTA_CHECK(kind != std::string_view::npos);
    return static_cast<int>(kind);
  }
  return (layer_has_window(model, layer) ? kWithWindow : 0) +
         (layer_has_experts(model, layer) ? kWithExperts : 0);
}

bool are_kinds_in_order(const ModelShape& model) {
  return model.window.tokens == 0 && model.experts.every == 1 && model.layer_pattern.empty();
}

BlockCounts block_counts(const ModelShape& model, int first, int count) {
  BlockCounts counts;
  if (are_kinds_in_order(model)) {
    const int dense = std::clamp(dense_layers(model) - first, 0, count);
    counts = dense_and_expert_blocks(dense, count - dense);
  } else {
    for (int layer = first; layer < first + count; ++layer)
      counts[block_kind_of_layer(model, layer)] += 1;
  }
  if (first + count == model.layers) counts[kPredictionKind] = model.mtp_layers;
  return counts;
}

BlockCounts all_blocks(const ModelShape& model) {
  return block_counts(model, 0, model.layers);
}

double seen_tokens(const ModelShape& model, Mixer mixer) {
  const double seq = model.packed > 0 ? std::min(model.packed, model.seq) : model.seq;
  const double window = std::min<double>(model.window.tokens, seq);
  if (mixer != Mixer::kWindowAttention || window == 0)
    return model.kind == ModelKind::kEncoder ? seq : seq / 2;
  // The first tokens of a sample see fewer than a window.
  return model.window.is_chunked ? window / 2 : window - window * window / (2 * seq);
}

}  // namespace regatta::workload
