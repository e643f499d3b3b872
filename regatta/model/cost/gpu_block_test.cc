#include "regatta/model/cost/gpu_block.h"

#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::cost {
namespace {

const workload::ModelShape& model(const char* name) {
  return workload::find_model_preset(name)->model;
}

constexpr workload::BlockKind kExpertBlock{.mlp = workload::BlockMlp::kExperts};

const SoftwareStack& stack() {
  return *find_software_stack("megatron-deepspeed-fp16");
}

GpuEngines a100() {
  return gpu_engines(topo::find_device_preset("a100-sxm4-80g")->device, stack(),
                     workload::Precision::kFp16);
}

BlockTime block(const char* name, double samples, int tp, bool sequence_parallel = false) {
  return gpu_block_time(
      a100(), stack(),
      {.model = model(name), .samples = samples, .tp = tp, .sequence_parallel = sequence_parallel});
}

// Narayanan et al., SC'21, appendix: 24 B s h^2 + 4 B s^2 h operations forward, twice that
// backward.
TEST(GpuBlock, NeverExceedsThePeakOnTheOperationsOfTheModel) {
  for (const char* name : {"gpt3-6.7b", "gpt3-175b", "llama3-70b"}) {
    const workload::ModelShape& shape = model(name);
    const double samples = 4;
    const double operations =
        (model_flops(shape, 4).value - 6.0 * samples * shape.seq * shape.hidden * shape.vocab) /
        shape.layers;
    const BlockTime time = block(name, samples, 1);
    const double total = (time.forward.total() + time.backward.total()).value;
    EXPECT_LT(operations / total, 312e12) << name;
    EXPECT_GT(operations / total, 0.4 * 312e12) << name;
    EXPECT_GT(time.backward.matmul, time.forward.matmul * 1.8) << name;
  }
}

TEST(GpuBlock, TensorRanksShareTheProductsAndWithTheTokensAllPasses) {
  const BlockTime whole = block("gpt3-175b", 2, 1);
  const BlockTime eighth = block("gpt3-175b", 2, 8);
  const BlockTime shared = block("gpt3-175b", 2, 8, true);
  EXPECT_NEAR(eighth.forward.matmul / whole.forward.matmul, 1.0 / 8, 0.02);
  EXPECT_GT(eighth.forward.passes, whole.forward.passes / 4);
  EXPECT_NEAR(shared.forward.passes / whole.forward.passes, 1.0 / 8, 1e-9);
}

TEST(GpuBlock, FusedAttentionSavesThePassesOverTheScores) {
  SoftwareStack fused = stack();
  fused.traits.flash_attention = true;
  const RankWork work{.model = model("gpt3-6.7b"), .samples = 1, .tp = 1};
  const BlockTime plain = gpu_block_time(a100(), stack(), work);
  const BlockTime flash = gpu_block_time(a100(), fused, work);
  EXPECT_LT(flash.forward.attention, plain.forward.attention / 3);
  EXPECT_EQ(flash.forward.matmul, plain.forward.matmul);
}

TEST(GpuBlock, FewerHeadsOfKeysAndValuesMakeTheirProductSmaller) {
  workload::ModelShape grouped = model("llama2-7b");
  grouped.kv_heads = 8;
  const auto time = [](const workload::ModelShape& shape) {
    return gpu_block_time(a100(), stack(), {.model = shape, .samples = 1}).forward.matmul;
  };
  EXPECT_LT(time(grouped), time(model("llama2-7b")));
}

GpuEngines gb200(workload::Precision precision) {
  return gpu_engines(topo::find_device_preset("gb200")->device, *find_software_stack("nemo"),
                     precision);
}

// Bytes of a copy as it is and one transposed: 2 read, 1 + 1/32 or 0.5 + 1/16 written twice.
TEST(GpuEngines, MultiplyFewerBitsFasterAndCastLonger) {
  using workload::Precision;
  const GpuEngines wide = gb200(Precision::kBf16);
  const GpuEngines eight = gb200(Precision::kMxfp8);
  const GpuEngines four = gb200(Precision::kNvfp4);
  EXPECT_EQ(wide.cast_bytes, 0);
  EXPECT_GT(eight.cast_bytes, gb200(Precision::kFp8).cast_bytes);
  EXPECT_GT(four.cast_bytes, eight.cast_bytes);
  EXPECT_DOUBLE_EQ(four.products.bytes_per_element, 0.5625);
  EXPECT_DOUBLE_EQ(eight.products.peak.value, 5e15);
  EXPECT_DOUBLE_EQ(four.products.peak.value, 1e16);
  EXPECT_EQ(four.scores.peak, wide.scores.peak) << "scores and context stay in 16 bits";

  const RankWork work{.model = model("llama3-405b"), .samples = 1, .tp = 4};
  const auto matmul = [&](const GpuEngines& engines) {
    return gpu_block_time(engines, *find_software_stack("nemo"), work).forward.matmul;
  };
  EXPECT_LT(matmul(eight), matmul(wide) * 0.6);
  EXPECT_LT(matmul(four), matmul(eight) * 0.7);
}

TEST(CheckPrecision, NamesThePrecisionsThatTheDeviceHas) {
  const topo::DeviceType& h100 = topo::find_device_preset("h100-sxm")->device;
  EXPECT_TRUE(check_precision(h100, workload::Precision::kFp8));
  const Status refused = check_precision(h100, workload::Precision::kMxfp8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "precision: h100-sxm has no mxfp8; take one of fp32, tf32, fp16, bf16, fp8, or give "
            "devices.mxfp8_peak of its server type");
}

// 384 experts over 32 ranks: 2730.67 tokens an expert are no multiple of what tensor cores read.
TEST(GpuBlock, TokensOfExpertsArePaddedToWholeTiles) {
  workload::ModelShape odd = model("deepseek-v3");
  odd.experts.count = 384;
  const auto products = [](const workload::ModelShape& shape) {
    const BlockTime time = gpu_block_time(
        a100(), stack(), {.model = shape, .samples = 1, .tp = 1, .ep = 32}, kExpertBlock);
    return (time.forward.matmul + time.backward.matmul).value;
  };
  EXPECT_NEAR(products(odd) / products(model("deepseek-v3")), 1, 0.15);
}

// Whole experts of a rank get the tokens of its own share of the ranks; split ones those of all
// tensor ranks. The operations are the same, and few tokens an expert are slower.
TEST(GpuBlock, RanksComputeAsMuchOfExpertsForEveryTensorDegree) {
  const auto products = [](int etp, int ep) {
    const RankWork work{.model = model("mixtral-8x22b"),
                        .samples = 4,
                        .tp = 4,
                        .sequence_parallel = true,
                        .ep = ep,
                        .etp = etp};
    return gpu_block_time(a100(), stack(), work, kExpertBlock).forward;
  };
  EXPECT_NEAR(products(1, 8).matmul / products(4, 8).matmul, 1, 0.05);
  EXPECT_NEAR(products(2, 8).matmul / products(4, 8).matmul, 1, 0.05);
  EXPECT_NEAR(products(1, 8).passes / products(4, 8).passes, 1, 0.05);
  EXPECT_EQ(products(1, 8).attention, products(4, 8).attention);
}

BlockTime block_of(const workload::ModelShape& shape, const char* stack, const char* device,
                   workload::Precision precision, workload::BlockKind kind = kExpertBlock) {
  const SoftwareStack& used = *find_software_stack(stack);
  const GpuEngines engines = gpu_engines(topo::find_device_preset(device)->device, used, precision);
  return gpu_block_time(engines, used, {.model = shape, .samples = 4, .ep = 8}, kind);
}

// Expert by expert in fp32: 28 bytes of an element forward and 40 backward; one kernel for all adds
// them as it goes, and the gradients are summed in both.
TEST(GpuBlock, BiasesOfExpertsCostPassesUnlessOneKernelDoesAll) {
  const workload::ModelShape biased = model("gpt-oss-120b");
  workload::ModelShape plain = biased;
  plain.linear_biases = false;
  const auto added = [&](const char* stack) {
    const auto passes = [&](const workload::ModelShape& shape) {
      const BlockTime time = block_of(shape, stack, "b200-sxm", workload::Precision::kMxfp8);
      return time.forward.passes + time.backward.passes;
    };
    return passes(biased) - passes(plain);
  };
  const double elements = 4.0 * 4096 * 4 * 2880;
  const double memory = 0.838 * 8e12;
  EXPECT_NEAR(added("megatron-bridge").value, elements * (28 + 40 + 2 * 3) / memory, 1e-6);
  EXPECT_NEAR(added("megatron-bridge-graphs").value, elements * 2 * 3 / memory, 1e-6);
}

// As measured on B200: 0.73 of the rate with heads of half the width, and half the rate with a
// sixteenth of the tokens.
TEST(GpuBlock, ShortHeadsAndRowsCostAttentionMoreOnBlackwell) {
  workload::ModelShape wide = model("llama3-8b");
  workload::ModelShape narrow = wide;
  narrow.heads *= 2;
  narrow.head_dim = 64;
  const auto attention = [](const workload::ModelShape& shape, const char* device) {
    return block_of(shape, "megatron-bridge-dense", device, workload::Precision::kBf16, {})
        .forward.attention.value;
  };
  EXPECT_NEAR(attention(wide, "b200-sxm") / attention(narrow, "b200-sxm"), 0.73, 0.01);
  EXPECT_NEAR(attention(wide, "a100-sxm4-80g") / attention(narrow, "a100-sxm4-80g"), 0.88, 0.01);
  EXPECT_GT(attention(wide, "b300-sxm") / attention(narrow, "b300-sxm"), 0.8);
  workload::ModelShape shorter = wide;
  wide.seq = 16384;
  shorter.seq = 1024;
  EXPECT_NEAR(256 * attention(shorter, "b200-sxm") / attention(wide, "b200-sxm"), 2, 0.05);
}

// Two bytes read of each weight, one written as it is and one transposed.
TEST(GpuBlock, FineTuningCastsItsWeightsForEveryMicroBatch) {
  workload::ModelShape packed = model("llama3-8b");
  const auto passes = [&] {
    return block_of(packed, "nemo", "h100-sxm", workload::Precision::kFp8, {}).forward.passes.value;
  };
  const double before = passes();
  packed.packed = packed.seq;
  const double weights = 4096.0 * (4096 + 2 * 1024 + 4096 + 3 * 14336);
  EXPECT_NEAR(passes() - before, 4 * weights / (0.838 * 3.35e12), 1e-6);
}

TEST(GpuBlock, SharedExpertsStayWithTheTensorRanks) {
  const auto products = [](int shared, int etp) {
    workload::ModelShape shape = model("deepseek-v2");
    shape.experts.shared = shared;
    const RankWork work{.model = shape, .tp = 4, .sequence_parallel = true, .ep = 32, .etp = etp};
    return gpu_block_time(a100(), stack(), work, kExpertBlock).forward.matmul.value;
  };
  EXPECT_NEAR((products(2, 1) - products(0, 1)) / (products(2, 4) - products(0, 4)), 1, 1e-9);
}

}  // namespace
}  // namespace regatta::cost
