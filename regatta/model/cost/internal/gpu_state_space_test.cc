#include "regatta/model/cost/internal/gpu_state_space.h"

#include <gtest/gtest.h>

#include "regatta/model/cost/memory.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/blocks.h"

namespace regatta::cost {
namespace {

using workload::BlockKind;
using workload::BlockMlp;
using workload::Mixer;

constexpr BlockKind kStateSpace{.mixer = Mixer::kStateSpace, .mlp = BlockMlp::kNone};
constexpr BlockKind kAttention{.mixer = Mixer::kAttention, .mlp = BlockMlp::kNone};

const SoftwareStack& stack() {
  return *find_software_stack("nemo");
}

GpuEngines h100() {
  return gpu_engines(topo::find_device_preset("h100-sxm")->device, stack(),
                     workload::Precision::kBf16);
}

workload::ModelShape nano(int seq) {
  workload::ModelShape model = workload::find_model_preset("nemotron3-nano")->model;
  model.seq = seq;
  return model;
}

double seconds(const workload::ModelShape& model, BlockKind kind, int tp = 1) {
  const BlockTime time = gpu_block_time(
      h100(), stack(), {.model = model, .samples = 1, .tp = tp, .sequence_parallel = true}, kind);
  return (time.forward.total() + time.backward.total()).value;
}

// Dao and Gu, 2024, section 6. Products of more tokens are a little more efficient.
TEST(StateSpace, TakesTimeInProportionToTheTokensWhereAttentionDoesNot) {
  EXPECT_NEAR(seconds(nano(65536), kStateSpace) / seconds(nano(8192), kStateSpace), 8, 0.4);
  EXPECT_GT(seconds(nano(65536), kAttention) / seconds(nano(8192), kAttention), 20);
}

TEST(StateSpace, NeverExceedsThePeakOnItsOperations) {
  const workload::ModelShape model = nano(8192);
  const workload::StateSpace& space = model.state_space;
  const double projections =
      6.0 * model.seq * model.hidden * static_cast<double>(space.projected() + space.inner());
  const double time = seconds(model, kStateSpace);
  EXPECT_LT(projections / time, 989e12);
  EXPECT_GT(projections / time, 0.15 * 989e12);
}

// The mixer of Mamba-2 2.7B takes 4 ms for 4096 tokens on an MI300X (ROCm/triton, issue 777), whose
// products are a third faster than those of an H100.
TEST(StateSpace, TakesAsLongAsTheMixerOfMamba2) {
  workload::ModelShape mamba = nano(4096);
  mamba.hidden = 2560;
  mamba.state_space = {.heads = 80, .head_dim = 64, .state = 128, .groups = 1, .chunk = 256};
  EXPECT_NEAR(seconds(mamba, kStateSpace), 4e-3, 0.5e-3);
}

TEST(StateSpace, IsDividedByTensorRanks) {
  EXPECT_NEAR(seconds(nano(8192), kStateSpace, 8) / seconds(nano(8192), kStateSpace), 1.0 / 8,
              0.05);
}

TEST(StateSpace, KeepsItsProjectionAndTheStatesOfItsChunks) {
  const workload::ModelShape model = nano(8192);
  const auto kept = [&](workload::Recompute recompute) {
    return gpu_block_memory(stack(), {.model = model}, recompute, workload::Precision::kBf16,
                            kStateSpace)
        .kept;
  };
  const double tokens = 8192;
  const double states = tokens / 128 * 64 * 64 * 128 * 4;
  const double widths = tokens * 2 * (10304 + 6144 + 2 * 4096 + 2 * 2688);
  EXPECT_NEAR(kept(workload::Recompute::kNone) / (states + widths), 1, 1e-9);
  EXPECT_EQ(kept(workload::Recompute::kFull), tokens * 2 * 2688);
}

}  // namespace
}  // namespace regatta::cost
