// The shares of their data sheets that devices reach.
#include <string_view>

#include "regatta/model/cost/software_stack.h"

namespace regatta::cost {
namespace {

struct DeviceEfficiencyRow {
  std::string_view device;
  DeviceEfficiency shares;
};

// Large products reach on an A100 0.859 of its peak, on an H100 0.80 at their best and 0.73 with
// the shapes of models while power holds the clock down, 0.65 in fp8; on a B200 0.78 and 0.66
// (Bekman, "Machine Learning Engineering", maximum achievable matmul FLOPS; SemiAnalysis, "MI300X
// vs H100 vs H200", 2024). In whole steps of MosaicML's 77 rows on H100 in 16 bits, 0.67 fits.
// Fused attention: FlashAttention-2, 2023, figure 5 (A100: 0.6 of its peak; heads of 64 reach 0.88
// of those of 128); FlashAttention-3, 2024, figures 5 and 6 (H100: 0.55 forward and backward
// together, FlashAttention-2 0.36). On a B200 a forward of 1024 tokens reaches half the rate of one
// of 16384, on an A100 two thirds, and heads of 64 reach 0.65 of those of 128 (Dao-AILab/
// flash-attention, pull request 2605, 2026); with the backward, which has five products for an
// exponential and not two, 0.73. Exponentials are twice as fast on B300 and GB300. On B200 they
// take as long as the products of a forward (Zadouri et al., "FlashAttention-4", 2026), so that
// this saves a quarter of it, and 0.08 of both passes. A T4 multiplies matrices of 4096 at 24
// TFLOPS, 0.37 of its peak, because 70 W hold its clock down (NVIDIA developer forum, "About GPU
// peak performance", 2023). Watts: three quarters of what servers of eight are rated at (DGX-1 3.5
// kW, DGX A100 6.5, DGX H100 10.2, DGX B200 14.3), by the data sheets' power of a device for the
// others. Copies to pinned memory over PCIe 3.0, 4.0 and 5.0 x16 reach 12, 25 and 50 GB/s. Two
// devices share NVLink-C2C's 450 GB/s one way to a Grace processor, of which copies reach 0.8;
// racks of 72 are rated at 120 kW (GB200) and 135 kW (GB300). No products of B300, GB200 and GB300
// are published. Llama 3.1 405B of Megatron-Bridge fits them: GB200 as many FLOPS as the share of
// B200 above, GB300 the same share as B200. A B200 has 1000 W where a GB200 has 1200, and under
// load the clock goes as the cube root of the power: 0.94. In nvfp4 a product reaches 0.75 of
// B200's peak at its best (NVIDIA, "Boosting matrix multiplication with cuBLAS 12.9", 2025), with
// the shapes of that model 0.53.
constexpr double kA100Matrix = 0.859;
constexpr double kNvfp4 = 0.53 / kA100Matrix;
constexpr double kGb200 = 0.9;  // of the shares of GB300
constexpr double kB200 = 0.94;  // of the same
constexpr double kBlackwellSoftmax = 78;
constexpr double kBlackwellStart = 2.34;
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
    {"h100-sxm", {0.67 / kA100Matrix, 0.65 / kA100Matrix, 0.5, 0.34, BytesPerSecond{50e9}, 1000}},
    {"h800-sxm", {0.67 / kA100Matrix, 0.65 / kA100Matrix, 0.5, 0.34, BytesPerSecond{50e9}, 1000}},
    {"h200-sxm", {0.71 / kA100Matrix, 0.66 / kA100Matrix, 0.5, 0.34, BytesPerSecond{50e9}, 1000}},
    {"b200-sxm",
     {kB200 * 0.72 / kA100Matrix, kB200 * 0.68 / kA100Matrix, 0.42, 0.42, BytesPerSecond{50e9},
      1450, kNvfp4, kBlackwellSoftmax, kBlackwellStart}},
    {"b300-sxm",
     {0.72 / kA100Matrix, 0.68 / kA100Matrix, 0.455, 0.455, BytesPerSecond{50e9}, 1450, kNvfp4,
      kBlackwellSoftmax / 2, kBlackwellStart}},
    {"gb200",
     {kGb200 * 0.72 / kA100Matrix, kGb200 * 0.68 / kA100Matrix, kGb200 * 0.42, kGb200 * 0.42,
      BytesPerSecond{180e9}, 1250, kNvfp4, kBlackwellSoftmax, kBlackwellStart}},
    {"gb300",
     {0.72 / kA100Matrix, 0.68 / kA100Matrix, 0.42, 0.42, BytesPerSecond{180e9}, 1400, kNvfp4,
      kBlackwellSoftmax / 2, kBlackwellStart}},
};

}  // namespace

DeviceEfficiency device_efficiency(std::string_view device) {
  for (const DeviceEfficiencyRow& one : kShares)
    if (one.device == device) return one.shares;
  return {};
}

}  // namespace regatta::cost
