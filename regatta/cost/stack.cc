#include "regatta/cost/stack.h"

#include <string>
#include <string_view>
#include <vector>

namespace regatta::cost {
namespace {

// Fitted by `regatta plan replay --fit` on the calibration rows alone; misalignment is set, not
// fitted: NVIDIA, "Matrix multiplication background", section 5, shows about 5 % a halving.
const std::vector<Stack>& stacks() {
  static const std::vector<Stack> all = {
      {.name = "megatron-deepspeed-fp16",
       .device = "a100-sxm4-80g",
       // DeepSpeed's pipeline sends each tensor rank's share of a boundary; autograd adds fp16
       // gradients in place.
       .traits = {.slices_boundaries = true,
                  .gradient_bytes = 2,
                  .accumulated_bytes = 6,
                  .kernels_forward = 22,
                  .kernels_backward = 44},
       .calibration = {.matrix_efficiency = 0.865,
                       .tile_depth = 421,
                       .misalignment = 0.05,
                       .memory_efficiency = 0.817,
                       .launch = Seconds{49.4e-6},
                       .link_efficiency = 0.8,
                       .network_efficiency = 0.962,
                       .collective_latency = Seconds{145e-6}},
       .fitted_on = "vTrain, single node and every second row of multi node"},
      {.name = "megatron-lm-fp16",
       .device = "a100-sxm4-80g",
       // Megatron-LM's own pipeline, with its scatter and gather of boundaries.
       .traits = {.slices_boundaries = true,
                  .gradient_bytes = 2,
                  .accumulated_bytes = 6,
                  .kernels_forward = 22,
                  .kernels_backward = 44},
       .calibration = {.matrix_efficiency = 0.865,
                       .tile_depth = 421,
                       .misalignment = 0.05,
                       .memory_efficiency = 0.817,
                       .launch = Seconds{49.4e-6},
                       .link_efficiency = 0.77,
                       .network_efficiency = 0.962,
                       .collective_latency = Seconds{85e-6}},
       .fitted_on = "as megatron-deepspeed-fp16, but its collectives: nccl-tests between 8 A100"},
      {.name = "megatron-deepspeed-bf16",
       .device = "a100-sxm4-80g",
       // Its bf16 optimizer keeps gradients in fp32: after each micro-batch a gradient is cast (2
       // bytes read, 4 written), added (8 read, 4 written) and cleared (2 written).
       .traits = {.slices_boundaries = true,
                  .gradient_bytes = 4,
                  .accumulated_bytes = 20,
                  .kernels_forward = 22,
                  .kernels_backward = 44},
       .calibration = {.matrix_efficiency = 0.752,
                       .tile_depth = 1.5,
                       .misalignment = 0.05,
                       .memory_efficiency = 0.814,
                       .launch = Seconds{0.0},
                       .link_efficiency = 0.783,
                       .network_efficiency = 0.446,
                       .collective_latency = Seconds{1.413e-3}},
       .fitted_on = "BLOOM, every second timed row"},
  };
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
