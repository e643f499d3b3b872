#include "regatta/planning/plan/launch.h"

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/test_files.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/test_launch_cases.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;
using testing::Not;
using workload::ModelShape;
using workload::PipelineSchedule;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

using Case = LaunchCase;

Case gpt3() {
  return {.model = preset("gpt3-175b"),
          .strategy = {.tp = 8,
                       .pp = 8,
                       .dp = 16,
                       .recompute = Recompute::kSelective,
                       .schedule = PipelineSchedule::kInterleaved,
                       .virtual_stages = 3,
                       .sequence_parallel = true,
                       .zero = 1},
          .global_batch = 1536,
          .servers = 128};
}

Case llama3() {
  Case one{.model = preset("llama3-70b"),
           .strategy = {.tp = 4,
                        .pp = 4,
                        .dp = 2,
                        .schedule = PipelineSchedule::kInterleaved,
                        .virtual_stages = 5,
                        .sequence_parallel = true,
                        .cp = 2,
                        .zero = 1},
           .global_batch = 128,
           .servers = 8,
           .precision = Precision::kFp8};
  return one;
}

Case mixtral() {
  return {.model = preset("mixtral-8x7b"),
          .strategy = {.tp = 2, .pp = 4, .dp = 8, .sequence_parallel = true, .ep = 8, .zero = 1},
          .global_batch = 256,
          .servers = 8};
}

Case llama2() {
  return {.model = preset("llama2-7b"),
          .strategy = {.dp = 16,
                       .micro_batch = 2,
                       .recompute = Recompute::kFull,
                       .zero = 3,
                       .shard_ranks = 8},
          .global_batch = 128,
          .servers = 2};
}

std::string golden(const std::string& name) {
  return read_test_file(std::string(REGATTA_TESTDATA) + "/launch/" + name);
}

TEST(LaunchArguments, AreTheKnownScripts) {
  EXPECT_EQ(*gpt3().script(Launcher::kMegatron), golden("gpt3-175b.megatron.sh"));
  EXPECT_EQ(*mixtral().script(Launcher::kMegatronBridge),
            golden("mixtral-8x7b.megatron-bridge.py"));
  EXPECT_EQ(*llama3().script(Launcher::kMegatron), golden("llama3-70b.megatron.sh"));
  EXPECT_EQ(*mixtral().script(Launcher::kMegatron), golden("mixtral-8x7b.megatron.sh"));
  EXPECT_EQ(*llama2().script(Launcher::kTorchtitan), golden("llama2-7b.torchtitan.sh"));
  EXPECT_EQ(*llama2().script(Launcher::kDeepspeed), golden("llama2-7b.deepspeed.sh"));
}

// The flags of a script and their values, "" for a flag alone; a flag twice fails the test.
std::map<std::string, std::string> flags_of(const std::string& script) {
  std::map<std::string, std::string> flags;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  --")) continue;
    const std::size_t space = line.find(' ', 2);
    const std::string name = line.substr(2, space - 2);
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    EXPECT_TRUE(flags.emplace(name, value).second) << name;
  }
  return flags;
}

class Values {
 public:
  explicit Values(const std::string& script) : flags_(flags_of(script)) {}
  bool has(const std::string& flag) const { return flags_.contains(flag); }
  std::string text(const std::string& flag) const {
    EXPECT_TRUE(has(flag)) << flag;
    return has(flag) ? flags_.at(flag) : "";
  }
  int number(const std::string& flag) const {
    const std::string value = text(flag);
    return value.empty() ? 0 : std::stoi(value);
  }

 private:
  std::map<std::string, std::string> flags_;
};

// Expects the flags that are there and those that are not; numbers only where the flag has one.
void expect_flags(const Values& values, const std::map<std::string, bool>& there,
                  const std::map<std::string, int>& numbers) {
  for (const auto& [flag, is_there] : there)
    EXPECT_EQ(values.has(flag), is_there) << flag;
  for (const auto& [flag, number] : numbers)
    EXPECT_EQ(values.number(flag), number) << flag;
}

void expect_megatron_model(const ModelShape& model, const Strategy& strategy,
                           const Values& values) {
  const bool has_groups =
      !has_latent_attention(model) && model.kv_heads > 0 && model.kv_heads != model.heads;
  expect_flags(values,
               {{"--num-experts", has_experts(model)},
                {"--multi-latent-attention", has_latent_attention(model)},
                {"--group-query-attention", has_groups},
                {"--swiglu", model.activation == workload::Activation::kSwiglu},
                {"--add-qkv-bias", model.qkv_biases},
                {"--untie-embeddings-and-output-weights", !model.tied_embeddings}},
               {{"--num-layers", model.layers},
                {"--hidden-size", model.hidden},
                {"--num-attention-heads", model.heads},
                {"--seq-length", model.seq}});
  if (!has_experts(model)) return;
  expect_flags(values, {},
               {{"--expert-model-parallel-size", strategy.ep},
                {"--expert-tensor-parallel-size", strategy.expert_tp()},
                {"--moe-router-topk", model.experts.top_k}});
}

void expect_megatron(const Case& one, const Values& values) {
  const Strategy& strategy = one.strategy;
  expect_flags(
      values,
      {{"--sequence-parallel", strategy.sequence_parallel},
       {"--use-distributed-optimizer", strategy.zero == 1},
       {"--overlap-grad-reduce", strategy.overlap && strategy.dp * strategy.cp > 1},
       {"--recompute-granularity", strategy.recompute != Recompute::kNone},
       {"--recompute-num-layers", strategy.recompute == Recompute::kFull},
       {"--recompute-modules", needs_experts(strategy.recompute)},
       {"--cp-comm-type", strategy.cp > 1},
       {"--fp8-format", one.precision == Precision::kFp8 || one.precision == Precision::kMxfp8},
       {"--bf16", one.precision != Precision::kFp16},
       {"--fp16", one.precision == Precision::kFp16}},
      {{"--tensor-model-parallel-size", strategy.tp},
       {"--pipeline-model-parallel-size", strategy.pp},
       {"--context-parallel-size", strategy.cp}});
  // Megatron-LM takes what is left of the ranks for replicas.
  const int ranks = values.number("--nnodes") * values.number("--nproc-per-node");
  const int replicas = ranks / (strategy.tp * strategy.pp * strategy.cp);
  EXPECT_EQ(replicas, strategy.dp);
  EXPECT_EQ(values.number("--global-batch-size") / (values.number("--micro-batch-size") * replicas),
            *workload::micro_batches(one.model, strategy, one.global_batch));
  if (values.has("--num-layers-per-virtual-pipeline-stage")) {
    EXPECT_EQ(values.number("--num-layers-per-virtual-pipeline-stage") * strategy.pp *
                  strategy.virtual_stages,
              one.model.layers);
  }
  expect_megatron_model(one.model, strategy, values);
}

void expect_torchtitan_pipeline(const Case& one, const Values& values) {
  const Strategy& strategy = one.strategy;
  const int micro_batches = *workload::micro_batches(one.model, strategy, one.global_batch);
  const int local = values.number("--training.local_batch_size");
  if (strategy.pp == 1) {
    EXPECT_EQ(values.number("--training.global_batch_size") / (local * strategy.dp), micro_batches);
    return;
  }
  EXPECT_EQ(local, micro_batches * strategy.micro_batch);
  EXPECT_EQ(values.number("--parallelism.pipeline_parallel_microbatch_size"), strategy.micro_batch);
  const int parts = strategy.schedule == PipelineSchedule::kZbV ? 2 : strategy.virtual_stages;
  const auto layers = [&](const std::string& name) {
    return values.number("--parallelism.pipeline_parallel_" + name);
  };
  EXPECT_EQ(
      layers("layers_per_stage") * parts * strategy.pp,
      one.model.layers + layers("first_stage_less_layers") + layers("last_stage_less_layers"));
}

void expect_torchtitan(const Case& one, const Values& values) {
  const Strategy& strategy = one.strategy;
  const int shards = strategy.zero == 0 ? 1 : strategy.dp;
  expect_flags(values,
               {{"--model.converters", is_eight_bits_or_less(one.precision)},
                {"--parallelism.expert_parallel_degree", has_experts(one.model)},
                {"--parallelism.pipeline_parallel_schedule", strategy.pp > 1}},
               {{"--parallelism.data_parallel_shard_degree", shards},
                {"--parallelism.data_parallel_replicate_degree", strategy.dp / shards},
                {"--parallelism.tensor_parallel_degree", strategy.tp},
                {"--parallelism.context_parallel_degree", strategy.cp},
                {"--parallelism.pipeline_parallel_degree", strategy.pp}});
  EXPECT_EQ(values.number("--nnodes") * values.number("--nproc-per-node"), strategy.world_size());
  // torchtitan/distributed/parallel_dims.py.
  if (strategy.ep > 1) {
    const int etp = values.number("--parallelism.expert_tensor_parallel_degree");
    EXPECT_EQ(etp, strategy.expert_tp());
    EXPECT_TRUE(etp == 1 || etp == strategy.tp);
    const int lent = etp == strategy.tp ? 1 : strategy.tp;
    EXPECT_EQ(strategy.ep % (strategy.cp * lent), 0);
    EXPECT_EQ(shards * strategy.cp * lent % strategy.ep, 0);
  }
  if (strategy.zero == 3) {
    EXPECT_EQ(values.text("--parallelism.fsdp_reshard_after_forward"), "always");
  }
  EXPECT_EQ(values.text("--activation_checkpoint.mode"), to_string(strategy.recompute));
  expect_torchtitan_pipeline(one, values);
}

void expect_deepspeed(const Case& one, const std::string& script) {
  const std::size_t start = script.find('{', script.find("<<'END'"));
  const auto config = nlohmann::json::parse(script.substr(start, script.find("\nEND") - start));
  const Values values(script);
  const int ranks = values.number("--num_nodes") * values.number("--num_gpus");
  EXPECT_EQ(ranks, one.strategy.dp * one.strategy.tp);
  if (one.strategy.tp > 1) {
    EXPECT_EQ(config["tensor_parallel"]["autotp_size"].get<int>(), one.strategy.tp);
  }
  EXPECT_EQ(config["train_batch_size"].get<int>(),
            config["train_micro_batch_size_per_gpu"].get<int>() *
                config["gradient_accumulation_steps"].get<int>() * one.strategy.dp);
  EXPECT_EQ(config["train_batch_size"].get<int>(), one.global_batch);
  EXPECT_EQ(config["zero_optimization"]["stage"].get<int>(), one.strategy.zero);
  EXPECT_EQ(config.contains("bf16"), one.precision == Precision::kBf16);
  EXPECT_EQ(config.contains("fp16"), one.precision == Precision::kFp16);
}

TEST(LaunchArguments, SayWhatTheStrategySaysOrAreRefused) {
  std::mt19937 random(11);
  std::map<Launcher, int> complete;
  for (int tried = 0; tried < 600;) {
    const Case one = random_launch_case(random);
    if (!workload::micro_batches(one.model, one.strategy, one.global_batch)) continue;
    for (const Launcher launcher : kLaunchers) {
      ++tried;
      SCOPED_TRACE(to_string(launcher) + " " + one.model.preset + " " + to_string(one.strategy));
      const auto script = one.script(launcher);
      if (!script) {
        EXPECT_EQ(exit_status(script.error()), 2);
        EXPECT_THAT(script.error().message, HasSubstr("; "));
        continue;
      }
      ++complete[launcher];
      if (launcher == Launcher::kMegatron) expect_megatron(one, Values(*script));
      if (launcher == Launcher::kTorchtitan) expect_torchtitan(one, Values(*script));
      if (launcher == Launcher::kDeepspeed) expect_deepspeed(one, *script);
    }
  }
  EXPECT_GT(complete[Launcher::kMegatron], 40);
  EXPECT_GT(complete[Launcher::kTorchtitan], 10);
  EXPECT_GT(complete[Launcher::kDeepspeed], 0);
}

std::string refusal(Case one, Launcher launcher, void (*change)(Case&)) {
  change(one);
  const auto script = one.script(launcher);
  return script ? "" : script.error().message;
}

TEST(LaunchArguments, RefuseByNameWhatMegatronLacks) {
  const auto refused = [](void (*change)(Case&)) {
    return refusal(gpt3(), Launcher::kMegatron, change);
  };
  EXPECT_EQ(refused([](Case& one) {
              one.strategy.schedule = PipelineSchedule::kZbV;
              one.strategy.virtual_stages = 1;
            }),
            "megatron: it has no schedule zb-v; set schedule 1f1b or interleaved");
  EXPECT_THAT(refused([](Case& one) { one.strategy.zero = 2; }), HasSubstr("zero 2 is FSDP"));
  EXPECT_THAT(refused([](Case& one) { one.strategy.offload = workload::Offload::kBoth; }),
              HasSubstr("activations stay on the device"));
  EXPECT_THAT(refused([](Case& one) { one.global_batch = 16 * 12; }),
              HasSubstr("a multiple of it in micro-batches, not pp 8 and 12"));
  EXPECT_THAT(refused([](Case& one) {
                one.servers = 64;
                one.strategy.dp = 0;
              }),
              HasSubstr("every degree"));
}

TEST(LaunchArguments, RefuseByNameWhatTheOthersLack) {
  EXPECT_EQ(refusal(gpt3(), Launcher::kDeepspeed, [](Case&) {}),
            "deepspeed: pp 8 is the program's, no configuration has it; set pp 1, or launch with "
            "megatron");
  EXPECT_THAT(refusal(llama2(), Launcher::kTorchtitan, [](Case& one) { one.strategy.zero = 1; }),
              HasSubstr("set zero 2 or 3"));
  EXPECT_THAT(
      refusal(llama2(), Launcher::kTorchtitan, [](Case& one) { one.precision = Precision::kTf32; }),
      HasSubstr("tf32 has no flag; take bf16"));
}

TEST(LaunchArguments, RefuseDevicesThatAreNotTheRanks) {
  const Case one = llama2();
  const auto script = launch_arguments(Launcher::kTorchtitan, {.model = one.model,
                                                               .strategy = one.strategy,
                                                               .global_batch = 128,
                                                               .servers = 3,
                                                               .devices_per_server = 8,
                                                               .optimizer = {}});
  EXPECT_EQ(script.error().message,
            "3 servers of 8 devices: the strategy has 16 ranks; name servers and devices whose "
            "product that is");
}

TEST(LaunchArguments, WriteUnevenStagesOut) {
  Case one{.model = preset("deepseek-v3"),
           .strategy = {.pp = 16, .dp = 4, .ep = 4, .zero = 1},
           .global_batch = 64,
           .servers = 8};
  const auto layout = one.script(Launcher::kMegatron);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_THAT(*layout, HasSubstr("--pipeline-model-parallel-layout 'Et*3|"));
  EXPECT_THAT(*layout, HasSubstr("Megatron-Core 0.13 or later"));
  EXPECT_THAT(*layout, HasSubstr("--moe-layer-freq '([0]*3+[1]*58)'"));
  one.model = preset("llama3-405b");
  one.strategy = {.tp = 8, .pp = 16, .sequence_parallel = true};
  one.servers = 16;
  const auto ends = one.script(Launcher::kMegatron);
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_THAT(*ends, HasSubstr("--decoder-first-pipeline-num-layers 7"));
  EXPECT_THAT(*ends, Not(HasSubstr("layout")));
}

TEST(LaunchArguments, WriteTheLayersThatStagesAreGiven) {
  Case one{.model = preset("llama3-8b"),
           .strategy = {.tp = 2, .pp = 4, .sequence_parallel = true},
           .global_batch = 8,
           .servers = 1};
  one.strategy.stage_layers = {7, 9, 9, 7};
  const auto ends = one.script(Launcher::kMegatron);
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_THAT(*ends, HasSubstr("--decoder-first-pipeline-num-layers 7"));
  EXPECT_THAT(*ends, HasSubstr("--decoder-last-pipeline-num-layers 7"));
  one.strategy.stage_layers = {8, 8, 9, 7};
  const auto layout = one.script(Launcher::kMegatron);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_THAT(*layout, HasSubstr("--pipeline-model-parallel-layout 'Et*8|t*8|t*9|t*7L'"));
  one.strategy.schedule = workload::PipelineSchedule::kInterleaved;
  one.strategy.virtual_stages = 2;
  one.strategy.stage_layers = {8, 10, 8, 6};
  const auto parts = one.script(Launcher::kMegatron);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_THAT(*parts, HasSubstr("'Et*4|t*5|t*4|t*3|t*4|t*5|t*4|t*3L'"));
  one.strategy.stage_layers = {3, 4, 5, 5, 5, 5, 5, 0};
  const auto listed = one.script(Launcher::kMegatron);
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_THAT(*listed, HasSubstr("'Et*3|t*4|t*5|t*5|t*5|t*5|t*5|L'"));
  one.strategy.stage_layers = {8, 8, 8, 8};
  const auto equal = one.script(Launcher::kMegatron);
  ASSERT_TRUE(equal) << equal.error().message;
  EXPECT_THAT(*equal, HasSubstr("--num-layers-per-virtual-pipeline-stage 4"));
}

TEST(LaunchArguments, WriteWindowsSinksAndTheGateOfGptOss) {
  Case one{.model = preset("gpt-oss-120b"),
           .strategy = {.pp = 2, .dp = 8, .ep = 8, .zero = 1},
           .global_batch = 64,
           .servers = 2};
  const auto megatron = one.script(Launcher::kMegatron);
  ASSERT_TRUE(megatron) << megatron.error().message;
  // A query sees itself and 127 tokens before it, on every layer but each second.
  EXPECT_THAT(*megatron, HasSubstr("--window-size '(127,0)'\n  --window-attn-skip-freq 2"));
  EXPECT_THAT(*megatron, HasSubstr("--softmax-type learnable"));
  EXPECT_THAT(*megatron, HasSubstr("--quick-geglu\n  --activation-func-clamp-value 7\n"
                                   "  --glu-linear-offset 1.0"));
  EXPECT_THAT(*megatron, Not(HasSubstr("--swiglu")));
  const auto bridge = one.script(Launcher::kMegatronBridge);
  ASSERT_TRUE(bridge) << bridge.error().message;
  EXPECT_THAT(*bridge, HasSubstr("window_size=(127,0),"));
  EXPECT_THAT(*bridge, HasSubstr("activation_func=quick_gelu,"));
  EXPECT_THAT(*bridge,
              HasSubstr("    from megatron.core.fusions.fused_bias_geglu import quick_gelu\n"));
  EXPECT_EQ(one.script(Launcher::kTorchtitan).error().message,
            "torchtitan: its models here have equal layers, without windows and state spaces; "
            "launch with megatron or megatron-bridge");
  one.model.window.is_chunked = true;
  EXPECT_EQ(one.script(Launcher::kMegatron).error().message,
            "megatron: windows of chunks have no flag, its windows slide; take another model, or "
            "launch with deepspeed");
}

TEST(LaunchArguments, WriteStateSpacesAsAPatternOfLayers) {
  Case one{
      .model = preset("nemotron3-super"),
      .strategy =
          {.tp = 2, .pp = 2, .dp = 8, .sequence_parallel = true, .ep = 16, .etp = 1, .zero = 1},
      .global_batch = 64,
      .servers = 4};
  one.model.mtp_layers = 2;
  const auto megatron = one.script(Launcher::kMegatron);
  ASSERT_TRUE(megatron) << megatron.error().message;
  EXPECT_THAT(*megatron, HasSubstr("pretrain_mamba.py"));
  EXPECT_THAT(*megatron, HasSubstr("--spec megatron.core.models.mamba.mamba_layer_specs "
                                   "mamba_stack_spec\n  --hybrid-override-pattern 'MEMEMEM*E"));
  EXPECT_THAT(*megatron, HasSubstr("MEMEMEME/*E/*E'"));
  EXPECT_THAT(*megatron, HasSubstr("--moe-latent-size 1024"));
  EXPECT_THAT(*megatron, HasSubstr("--squared-relu"));
  const auto bridge = one.script(Launcher::kMegatronBridge);
  ASSERT_TRUE(bridge) << bridge.error().message;
  EXPECT_THAT(*bridge, HasSubstr("from megatron.bridge.models.mamba.mamba_provider import "
                                 "MambaModelProvider"));
  EXPECT_THAT(*bridge, HasSubstr("from megatron.core.activations import squared_relu"));
  one.strategy.schedule = workload::PipelineSchedule::kInterleaved;
  one.strategy.virtual_stages = 2;
  EXPECT_EQ(one.script(Launcher::kMegatron).error().message,
            "megatron: virtual_stages 2: a model with state spaces has one part a stage; set "
            "virtual_stages 1");
  one.strategy = {.tp = 1, .pp = 3, .dp = 8, .ep = 8, .zero = 1};
  one.global_batch = 48;
  one.servers = 3;
  EXPECT_EQ(one.script(Launcher::kMegatron).error().message,
            "megatron: a model with state spaces has as many layers on each stage, and 88 on pp 3 "
            "do not divide so; choose another pp, and leave stage_layers out");
}

TEST(LaunchArguments, WriteTheLayoutOfDeepSeekWithItsModule) {
  Case one{.model = preset("deepseek-v3"),
           .strategy = {.pp = 4,
                        .dp = 64,
                        .schedule = workload::PipelineSchedule::kInterleaved,
                        .virtual_stages = 2,
                        .ep = 64,
                        .zero = 1,
                        .stage_layers = {8, 8, 8, 8, 8, 8, 8, 5}},
           .global_batch = 1024,
           .servers = 32};
  one.model.mtp_layers = 1;
  for (const Launcher launcher : {Launcher::kMegatron, Launcher::kMegatronBridge}) {
    const auto script = one.script(launcher);
    ASSERT_TRUE(script) << script.error().message;
    EXPECT_THAT(*script, HasSubstr("Et*8|t*8|t*8|t*8|t*8|t*8|t*8|t*5mL"));
  }
  EXPECT_THAT(*one.script(Launcher::kMegatron), HasSubstr("--mtp-num-layers 1"));
}

TEST(LaunchArguments, TuneWithMegatronBridgeFromWhatTheEnvironmentNames) {
  Case one{.model = preset("llama3-70b"),
           .strategy = {.tp = 2, .pp = 4, .sequence_parallel = true},
           .global_batch = 32,
           .servers = 1};
  one.model.packed = 200;
  one.model.adapters = {.rank = 16, .qkv = true};
  const auto script = one.script(Launcher::kMegatronBridge);
  ASSERT_TRUE(script) << script.error().message;
  EXPECT_THAT(*script, HasSubstr("peft=LoRA("));
  EXPECT_THAT(*script, HasSubstr("target_modules=[\"linear_qkv\"],"));
  EXPECT_THAT(*script, HasSubstr("PackedSequenceSpecs(packed_sequence_size=8192),"));
  EXPECT_THAT(*script, HasSubstr("finetune(config=pretrain_config()"));
  EXPECT_THAT(*script, HasSubstr("(\"PRETRAINED\", \"the checkpoint of the model\"),"));
  EXPECT_EQ(one.script(Launcher::kMegatron).error().message,
            "megatron: tuning lora and packed samples are of Megatron Bridge; launch with "
            "megatron-bridge, or train all weights on whole samples");
  one.strategy.micro_batch = 2;
  EXPECT_EQ(one.script(Launcher::kMegatronBridge).error().message,
            "megatron-bridge: micro_batch 2: packed samples lie in a row of one; set "
            "micro_batch 1");
}

TEST(LaunchArguments, TellADeepSpeedProgramWhatItTrains) {
  Case one{.model = preset("llama3-70b"), .strategy = {.dp = 8, .zero = 3}, .global_batch = 32};
  one.model.packed = 200;
  one.model.adapters = {.rank = 16, .qkv = true};
  const auto script = one.script(Launcher::kDeepspeed);
  ASSERT_TRUE(script) << script.error().message;
  EXPECT_THAT(*script, HasSubstr("# It must train adapters of rank 16 alone"));
  EXPECT_THAT(*script, HasSubstr("# It must pack samples of 200 tokens on average"));
}

TEST(LaunchArguments, SayTheRecipeOfNarrowPrecisions) {
  Case one = llama3();
  one.precision = Precision::kMxfp8;
  const auto blocks = one.script(Launcher::kMegatron);
  ASSERT_TRUE(blocks) << blocks.error().message;
  EXPECT_EQ(Values(*blocks).text("--fp8-recipe"), "mxfp8");
  EXPECT_EQ(Values(*blocks).text("--fp8-format"), "e4m3");
  EXPECT_FALSE(Values(*blocks).has("--fp8-amax-history-len"));
  one.precision = Precision::kNvfp4;
  const auto four = one.script(Launcher::kMegatron);
  ASSERT_TRUE(four) << four.error().message;
  EXPECT_EQ(Values(*four).text("--fp4-recipe"), "nvfp4");
  EXPECT_FALSE(Values(*four).has("--fp8-format"));

  Case shared = llama2();
  shared.precision = Precision::kMxfp8;
  const auto torchtitan = shared.script(Launcher::kTorchtitan);
  ASSERT_TRUE(torchtitan) << torchtitan.error().message;
  EXPECT_EQ(Values(*torchtitan).text("--quantize.linear.mx.recipe_name"), "mxfp8_cublas");
  shared.precision = Precision::kNvfp4;
  EXPECT_THAT(shared.script(Launcher::kTorchtitan).error().message, HasSubstr("it has no nvfp4"));
  EXPECT_THAT(shared.script(Launcher::kDeepspeed).error().message,
              HasSubstr("nvfp4 is the program's"));
}

TEST(LaunchArguments, LeaveTorchtitanFewerLayersOnTheEndsAlone) {
  Case one{.model = preset("llama3-8b"),
           .strategy = {.tp = 2, .pp = 4, .sequence_parallel = true},
           .global_batch = 8,
           .servers = 1};
  one.strategy.stage_layers = {8, 9, 9, 6};
  const auto ends = one.script(Launcher::kTorchtitan);
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_THAT(*ends, HasSubstr("--parallelism.pipeline_parallel_layers_per_stage 9"));
  EXPECT_THAT(*ends, HasSubstr("--parallelism.pipeline_parallel_first_stage_less_layers 1"));
  EXPECT_THAT(*ends, HasSubstr("--parallelism.pipeline_parallel_last_stage_less_layers 3"));
  one.strategy.stage_layers = {9, 8, 9, 6};
  EXPECT_EQ(
      one.script(Launcher::kTorchtitan).error().message,
      "torchtitan: only its first and its last stage can hold fewer layers; choose another pp, "
      "virtual_stages or stage_layers, or launch with megatron");
  one.strategy.stage_layers = {10, 8, 8, 6};
  one.strategy.schedule = workload::PipelineSchedule::kInterleaved;
  one.strategy.virtual_stages = 2;
  EXPECT_EQ(one.script(Launcher::kTorchtitan).error().message,
            "torchtitan: 32 layers do not divide into 8 equal parts; choose another pp, "
            "virtual_stages or stage_layers, or launch with megatron");
}

TEST(LaunchArguments, KeepTheNameOfAJobInOneWord) {
  Case one = llama2();
  const auto script = launch_arguments(Launcher::kTorchtitan, {.model = one.model,
                                                               .strategy = one.strategy,
                                                               .global_batch = 128,
                                                               .servers = 2,
                                                               .devices_per_server = 8,
                                                               .job_name = "it's\n$(mine)",
                                                               .optimizer = {}});
  ASSERT_TRUE(script);
  EXPECT_THAT(*script, HasSubstr("# it's?$(mine): llama2-7b"));
  EXPECT_THAT(*script, HasSubstr("--job.description 'it'\\''s\n$(mine)'"));
}

}  // namespace
}  // namespace regatta::plan
