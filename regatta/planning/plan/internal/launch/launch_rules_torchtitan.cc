// The rules of torchtitan. Sources: torchtitan/config/job_config.py,
// torchtitan/distributed/parallel_dims.py and pipeline_parallel.py of torchtitan 0.2;
// torch.distributed.pipelining for the schedules.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_rules.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {
namespace {

using workload::ContextParallelism;
using workload::PipelineSchedule;
using workload::Precision;
using workload::Strategy;

// torch.distributed.pipelining: rounds of about pp micro-batches, all alike.
int rounds(const RuleInput& input) {
  return std::max(1, input.micro_batches / input.strategy.pp);
}

// 0 layers in the middle stages fewer than in the fullest; with several parts a stage all equal.
bool divides_into_parts(const RuleInput& input) {
  if (input.strategy.pp == 1) return true;
  const std::vector<int> layers = layers_of_parts(input.model, input.strategy);
  if (are_equal(layers)) return true;
  if (parts_per_stage(input.strategy) > 1) return false;
  const int most = *std::max_element(layers.begin(), layers.end());
  return std::all_of(layers.begin() + 1, layers.end() - 1,
                     [&](int count) { return count == most; });
}

std::string why_not_into_parts(const RuleInput& input) {
  if (parts_per_stage(input.strategy) == 1)
    return "only its first and its last stage can hold fewer layers";
  return fmt::format("{} layers do not divide into {} equal parts", input.model.layers,
                     input.strategy.pp * parts_per_stage(input.strategy));
}

// Experts take the ranks of a sequence first, whole ones the tensor ranks, too, then those that
// share weights.
int lent_tensor_ranks(const Strategy& strategy) {
  return strategy.expert_tp() == strategy.tp ? 1 : strategy.tp;
}

bool takes_ranks(const RuleInput& input) {
  const Strategy& strategy = input.strategy;
  const int lent = lent_tensor_ranks(strategy);
  return strategy.ep == 1 || (strategy.ep % (lent * strategy.cp) == 0 &&
                              lent * sharing_ranks(strategy) % strategy.ep == 0);
}

constexpr std::array kTorchtitanRules = {
    LaunchRule{"", "", [](const RuleInput& input) { return input.precision != Precision::kFp16; },
               [](const RuleInput&) { return std::string("it has no fp16"); },
               "take bf16, or launch with megatron or deepspeed"},
    LaunchRule{"", "", [](const RuleInput& input) { return input.precision != Precision::kNvfp4; },
               [](const RuleInput&) { return std::string("it has no nvfp4"); },
               "take mxfp8 or bf16, or launch with megatron"},
    LaunchRule{"sequence_parallel, tp", "true with tp above 1",
               [](const RuleInput& input) {
                 return input.strategy.tp == 1 || input.strategy.sequence_parallel;
               },
               [](const RuleInput&) { return std::string("tensor ranks always share the tokens"); },
               "set sequence_parallel"},
    kKeyHeadsRule,
    LaunchRule{"cp, tp", "so that 2 x cp x tp divides the sequence",
               [](const RuleInput& input) {
                 const int parts =
                     input.strategy.tp * (input.strategy.cp > 1 ? 2 * input.strategy.cp : 1);
                 return input.model.seq % parts == 0;
               },
               [](const RuleInput& input) {
                 return fmt::format("2 x cp {} x tp {} does not divide the {} tokens of a sequence",
                                    input.strategy.cp, input.strategy.tp, input.model.seq);
               },
               "choose another cp or seq"},
    LaunchRule{"context, cp", "ring",
               [](const RuleInput& input) {
                 return input.strategy.cp == 1 ||
                        input.strategy.context == ContextParallelism::kRing;
               },
               [](const RuleInput&) { return std::string("it shares a sequence as a ring alone"); },
               "set context ring"},
    LaunchRule{"schedule, pp", "1f1b, interleaved or zb-v",
               [](const RuleInput& input) {
                 return input.strategy.pp == 1 ||
                        (input.strategy.schedule != PipelineSchedule::kZbH1 &&
                         input.strategy.schedule != PipelineSchedule::kDualPipe);
               },
               [](const RuleInput& input) {
                 return "it has no schedule " + to_string(input.strategy.schedule);
               },
               "set schedule 1f1b, interleaved or zb-v"},
    LaunchRule{"schedule, pp, dp, micro_batch", "interleaved only in equal rounds of micro-batches",
               [](const RuleInput& input) {
                 return input.strategy.pp == 1 ||
                        input.strategy.schedule != PipelineSchedule::kInterleaved ||
                        input.micro_batches % rounds(input) == 0;
               },
               [](const RuleInput& input) {
                 return fmt::format("{} micro-batches do not make {} equal rounds",
                                    input.micro_batches, rounds(input));
               },
               "choose another micro_batch, or schedule 1f1b"},
    LaunchRule{"stage_layers, pp, virtual_stages, schedule",
               "equal, but for the first and the last stage", divides_into_parts,
               why_not_into_parts,
               "choose another pp, virtual_stages or stage_layers, or launch with megatron"},
    LaunchRule{
        "zero", "0, 2 or 3", [](const RuleInput& input) { return input.strategy.zero != 1; },
        [](const RuleInput&) { return std::string("FSDP shares gradients with the optimizer"); },
        "set zero 2 or 3"},
    LaunchRule{"zero, tp, pp, cp, dp", "0 only where replicas are all that there is",
               [](const RuleInput& input) {
                 const Strategy& strategy = input.strategy;
                 return strategy.zero > 0 || strategy.dp * strategy.cp == 1 ||
                        (strategy.cp == 1 && strategy.dp == strategy.world_size());
               },
               [](const RuleInput& input) {
                 return std::string(input.strategy.cp > 1
                                        ? "the ranks of a sequence share their weights"
                                        : "whole replicas go with no other degree");
               },
               "set zero 2 or 3"},
    LaunchRule{"shard_ranks, cp", "a multiple of cp",
               [](const RuleInput& input) {
                 return sharing_ranks(input.strategy) % input.strategy.cp == 0;
               },
               [](const RuleInput& input) {
                 return fmt::format("shard_ranks {} is no multiple of cp {}",
                                    input.strategy.shard_ranks, input.strategy.cp);
               },
               "choose a multiple"},
    LaunchRule{"etp, tp, ep", "as tp, or 1 with ep above 1",
               [](const RuleInput& input) {
                 const int etp = input.strategy.expert_tp();
                 return etp == input.strategy.tp || (etp == 1 && input.strategy.ep > 1);
               },
               [](const RuleInput& input) {
                 return fmt::format(
                     "it splits experts as the rest of the block, or with ep not at all, "
                     "and has no etp {} beside tp {} and ep {}",
                     input.strategy.expert_tp(), input.strategy.tp, input.strategy.ep);
               },
               "leave etp out"},
    LaunchRule{"ep, cp, dp, zero, tp, etp", "a multiple of the ranks that it takes first",
               takes_ranks,
               [](const RuleInput& input) {
                 const int lent = lent_tensor_ranks(input.strategy);
                 return fmt::format(
                     "ep {} must be a multiple of {} {} and divide the {} ranks that share "
                     "weights",
                     input.strategy.ep, lent == 1 ? "cp" : "tp x cp", lent * input.strategy.cp,
                     lent * sharing_ranks(input.strategy));
               },
               "choose another ep, or another zero"},
    LaunchRule{
        "recompute", "none, selective or full",
        [](const RuleInput& input) { return !needs_experts(input.strategy.recompute); },
        [](const RuleInput&) { return std::string("it recomputes no such part of a block"); },
        "set recompute none, selective or full"},
    LaunchRule{
        "offload", "none",
        [](const RuleInput& input) { return input.strategy.offload == workload::Offload::kNone; },
        [](const RuleInput&) {
          return std::string("it offloads weights with the optimizer, and no activations");
        },
        "set offload none, or launch with deepspeed"},
    LaunchRule{"compression", "none",
               [](const RuleInput& input) {
                 return input.strategy.compression == workload::GradientCompression::kNone;
               },
               [](const RuleInput&) { return std::string("gradients are summed in fp32"); },
               "set compression none"},
};

}  // namespace

std::span<const LaunchRule> torchtitan_rules() {
  return kTorchtitanRules;
}

}  // namespace regatta::plan
