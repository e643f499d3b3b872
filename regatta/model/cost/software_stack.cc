#include "regatta/model/cost/software_stack.h"

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::cost {
namespace {

// Kernels of a block whose norms, softmax and bias with its activation are fused, its attention
// not.
constexpr StackTraits kMegatron = {
    .slices_boundaries = true, .kernels_forward = 22, .kernels_backward = 44};

// DeepSpeed's ZeRO-1 copies gradients into a flat buffer, and keeps the replica's share in fp32:
// peak memory of BigScience's sweep (2022) falls by 16 bytes a parameter over the replicas and
// keeps 6.
StackTraits deepspeed() {
  StackTraits traits = kMegatron;
  traits.held_gradient_bytes = 4;
  traits.state_bytes = 16;
  traits.keeps_outputs = true;
  return traits;
}

// DeepSpeed's pipeline sends each tensor rank's share of a boundary; autograd adds fp16 gradients
// in place. Fitted by `regatta plan replay --fit` on the calibration rows alone, as all of these;
// misalignment is set, not fitted: NVIDIA, "Matrix multiplication background", section 5, shows
// about 5 % a halving.
SoftwareStack deepspeed_fp16() {
  return {.name = "megatron-deepspeed-fp16",
          .traits = deepspeed(),
          .calibration = {.matrix_efficiency = 0.883,
                          .tile_depth = 422,
                          .misalignment = 0.083,
                          .memory_efficiency = 0.838,
                          .launch = Seconds{49.5e-6},
                          .link_efficiency = 0.8,
                          .network_efficiency = 0.955,
                          .collective_latency = Seconds{141e-6}},
          .fitted_on = "vTrain, single node and every second row of multi node",
          .assumes = "scores of attention in memory, fp16 gradients, the flat buffer of ZeRO-1",
          .low = 0.9,
          .high = 1.145};
}

// Megatron-LM's own pipeline, with its scatter and gather of boundaries. Each micro-batch's
// gradient is added to one in fp32: 6 bytes read, 4 written.
SoftwareStack megatron_2021() {
  SoftwareStack stack = deepspeed_fp16();
  stack.name = "megatron-lm-2021";
  stack.low = 0.966;
  stack.high = 1.064;
  stack.traits = kMegatron;
  stack.traits.accumulated_bytes = 10;
  stack.calibration.link_efficiency = 0.77;
  stack.calibration.collective_latency = Seconds{85e-6};
  stack.fitted_on = "as megatron-deepspeed-fp16, but its collectives: nccl-tests between 8 A100";
  stack.assumes = "Megatron-LM of 2021: scores of attention in memory, gradients added in fp32";
  return stack;
}

// Megatron-LM 1.1.5 under DeepSpeed 0.3 as its example is started: no kernel but the norm's fused
// (bias, activation, mask, softmax, dropout and sum are one each), no ZeRO, gradients reduced in
// fp32 after the last micro-batch ("fp32_allreduce"), those of the tied table between its two
// stages in fp16. Its pipeline sends by broadcasts in groups of two, which between two p3.16xlarge
// reach 1.2 of 3.1 GB/s (NVIDIA/nccl, issue 674, 2022), and the mask in 16 bits beside activations.
SoftwareStack deepspeed_2020() {
  SoftwareStack stack = deepspeed_fp16();
  stack.name = "megatron-deepspeed-2020";
  stack.traits.fuses_passes = false;
  stack.traits.kernels_forward = 30;
  stack.traits.kernels_backward = 60;
  stack.traits.sends_mask = true;
  stack.traits.boundary_share = 0.4;
  stack.traits.gradient_bytes = 4;
  stack.traits.tied_bytes = 2;
  stack.traits.held_gradient_bytes = 2;
  stack.traits.state_bytes = 12;
  stack.fitted_on = "as megatron-deepspeed-fp16";
  stack.assumes = "Megatron-LM 1.1 under DeepSpeed 0.3: no fused kernel but the norm's, no ZeRO";
  return stack;
}

// Since then products add weight gradients to fp32 themselves (--gradient-accumulation-fusion), and
// the distributed optimizer scatters their sums.
SoftwareStack megatron_2022() {
  SoftwareStack stack = megatron_2021();
  stack.name = "megatron-lm-2022";
  stack.traits.accumulated_bytes = 0;
  stack.traits.scatters_gradients = true;
  stack.assumes =
      "Megatron-LM of 2022: scores of attention in memory, products add gradients, ZeRO-1 scatters";
  return stack;
}

// Its bf16 optimizer keeps gradients in fp32: after each micro-batch a gradient is cast (2 bytes
// read, 4 written), added (8 read, 4 written) and cleared (2 written).
SoftwareStack deepspeed_bf16() {
  SoftwareStack stack{.name = "megatron-deepspeed-bf16",
                      .traits = deepspeed(),
                      .calibration = {.matrix_efficiency = 0.717,
                                      .tile_depth = 50,
                                      .misalignment = 0.01,
                                      .memory_efficiency = 0.6,
                                      .launch = Seconds{0.3e-6},
                                      .link_efficiency = 0.763,
                                      .network_efficiency = 0.792,
                                      .collective_latency = Seconds{200e-6}},
                      .fitted_on = "BLOOM, every second timed row",
                      .assumes = "DeepSpeed's bf16 optimizer: gradients cast and added in fp32",
                      .low = 0.978,
                      .high = 1.06};
  stack.traits.gradient_bytes = 4;
  stack.traits.accumulated_bytes = 20;
  return stack;
}

// Megatron-LM since 2023: fused attention, kernels launched ahead by graphs or a faster host,
// interleaved boundaries sent beside computation, gradients reduced beside the backward in fp32.
// Transformer Engine has about twice the kernels; its user buffers send pieces of tensor ranks'
// exchanges beside the products, and hide what nemo's do. Its loss over the parts of a vocabulary
// is not fused: cast, maximum, shift, exponentials, sum, quotient, product, cast (tensor_parallel/
// cross_entropy.py). Scalars are those of the older stack on the same device, its collectives as
// nccl-tests has them.
SoftwareStack megatron_core() {
  SoftwareStack stack = megatron_2022();
  stack.name = "megatron-core";
  stack.low = 0.93;
  stack.high = 1.17;
  stack.traits.flash_attention = true;
  stack.traits.has_dropout = false;
  stack.traits.gradient_bytes = 4;
  stack.traits.logit_bytes = 52;
  stack.traits.tp_overlap = 0.8;
  stack.traits.pp_overlap = 0.8;
  stack.traits.dp_overlap = 0.6;
  stack.traits.kernels_forward = 40;
  stack.traits.kernels_backward = 80;
  stack.traits.kernel_gap = Seconds{2e-6};
  stack.calibration.launch = Seconds{10e-6};
  stack.calibration.collective_latency = Seconds{30e-6};
  stack.fitted_on = "as megatron-lm-2022; launch and latency: one kernel, one NCCL call";
  stack.assumes =
      "Megatron-Core since 2023: fused attention, fp32 gradients reduced beside the backward, "
      "stage boundaries and tensor ranks' exchanges sent beside computation";
  return stack;
}

// In 8 bits, of 2024: attention written for the device before; a fused loss (NeMo).
SoftwareStack nemo() {
  SoftwareStack stack = megatron_core();
  stack.name = "nemo";
  stack.low = 0.96;
  stack.high = 1.07;
  stack.traits.latest_attention = false;
  stack.traits.logit_bytes = 20;
  stack.traits.dp_overlap = 0.9;
  stack.assumes =
      "Megatron-Core with Transformer Engine: fused attention, products and the exchange of tensor "
      "ranks in pieces, gradients reduced beside the backward";
  return stack;
}

// The same since 2025 with attention written for Hopper and Blackwell: Megatron Bridge.
SoftwareStack megatron_bridge_dense() {
  SoftwareStack stack = nemo();
  stack.name = "megatron-bridge-dense";
  stack.low = 0.95;
  stack.high = 1.1;
  stack.traits.latest_attention = true;
  stack.fitted_on = "as nemo";
  stack.assumes = "Megatron Bridge without experts: as nemo, attention written for the device";
  return stack;
}

// Llama 3 405B as its authors trained it (2024, section 3.3): four kinds of parallelism in PyTorch,
// the exchange of tensor ranks between the products.
SoftwareStack llama3() {
  SoftwareStack stack = megatron_core();
  stack.name = "llama3-2024";
  stack.traits.tp_overlap = 0;
  stack.traits.logit_bytes = 20;
  stack.fitted_on = "as megatron-core";
  stack.assumes = "PyTorch as Llama 3 was trained: tensor ranks exchange between the products";
  return stack;
}

// Megatron Bridge with experts: tokens by DeepEP or HybridEP, grouped products of Transformer
// Engine.
SoftwareStack megatron_bridge() {
  SoftwareStack stack = nemo();
  stack.name = "megatron-bridge";
  stack.traits.experts_sync = Seconds{2.5e-3};
  stack.traits.dispatches_once_a_rank = true;
  stack.traits.weighs_before_output = true;
  stack.traits.scales_by_tensor = true;
  stack.calibration.launch = Seconds{18e-6};
  stack.fitted_on = "as nemo; launch and the wait for experts: four rows of Qwen3 30B";
  stack.assumes =
      "Megatron Bridge with experts: tokens by DeepEP, grouped products, the host waits for the "
      "number of tokens of each expert";
  return stack;
}

// The same with NCCL's all-to-all, as the recipes train Qwen3 235B on B200 and GPT-OSS in bf16, and
// with a fixed capacity of experts (moe_token_dispatcher_type).
SoftwareStack megatron_bridge_alltoall() {
  SoftwareStack stack = megatron_bridge();
  stack.name = "megatron-bridge-alltoall";
  stack.traits.dispatches_once_a_rank = false;
  stack.traits.sorts_twice = true;
  stack.fitted_on = "as megatron-bridge";
  stack.assumes = "Megatron Bridge with experts, a copy of a token for each of its experts by NCCL";
  return stack;
}

// The same since 26.06 on NVL72: the counts stay on the device, graphs launch whole steps, and
// HybridEP sorts tokens as it sends them, in 8 bits. The recipes (perf_recipes) exchange tokens of
// one micro-batch beside the products of another; HybridEP takes 32 of 152 processors meanwhile.
SoftwareStack megatron_bridge_graphs() {
  constexpr double kHybridEpProcessors = 32;
  constexpr double kGb200Processors = 152;
  SoftwareStack stack = megatron_bridge();
  stack.name = "megatron-bridge-graphs";
  stack.traits.experts_sync = {};
  stack.traits.dispatches_narrow = true;
  stack.traits.sorts_while_sending = true;
  stack.traits.fuses_experts = true;
  stack.traits.ep_overlap = 1 - kHybridEpProcessors / kGb200Processors;
  stack.traits.kernel_gap = Seconds{1e-6};
  stack.calibration.launch = Seconds{1e-7};
  stack.fitted_on = "as megatron-bridge, without launches";
  stack.assumes = "Megatron Bridge of 2026 on NVL72: graphs launch whole steps of experts";
  return stack;
}

// PyTorch's FullyShardedDataParallel in eager mode, FlashAttention-2.
SoftwareStack fsdp() {
  SoftwareStack stack = megatron_core();
  stack.name = "fsdp";
  stack.low = 0.935;
  stack.high = 1.11;
  stack.traits.kernels_forward = 30;
  stack.traits.kernels_backward = 60;
  stack.traits.tp_overlap = 0;
  stack.traits.latest_attention = false;
  stack.traits.accumulated_bytes = 6;
  stack.traits.logit_bytes = 32;
  stack.traits.dp_overlap = 0.7;
  stack.calibration.memory_efficiency = 0.6;
  stack.assumes = "PyTorch's FSDP in eager mode with FlashAttention-2, weights gathered ahead";
  return stack;
}

// NeMo AutoModel: FSDP with kernels of Transformer Engine, tokens to experts by DeepEP. Its fused
// Adam keeps the moments in 16 bits and of the master weights the other 16 bits alone. Its grouped
// products take the counts from the device, one launch for all experts.
SoftwareStack automodel() {
  SoftwareStack stack = fsdp();
  stack.name = "automodel";
  stack.traits.latest_attention = true;
  stack.traits.dispatches_once_a_rank = true;
  stack.traits.weighs_before_output = true;
  stack.traits.held_gradient_bytes = 2;
  stack.traits.state_bytes = 6;
  stack.calibration.memory_efficiency = megatron_core().calibration.memory_efficiency;
  stack.fitted_on = "as fsdp; no wait for experts: Qwen3 30B on one server";
  stack.assumes = "NeMo AutoModel: FSDP with Transformer Engine, tokens to experts by DeepEP";
  return stack;
}

// MosaicML's of 2023: attention in Triton, which FlashAttention-2's figure 5 has at about half its
// own rate.
SoftwareStack llm_foundry() {
  SoftwareStack stack = fsdp();
  stack.name = "llm-foundry";
  stack.traits.attention_share = 0.55;
  stack.assumes = "FSDP in eager mode with attention in Triton, as MosaicML ran it in 2023";
  return stack;
}

// DeepSpeed's ZeRO-3 of 2021.
SoftwareStack deepspeed_zero3() {
  SoftwareStack stack = deepspeed_fp16();
  stack.name = "deepspeed-zero3-fp16";
  stack.low = 0.9;
  stack.high = 1.12;
  stack.traits.gathers_flat = true;
  stack.traits.dp_overlap = 0.6;
  stack.traits.held_gradient_bytes = 2;
  stack.traits.state_bytes = 12;
  stack.calibration.network_efficiency = 0.75;
  stack.assumes = "DeepSpeed's ZeRO-3 of 2021: weights gathered over each device's own NIC";
  return stack;
}

const std::vector<SoftwareStack>& stacks() {
  static const std::vector<SoftwareStack> all = {deepspeed_fp16(),
                                                 deepspeed_2020(),
                                                 megatron_2021(),
                                                 megatron_2022(),
                                                 deepspeed_bf16(),
                                                 megatron_core(),
                                                 llama3(),
                                                 nemo(),
                                                 megatron_bridge_dense(),
                                                 megatron_bridge(),
                                                 megatron_bridge_alltoall(),
                                                 megatron_bridge_graphs(),
                                                 fsdp(),
                                                 automodel(),
                                                 llm_foundry(),
                                                 deepspeed_zero3()};
  return all;
}

// The recipes of Megatron Bridge launch whole steps by graphs on NVL72 in MXFP8, but not those with
// state spaces.
bool has_whole_graphs(const workload::ModelShape& model, workload::Precision precision,
                      const topo::DeviceType& device) {
  return device.name.starts_with("gb") && precision == workload::Precision::kMxfp8 &&
         model.state_space.heads == 0;
}

}  // namespace

PredictionErrorRange prediction_error_range(const SoftwareStack& stack,
                                            const workload::ModelShape& model) {
  constexpr PredictionErrorRange kExperts{.low = 0.86, .high = 1.24};
  const OwnRuns& own = workload::has_experts(model) ? stack.own_experts : stack.own_dense;
  if (own.count > 0) return own.range;
  return workload::has_experts(model) ? kExperts
                                      : PredictionErrorRange{.low = stack.low, .high = stack.high};
}

const SoftwareStack* find_software_stack(std::string_view name) {
  for (const SoftwareStack& stack : stacks())
    if (stack.name == name) return &stack;
  return nullptr;
}

const SoftwareStack& default_software_stack(const workload::ModelShape& model,
                                            workload::Precision precision,
                                            const workload::StrategyRequest& request,
                                            const topo::DeviceType& device) {
  const auto named = [](const char* name) -> const SoftwareStack& {
    const SoftwareStack* stack = find_software_stack(name);
    REGATTA_CHECK(stack != nullptr);
    return *stack;
  };
  if (request.zero && *request.zero == 3 && !is_eight_bits_or_less(precision))
    return named(workload::has_experts(model) ? "automodel" : "fsdp");
  // Experts in 16 bits on devices of before fp8 are of Megatron-Core's first years.
  if (workload::has_experts(model) && device.fp8_peak.value > 0)
    return named(has_whole_graphs(model, precision, device) ? "megatron-bridge-graphs"
                                                            : "megatron-bridge");
  if (is_eight_bits_or_less(precision)) return named("megatron-bridge-dense");
  const bool is_of_2022 = is_plain_gpt(model) && device.fp8_peak.value == 0;
  if (is_of_2022 && precision == workload::Precision::kFp16) return named("megatron-lm-2022");
  return named("megatron-core");
}

std::vector<std::string> software_stack_names() {
  std::vector<std::string> names;
  for (const SoftwareStack& stack : stacks())
    names.push_back(stack.name);
  return names;
}

}  // namespace regatta::cost
