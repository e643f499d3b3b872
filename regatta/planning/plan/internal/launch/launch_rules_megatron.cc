// The rules of Megatron-LM and Megatron Bridge, which are both Megatron-Core. Sources:
// megatron/training/arguments.py (validate_args), megatron/core/transformer/transformer_config.py
// (__post_init__), megatron/core/ssm/mamba_{block,mixer,context_parallel}.py, the configuration of
// Megatron Bridge for packed samples, and Transformer Engine for attention of a divided sequence.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_rules.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {
namespace {

using workload::ContextParallelism;
using workload::GradientCompression;
using workload::Offload;
using workload::PipelineSchedule;
using workload::Precision;

bool has_pattern(const RuleInput& input) {
  return !input.model.layer_pattern.empty();
}

bool has_equal_stages(const RuleInput& input) {
  return are_equal(layers_of_parts(input.model, input.strategy));
}

// Its state spaces are cut by heads, and by groups of heads that share what reads their states.
bool splits_state_spaces(const RuleInput& input) {
  const workload::StateSpace& space = input.model.state_space;
  const int ranks = input.strategy.tp * input.strategy.cp;
  const int groups = space.groups / std::max(1, input.strategy.tp);
  return space.heads == 0 || (space.heads % ranks == 0 && space.groups % input.strategy.tp == 0 &&
                              (groups % input.strategy.cp == 0 || input.strategy.cp % groups == 0));
}

constexpr std::array kMegatronRules = {
    LaunchRule{"", "",
               [](const RuleInput& input) {
                 return input.model.positions != workload::PositionEncoding::kRotary ||
                        input.model.rope_theta == std::floor(input.model.rope_theta);
               },
               [](const RuleInput& input) {
                 return fmt::format("rope_theta {} is no whole number", input.model.rope_theta);
               },
               "round it"},
    LaunchRule{"schedule, pp", "1f1b or interleaved",
               [](const RuleInput& input) {
                 return input.strategy.pp == 1 ||
                        input.strategy.schedule == PipelineSchedule::k1F1B ||
                        input.strategy.schedule == PipelineSchedule::kInterleaved;
               },
               [](const RuleInput& input) {
                 return "it has no schedule " + to_string(input.strategy.schedule);
               },
               "set schedule 1f1b or interleaved"},
    LaunchRule{"virtual_stages, pp, dp, micro_batch",
               "above 1 only with a multiple of pp in micro-batches",
               [](const RuleInput& input) {
                 return input.strategy.virtual_stages == 1 ||
                        (input.strategy.pp > 1 && input.micro_batches % input.strategy.pp == 0);
               },
               [](const RuleInput& input) {
                 return fmt::format(
                     "interleaved stages need pp above 1 and a multiple of it in "
                     "micro-batches, not pp {} and {}",
                     input.strategy.pp, input.micro_batches);
               },
               "set virtual_stages 1, or another micro_batch"},
    LaunchRule{"virtual_stages, pp", "1 with state spaces",
               [](const RuleInput& input) {
                 return !has_pattern(input) || input.strategy.virtual_stages == 1;
               },
               [](const RuleInput& input) {
                 return fmt::format(
                     "virtual_stages {}: a model with state spaces has one part a "
                     "stage",
                     input.strategy.virtual_stages);
               },
               "set virtual_stages 1"},
    LaunchRule{
        "stage_layers, pp, virtual_stages", "equal with state spaces",
        [](const RuleInput& input) { return !has_pattern(input) || has_equal_stages(input); },
        [](const RuleInput& input) {
          return fmt::format(
              "a model with state spaces has as many layers on each stage, "
              "and {} on pp {} do not divide so",
              input.model.layers, input.strategy.pp);
        },
        "choose another pp, and leave stage_layers out"},
    LaunchRule{"tp, cp", "so that heads and groups of state spaces divide", splits_state_spaces,
               [](const RuleInput& input) {
                 return fmt::format(
                     "tp {} x cp {} do not divide the {} heads in {} groups of a "
                     "state space",
                     input.strategy.tp, input.strategy.cp, input.model.state_space.heads,
                     input.model.state_space.groups);
               },
               "choose divisors of them"},
    LaunchRule{"recompute", "none, selective or full with state spaces",
               [](const RuleInput& input) {
                 return !has_pattern(input) || !needs_experts(input.strategy.recompute);
               },
               [](const RuleInput& input) {
                 return fmt::format("recompute {} is of blocks with attention and experts",
                                    to_string(input.strategy.recompute));
               },
               "set recompute none, selective or full"},
    LaunchRule{"micro_batch", "1 with packed samples",
               [](const RuleInput& input) {
                 return input.model.packed == 0 || input.strategy.micro_batch == 1;
               },
               [](const RuleInput& input) {
                 return fmt::format("micro_batch {}: packed samples lie in a row of one",
                                    input.strategy.micro_batch);
               },
               "set micro_batch 1"},
    kKeyHeadsRule,
    LaunchRule{"cp", "1, or half a divisor of the sequence",
               [](const RuleInput& input) {
                 return input.strategy.cp == 1 || input.model.seq % (2 * input.strategy.cp) == 0;
               },
               [](const RuleInput& input) {
                 return fmt::format(
                     "cp {} takes two equal parts of a sequence for each rank, and {} "
                     "tokens do not divide so",
                     input.strategy.cp, input.model.seq);
               },
               "choose another cp or seq"},
    LaunchRule{"context, cp, tp", "all-to-all only where tp x cp divides the heads",
               [](const RuleInput& input) {
                 if (input.strategy.cp == 1 || input.strategy.context == ContextParallelism::kRing)
                   return true;
                 return !has_latent_attention(input.model) &&
                        attention_shape(input.model).kv_heads %
                                (input.strategy.tp * input.strategy.cp) ==
                            0;
               },
               [](const RuleInput& input) {
                 if (has_latent_attention(input.model))
                   return std::string("latent attention shares a sequence as a ring alone");
                 return fmt::format(
                     "all-to-all gives each of tp {} x cp {} ranks its heads, and {} heads "
                     "of keys and values do not divide so",
                     input.strategy.tp, input.strategy.cp, attention_shape(input.model).kv_heads);
               },
               "set context ring"},
    LaunchRule{"sequence_parallel, tp", "true with experts and tp above 1",
               [](const RuleInput& input) {
                 return !has_experts(input.model) || input.strategy.tp == 1 ||
                        input.strategy.sequence_parallel;
               },
               [](const RuleInput&) { return std::string("experts with tp need shared tokens"); },
               "set sequence_parallel, or tp 1"},
    LaunchRule{"ep", "1 in fp16",
               [](const RuleInput& input) {
                 return input.strategy.ep == 1 || input.precision != Precision::kFp16;
               },
               [](const RuleInput& input) {
                 return fmt::format("ep {} does not go with fp16", input.strategy.ep);
               },
               "set ep 1, or take bf16"},
    LaunchRule{"recompute", "not pointwise in fp16 and fp32",
               [](const RuleInput& input) {
                 return input.strategy.recompute != workload::Recompute::kPointwise ||
                        (input.precision != Precision::kFp16 &&
                         input.precision != Precision::kFp32);
               },
               [](const RuleInput& input) {
                 return fmt::format("activation functions of experts are not recomputed in {}",
                                    to_string(input.precision));
               },
               "set recompute none, selective or full, or take bf16"},
    LaunchRule{"zero", "0 or 1", [](const RuleInput& input) { return input.strategy.zero < 2; },
               [](const RuleInput& input) {
                 return fmt::format("zero {} is FSDP, which shares what this script keeps whole",
                                    input.strategy.zero);
               },
               "set zero 1, or launch with torchtitan"},
    LaunchRule{"shard_ranks, zero", "only with zero 1",
               [](const RuleInput& input) {
                 return input.strategy.shard_ranks == 0 || input.strategy.zero == 1;
               },
               [](const RuleInput& input) {
                 return fmt::format("shard_ranks {} without zero 1", input.strategy.shard_ranks);
               },
               "set zero 1, or leave shard_ranks out"},
    LaunchRule{"offload", "none or optimizer",
               [](const RuleInput& input) {
                 return input.strategy.offload == Offload::kNone ||
                        input.strategy.offload == Offload::kOptimizer;
               },
               [](const RuleInput&) { return std::string("activations stay on the device"); },
               "set offload none or optimizer"},
    LaunchRule{"offload, zero", "optimizer only with zero 1",
               [](const RuleInput& input) {
                 return input.strategy.offload != Offload::kOptimizer || input.strategy.zero == 1;
               },
               [](const RuleInput&) {
                 return std::string("only a shared optimizer can wait in the server's memory");
               },
               "set zero 1"},
    LaunchRule{"compression", "none or bf16",
               [](const RuleInput& input) {
                 return input.strategy.compression == GradientCompression::kNone ||
                        input.strategy.compression == GradientCompression::kBf16;
               },
               [](const RuleInput& input) {
                 return "gradients travel as fp32 or bf16, not as " +
                        to_string(input.strategy.compression);
               },
               "set compression none or bf16"},
};

}  // namespace

std::span<const LaunchRule> megatron_rules() {
  return kMegatronRules;
}

}  // namespace regatta::plan
