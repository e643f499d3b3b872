// workload/blocks.h: of which parts the blocks of a model are made, and which of its layers are of
// which kind.
#pragma once

#include <array>
#include <cstddef>

#include "regatta/model/workload/model.h"

namespace regatta::workload {

// The part of a block that lets tokens see each other.
enum class Mixer {
  kAttention,
  kWindowAttention,  // model.window says what a token sees
  kStateSpace,
  kNone,
};
// The part of a block that takes tokens one by one.
enum class BlockMlp { kPlain, kExperts, kNone };

struct BlockKind {
  Mixer mixer = Mixer::kAttention;
  BlockMlp mlp = BlockMlp::kPlain;
  bool predicts = false;  // with the parts of a module of model.mtp_layers around it

  // Counts its mixer and its MLP, where it has them.
  int parts() const { return (mixer != Mixer::kNone ? 1 : 0) + (mlp != BlockMlp::kNone ? 1 : 0); }
  friend bool operator==(const BlockKind&, const BlockKind&) = default;
};
inline bool has_attention(Mixer mixer) {
  return mixer == Mixer::kAttention || mixer == Mixer::kWindowAttention;
}

// The kinds of a model by number. With a layer_pattern: attention, MLP, experts, state space, each
// alone; else the plain MLP and experts, and those two with a window. The last is that of the
// modules that predict further tokens.
inline constexpr int kBlockKinds = 5;
inline constexpr int kPredictionKind = 4;
BlockKind block_kind(const ModelShape& model, int kind);
// From 0 to layers - 1.
int block_kind_of_layer(const ModelShape& model, int layer);

// How many blocks there are of every kind.
struct BlockCounts {
  std::array<double, kBlockKinds> of{};

  double& operator[](int kind) { return of[static_cast<std::size_t>(kind)]; }
  double operator[](int kind) const { return of[static_cast<std::size_t>(kind)]; }
  BlockCounts& operator+=(const BlockCounts& other) {
    for (std::size_t kind = 0; kind < of.size(); ++kind)
      of[kind] += other.of[kind];
    return *this;
  }
  BlockCounts& operator*=(double factor) {
    for (double& count : of)
      count *= factor;
    return *this;
  }
};
// Blocks with the plain MLP and blocks with experts of a model whose kinds are in order.
inline BlockCounts dense_and_expert_blocks(double dense, double expert) {
  return {.of = {dense, expert}};
}

// Layers [first, first + count); behind the last of all the modules that predict. Cost: one step
// where the kinds are in order, else one for each layer.
BlockCounts block_counts(const ModelShape& model, int first, int count);
BlockCounts all_blocks(const ModelShape& model);

// Whether the first dense_layers() blocks have the plain MLP and all others experts, and all
// attention sees every token: kinds 0 and 1, one behind the other.
bool are_kinds_in_order(const ModelShape& model);

// Tokens that a query of this mixer sees, the mean over a sample or over a packed one: those before
// it and itself; of an encoder all.
double seen_tokens(const ModelShape& model, Mixer mixer);

LayerParameters block_parameters(const ModelShape& model, BlockKind kind);

}  // namespace regatta::workload
