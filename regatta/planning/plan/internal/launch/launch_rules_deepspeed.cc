// The rules of DeepSpeed with a configuration file. The model, and how it is cut into stages,
// sequences or experts, is the user's program; tensors are cut by DeepSpeed's AutoTP, which goes
// with zero 0 to 2. Sources: deepspeed/runtime/zero/config.py, runtime/tensor_parallel/config.py
// and docs/_tutorials/autotp-training.md.
#include <array>
#include <span>
#include <string>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_rules.h"

namespace regatta::plan {
namespace {

using workload::GradientCompression;
using workload::Offload;
using workload::Recompute;
using workload::Strategy;

std::string is_of_the_program(const char* degree, int value) {
  return fmt::format("{} {} is the program's, no configuration has it", degree, value);
}

bool waits_in_memory(const Strategy& strategy, Offload what) {
  return strategy.offload == what || strategy.offload == Offload::kBoth;
}

constexpr std::array kDeepspeedRules = {
    LaunchRule{"", "",
               [](const RuleInput& input) { return !is_eight_bits_or_less(input.precision); },
               [](const RuleInput& input) {
                 return fmt::format("{} is the program's, no configuration has it",
                                    to_string(input.precision));
               },
               "take bf16, or launch with megatron or torchtitan"},
    LaunchRule{"pp", "1", [](const RuleInput& input) { return input.strategy.pp == 1; },
               [](const RuleInput& input) { return is_of_the_program("pp", input.strategy.pp); },
               "set pp 1, or launch with megatron"},
    LaunchRule{"cp", "1", [](const RuleInput& input) { return input.strategy.cp == 1; },
               [](const RuleInput& input) { return is_of_the_program("cp", input.strategy.cp); },
               "set cp 1, or launch with megatron"},
    LaunchRule{"ep", "1", [](const RuleInput& input) { return input.strategy.ep == 1; },
               [](const RuleInput& input) { return is_of_the_program("ep", input.strategy.ep); },
               "set ep 1, or launch with megatron"},
    LaunchRule{
        "etp, tp", "as tp",
        [](const RuleInput& input) { return input.strategy.expert_tp() == input.strategy.tp; },
        [](const RuleInput& input) {
          return fmt::format("etp {} beside tp {} is the program's, no configuration has it",
                             input.strategy.expert_tp(), input.strategy.tp);
        },
        "leave etp out, or launch with megatron"},
    LaunchRule{"tp", "1 with state spaces",
               [](const RuleInput& input) {
                 return input.strategy.tp == 1 || input.model.layer_pattern.empty();
               },
               [](const RuleInput& input) {
                 return fmt::format("tp {}: AutoTP cuts no state spaces", input.strategy.tp);
               },
               "set tp 1, or launch with megatron"},
    kKeyHeadsRule,
    LaunchRule{
        "zero, tp", "0 to 2 with tp above 1",
        [](const RuleInput& input) { return input.strategy.tp == 1 || input.strategy.zero < 3; },
        [](const RuleInput& input) {
          return fmt::format("tp {} goes with zero 0, 1 or 2", input.strategy.tp);
        },
        "set zero 2, or tp 1"},
    LaunchRule{"sequence_parallel, tp", "false",
               [](const RuleInput& input) {
                 return input.strategy.tp == 1 || !input.strategy.sequence_parallel;
               },
               [](const RuleInput&) {
                 return std::string("tensor ranks keep whole tokens between the products");
               },
               "set sequence_parallel false"},
    LaunchRule{"recompute", "none or full",
               [](const RuleInput& input) {
                 return input.strategy.recompute == Recompute::kNone ||
                        input.strategy.recompute == Recompute::kFull;
               },
               [](const RuleInput&) { return std::string("it recomputes whole blocks"); },
               "set recompute none or full"},
    LaunchRule{"shard_ranks, zero", "only with zero 3",
               [](const RuleInput& input) {
                 return input.strategy.shard_ranks == 0 || input.strategy.zero == 3;
               },
               [](const RuleInput& input) {
                 return fmt::format("only zero 3 shares among {} of the replicas",
                                    input.strategy.shard_ranks);
               },
               "set zero 3, or leave shard_ranks out"},
    LaunchRule{"offload, zero", "optimizer only with zero 1 to 3",
               [](const RuleInput& input) {
                 return input.strategy.zero > 0 ||
                        !waits_in_memory(input.strategy, Offload::kOptimizer);
               },
               [](const RuleInput&) {
                 return std::string("only a shared optimizer can wait in the server's memory");
               },
               "set zero 1, 2 or 3"},
    LaunchRule{"offload, recompute", "activations only with recompute full",
               [](const RuleInput& input) {
                 return input.strategy.recompute == Recompute::kFull ||
                        !waits_in_memory(input.strategy, Offload::kActivations);
               },
               [](const RuleInput&) {
                 return std::string(
                     "it offloads the activations that recomputation starts from alone");
               },
               "set recompute full, or offload none or optimizer"},
    LaunchRule{"compression", "none, bf16 or fp16",
               [](const RuleInput& input) {
                 return input.strategy.compression == GradientCompression::kNone ||
                        input.strategy.compression == GradientCompression::kBf16 ||
                        input.strategy.compression == GradientCompression::kFp16;
               },
               [](const RuleInput& input) {
                 return "gradients travel in 16 or 32 bits, not as " +
                        to_string(input.strategy.compression);
               },
               "set compression none, bf16 or fp16"},
};

}  // namespace

std::span<const LaunchRule> deepspeed_rules() {
  return kDeepspeedRules;
}

}  // namespace regatta::plan
