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
// Scalars are those of the older stack on the same device, its collectives as nccl-tests has them.
SoftwareStack megatron_core() {
  SoftwareStack stack = megatron_2022();
  stack.name = "megatron-core";
  stack.low = 0.93;
  stack.high = 1.17;
  stack.traits.flash_attention = true;
  stack.traits.has_dropout = false;
  stack.traits.gradient_bytes = 4;
  stack.traits.pp_overlap = 0.8;
  stack.traits.dp_overlap = 0.6;
  stack.traits.kernel_gap = Seconds{2e-6};
  stack.calibration.launch = Seconds{10e-6};
  stack.calibration.collective_latency = Seconds{30e-6};
  stack.fitted_on = "as megatron-lm-2022; launch and latency: one kernel, one NCCL call";
  stack.assumes =
      "Megatron-Core since 2023: fused attention, fp32 gradients reduced beside the backward, "
      "stage boundaries sent beside computation";
  return stack;
}

// With Transformer Engine and its user buffers: products and the exchange of tensor ranks go
// together in pieces (NeMo).
SoftwareStack nemo() {
  SoftwareStack stack = megatron_core();
  stack.name = "nemo";
  stack.low = 0.93;
  stack.high = 1.08;
  stack.traits.latest_attention = false;
  stack.traits.kernels_forward = 40;
  stack.traits.kernels_backward = 80;
  stack.traits.tp_overlap = 0.8;
  stack.traits.dp_overlap = 0.9;
  stack.assumes =
      "Megatron-Core with Transformer Engine: fused attention, products and the exchange of tensor "
      "ranks in pieces, gradients reduced beside the backward";
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

// The same since 26.06 on NVL72: the counts stay on the device, graphs launch whole steps, and
// HybridEP sorts tokens as it sends them, in 8 bits.
SoftwareStack megatron_bridge_graphs() {
  SoftwareStack stack = megatron_bridge();
  stack.name = "megatron-bridge-graphs";
  stack.traits.experts_sync = {};
  stack.traits.dispatches_narrow = true;
  stack.traits.sorts_while_sending = true;
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
  stack.high = 1.137;
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
// Adam keeps the moments in 16 bits and of the master weights the other 16 bits alone.
SoftwareStack automodel() {
  SoftwareStack stack = fsdp();
  stack.name = "automodel";
  stack.traits.latest_attention = true;
  stack.traits.dispatches_once_a_rank = true;
  stack.traits.weighs_before_output = true;
  stack.traits.held_gradient_bytes = 2;
  stack.traits.state_bytes = 6;
  stack.traits.experts_sync = megatron_bridge().traits.experts_sync;
  stack.calibration.memory_efficiency = megatron_core().calibration.memory_efficiency;
  stack.fitted_on = "as fsdp; the wait for experts as megatron-bridge";
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
  static const std::vector<SoftwareStack> all = {
      deepspeed_fp16(),         deepspeed_2020(), megatron_2021(), megatron_2022(),
      deepspeed_bf16(),         megatron_core(),  nemo(),          megatron_bridge(),
      megatron_bridge_graphs(), fsdp(),           automodel(),     llm_foundry(),
      deepspeed_zero3()};
  return all;
}

struct DeviceEfficiencyRow {
  std::string_view device;
  DeviceEfficiency shares;
};

// Large products reach on an A100 0.859 of its peak, on an H100 0.80 at their best and 0.73 with
// the shapes of models while power holds the clock down, 0.65 in fp8; on a B200 0.78 and 0.66
// (Bekman, "Machine Learning Engineering", maximum achievable matmul FLOPS; SemiAnalysis, "MI300X
// vs H100 vs H200", 2024). Fused attention: FlashAttention-2, 2023, figure 5 (A100: 0.6 of its
// peak); FlashAttention-3, 2024, figures 5 and 6 (H100:
// 0.55 forward and backward together, FlashAttention-2 0.36).
// A T4 multiplies matrices of 4096 at 24 TFLOPS, 0.37 of its peak, because 70 W hold its clock down
// (NVIDIA developer forum, "About GPU peak performance", 2023).
// Watts: three quarters of what servers of eight are rated at (DGX-1 3.5 kW, DGX A100 6.5, DGX H100
// 10.2, DGX B200 14.3), by the data sheets' power of a device for the others.
// Copies to pinned memory over PCIe 3.0, 4.0 and 5.0 x16 reach 12, 25 and 50 GB/s.
// Two devices share NVLink-C2C's 450 GB/s one way to a Grace processor, of which copies reach 0.8;
// racks of 72 are rated at 120 kW (GB200) and 135 kW (GB300).
// No products of B300, GB200 and GB300 are published. Llama 3.1 405B of Megatron-Bridge fits them:
// GB200, whose data sheet gives a higher clock than B200's, holds no more of it under load, and
// GB300 the same share as B200. In nvfp4 a product reaches 0.75 of B200's peak at its best (NVIDIA,
// "Boosting matrix multiplication with cuBLAS 12.9", 2025), with the shapes of that model 0.53.
constexpr double kA100Matrix = 0.859;
constexpr double kNvfp4 = 0.53 / kA100Matrix;
constexpr double kGb200 = 0.9;  // of the shares of B200
constexpr DeviceEfficiencyRow kShares[] = {
    {"t4", {0.37 / kA100Matrix, 0, 0.2, 0.2, BytesPerSecond{12e9}, 150}},
    {"v100-sxm2-16g", {0.80 / kA100Matrix, 0, 0.3, 0.3, BytesPerSecond{12e9}, 440}},
    {"v100", {0.80 / kA100Matrix, 0, 0.3, 0.3, BytesPerSecond{12e9}, 440}},
    {"a100-sxm4-40g", {1, 0, 0.58, 0.58, BytesPerSecond{25e9}, 620}},
    {"a100-sxm4-80g", {1, 0, 0.58, 0.58, BytesPerSecond{25e9}, 620}},
    {"a800-sxm4-80g", {1, 0, 0.58, 0.58, BytesPerSecond{25e9}, 620}},
    {"l20", {0.90 / kA100Matrix, 0.90 / kA100Matrix, 0.6, 0.6, BytesPerSecond{25e9}, 450}},
    {"l40s", {0.70 / kA100Matrix, 0.60 / kA100Matrix, 0.45, 0.45, BytesPerSecond{25e9}, 550}},
    {"h20", {0.92 / kA100Matrix, 0.92 / kA100Matrix, 0.7, 0.6, BytesPerSecond{50e9}, 800}},
    {"h100-sxm", {0.72 / kA100Matrix, 0.65 / kA100Matrix, 0.5, 0.34, BytesPerSecond{50e9}, 1000}},
    {"h800-sxm", {0.72 / kA100Matrix, 0.65 / kA100Matrix, 0.5, 0.34, BytesPerSecond{50e9}, 1000}},
    {"h200-sxm", {0.76 / kA100Matrix, 0.66 / kA100Matrix, 0.5, 0.34, BytesPerSecond{50e9}, 1000}},
    {"b200-sxm",
     {0.72 / kA100Matrix, 0.68 / kA100Matrix, 0.42, 0.42, BytesPerSecond{50e9}, 1450, kNvfp4}},
    {"b300-sxm",
     {0.72 / kA100Matrix, 0.68 / kA100Matrix, 0.42, 0.42, BytesPerSecond{50e9}, 1450, kNvfp4}},
    {"gb200",
     {kGb200 * 0.72 / kA100Matrix, kGb200 * 0.68 / kA100Matrix, kGb200 * 0.42, kGb200 * 0.42,
      BytesPerSecond{180e9}, 1250, kNvfp4}},
    {"gb300",
     {0.72 / kA100Matrix, 0.68 / kA100Matrix, 0.42, 0.42, BytesPerSecond{180e9}, 1400, kNvfp4}},
};

}  // namespace

namespace {

// Devices of NVL72.
bool is_of_rack(const topo::DeviceType& device) {
  return device.name.starts_with("gb");
}

}  // namespace

PredictionErrorRange prediction_error_range(const SoftwareStack& stack,
                                            const workload::ModelShape& model) {
  constexpr PredictionErrorRange kExperts{.low = 0.87, .high = 1.2};
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
    return named(is_of_rack(device) ? "megatron-bridge-graphs" : "megatron-bridge");
  if (is_eight_bits_or_less(precision)) return named("nemo");
  const bool is_of_2022 = is_plain_gpt(model) && device.fp8_peak.value == 0;
  if (is_of_2022 && precision == workload::Precision::kFp16) return named("megatron-lm-2022");
  return named("megatron-core");
}

DeviceEfficiency device_efficiency(std::string_view device) {
  for (const DeviceEfficiencyRow& one : kShares)
    if (one.device == device) return one.shares;
  return {};
}

std::vector<std::string> software_stack_names() {
  std::vector<std::string> names;
  for (const SoftwareStack& stack : stacks())
    names.push_back(stack.name);
  return names;
}

}  // namespace regatta::cost
