#include "regatta/model/cost/software_stack.h"

#include <string>

#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"

namespace regatta::cost {
namespace {

using workload::Precision;
using workload::Recompute;

std::string usual(const char* model, Precision precision,
                  const workload::StrategyRequest& request = {},
                  const char* device = "a100-sxm4-80g") {
  return default_software_stack(workload::find_model_preset(model)->model, precision, request,
                                topo::find_device_preset(device)->device)
      .name;
}

TEST(DefaultSoftwareStack, IsOfTheTimeOfTheModelTheDeviceAndThePrecision) {
  EXPECT_EQ(usual("gpt3-175b", Precision::kBf16), "megatron-core");
  EXPECT_EQ(usual("gpt3-175b", Precision::kFp16), "megatron-lm-2022");
  // A strategy does not change what it is predicted with.
  EXPECT_EQ(usual("gpt3-175b", Precision::kBf16, {.recompute = Recompute::kSelective}),
            "megatron-core");
  // Neither the model nor the device is of 2022.
  EXPECT_EQ(usual("llama3-70b", Precision::kBf16, {.recompute = Recompute::kSelective}),
            "megatron-core");
  EXPECT_EQ(usual("gpt3-175b", Precision::kFp16, {}, "h100-sxm"), "megatron-core");
  EXPECT_EQ(usual("llama3-70b", Precision::kFp8, {}, "h100-sxm"), "megatron-bridge-dense");
  EXPECT_EQ(usual("llama3-70b", Precision::kMxfp8, {}, "gb200"), "megatron-bridge-dense");
  EXPECT_EQ(usual("llama3-70b", Precision::kNvfp4, {}, "b300-sxm"), "megatron-bridge-dense");
  EXPECT_EQ(usual("llama3-70b", Precision::kBf16, {.zero = 3}), "fsdp");
  EXPECT_EQ(usual("qwen3-30b-a3b", Precision::kBf16, {}, "h100-sxm"), "megatron-bridge");
  EXPECT_EQ(usual("qwen3-30b-a3b", Precision::kMxfp8, {}, "gb200"), "megatron-bridge-graphs");
  EXPECT_EQ(usual("qwen3-30b-a3b", Precision::kBf16, {}, "gb200"), "megatron-bridge");
  EXPECT_EQ(usual("nemotron3-super", Precision::kMxfp8, {}, "gb200"), "megatron-bridge");
  EXPECT_EQ(usual("qwen3-30b-a3b", Precision::kBf16, {.zero = 3}, "h100-sxm"), "automodel");
  EXPECT_EQ(usual("mixtral-8x7b", Precision::kBf16), "megatron-core") << "A100";
}

TEST(SoftwareStack, SaysWhatItAssumesAndWasFittedOn) {
  for (const std::string& name : software_stack_names()) {
    EXPECT_NE(find_software_stack(name)->assumes, "") << name;
    EXPECT_NE(find_software_stack(name)->fitted_on, "") << name;
  }
}

TEST(WasCompared, KnowsTheKindsOfPublishedRuns) {
  EXPECT_TRUE(was_compared({.device = "a100-sxm4-80g", .precision = Precision::kFp16}));
  EXPECT_FALSE(was_compared({.device = "t4", .precision = Precision::kFp8}));
  EXPECT_FALSE(was_compared({.device = "my-own", .precision = Precision::kBf16}));
  const PredictionErrorRange range = widened({.low = 0.9, .high = 1.2});
  EXPECT_NEAR(range.low, 0.8, 1e-9);
  EXPECT_NEAR(range.high, 1.4, 1e-9);
}

TEST(FindSoftwareStack, KnowsEveryNameAndNoOther) {
  for (const std::string& name : software_stack_names())
    EXPECT_NE(find_software_stack(name), nullptr) << name;
  EXPECT_EQ(find_software_stack("megatron"), nullptr);
}

}  // namespace
}  // namespace regatta::cost
