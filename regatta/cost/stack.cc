#include "regatta/cost/stack.h"

#include <string>
#include <string_view>
#include <vector>

namespace regatta::cost {
namespace {

// Kernels of a block whose norms, softmax and bias with its activation are fused, its attention
// not.
constexpr StackTraits kMegatron = {
    .slices_boundaries = true, .kernels_forward = 22, .kernels_backward = 44};

// DeepSpeed's pipeline sends each tensor rank's share of a boundary; autograd adds fp16 gradients
// in place. Fitted by `regatta plan replay --fit` on the calibration rows alone, as all of these;
// misalignment is set, not fitted: NVIDIA, "Matrix multiplication background", section 5, shows
// about 5 % a halving.
Stack deepspeed_fp16() {
  return {.name = "megatron-deepspeed-fp16",
          .device = "a100-sxm4-80g",
          .traits = kMegatron,
          .calibration = {.matrix_efficiency = 0.865,
                          .tile_depth = 421,
                          .misalignment = 0.05,
                          .memory_efficiency = 0.817,
                          .launch = Seconds{49.4e-6},
                          .link_efficiency = 0.8,
                          .network_efficiency = 0.962,
                          .collective_latency = Seconds{145e-6}},
          .fitted_on = "vTrain, single node and every second row of multi node"};
}

// Megatron-LM's own pipeline, with its scatter and gather of boundaries.
Stack megatron_fp16() {
  Stack stack = deepspeed_fp16();
  stack.name = "megatron-lm-fp16";
  stack.calibration.link_efficiency = 0.77;
  stack.calibration.collective_latency = Seconds{85e-6};
  stack.fitted_on = "as megatron-deepspeed-fp16, but its collectives: nccl-tests between 8 A100";
  return stack;
}

// Its bf16 optimizer keeps gradients in fp32: after each micro-batch a gradient is cast (2 bytes
// read, 4 written), added (8 read, 4 written) and cleared (2 written).
Stack deepspeed_bf16() {
  Stack stack{.name = "megatron-deepspeed-bf16",
              .device = "a100-sxm4-80g",
              .traits = kMegatron,
              .calibration = {.matrix_efficiency = 0.752,
                              .tile_depth = 1.5,
                              .misalignment = 0.05,
                              .memory_efficiency = 0.814,
                              .launch = Seconds{0.0},
                              .link_efficiency = 0.783,
                              .network_efficiency = 0.446,
                              .collective_latency = Seconds{1.413e-3}},
              .fitted_on = "BLOOM, every second timed row"};
  stack.traits.gradient_bytes = 4;
  stack.traits.accumulated_bytes = 20;
  return stack;
}

const std::vector<Stack>& stacks() {
  static const std::vector<Stack> all = {deepspeed_fp16(), megatron_fp16(), deepspeed_bf16()};
  return all;
}

}  // namespace

const Stack* find_stack(std::string_view name) {
  for (const Stack& stack : stacks())
    if (stack.name == name) return &stack;
  return nullptr;
}

std::vector<std::string> stack_names() {
  std::vector<std::string> names;
  for (const Stack& stack : stacks())
    names.push_back(stack.name);
  return names;
}

}  // namespace regatta::cost
