#include "regatta/model/topo/presets.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::topo {
namespace {

using ::testing::IsSupersetOf;

TEST(Presets, HoldEveryDeviceThatTheFormatNames) {
  EXPECT_THAT(device_preset_names(),
              IsSupersetOf({"cpu", "a100-sxm4-80g", "a800-sxm4-80g", "h100-sxm", "h800-sxm", "h20",
                            "l20", "h200-sxm", "v100", "t4"}));
  EXPECT_THAT(server_preset_names(), IsSupersetOf({"dgx-a100-80g", "a800-8", "l20-8", "h20-8",
                                                   "dgx-h100", "h800-8", "h200-8", "dgx-v100"}));
}

TEST(Presets, AreCompleteAndNameTheirSource) {
  for (const std::string& name : device_preset_names()) {
    const DevicePreset* preset = find_device_preset(name);
    ASSERT_NE(preset, nullptr) << name;
    EXPECT_GT(preset->device.fp32_peak.value, 0) << name;
    EXPECT_GT(preset->device.memory.value, 1LL << 30) << name;
    EXPECT_GT(preset->device.memory_bandwidth.value, 0) << name;
    EXPECT_GT(preset->intra.bandwidth.value, 0) << name;
    EXPECT_FALSE(preset->device.source.empty()) << name;
  }
  for (const std::string& name : server_preset_names()) {
    const ServerType* preset = find_server_preset(name);
    ASSERT_NE(preset, nullptr) << name;
    EXPECT_EQ(preset->device_count, name.starts_with("gb") ? 4 : 8) << name;
    EXPECT_GT(preset->nic_rate.value, 0) << name;
    EXPECT_FALSE(preset->source.empty()) << name;
  }
}

// The figures that decide plans, typed a second time from the sources that presets.cc names: fp32
// and dense bf16 in TFLOPS, memory in GiB and GB/s, one link one way in GB/s.
struct Figures {
  const char* device;
  double fp32;
  double bf16;
  long long memory_gib;
  double memory_bandwidth;
  double link;
};

constexpr Figures kFigures[] = {
    // NVIDIA T4 product brief, table 2: 320 GB/s; nvidia-smi: 15360 MiB.
    {"t4", 8.1, 0, 15, 320, 16},
    // NVIDIA V100 data sheet (2020), SXM2; NVLink 2.0: 25 GB/s a brick one way.
    {"v100", 15.7, 0, 32, 900, 25},
    // NVIDIA A100 data sheet (2021), SXM columns: 624 TFLOPS with sparsity, NVLink 600 GB/s.
    {"a100-sxm4-40g", 19.5, 312, 40, 1555, 300},
    {"a100-sxm4-80g", 19.5, 312, 80, 2039, 300},
    // The export version of it: NVLink 400 GB/s.
    {"a800-sxm4-80g", 19.5, 312, 80, 2039, 200},
    // NVIDIA L40S data sheet (2023): 362.05 | 733 with sparsity; nvidia-smi: 46068 MiB.
    {"l40s", 91.6, 362.05, 45, 864, 32},
    {"l20", 59.8, 119.5, 45, 864, 32},
    // As announced in November 2023: 148 dense, NVLink 900 GB/s.
    {"h20", 44, 148, 96, 4000, 450},
    // NVIDIA H100 data sheet (2023), SXM: 1979 TFLOPS with sparsity, NVLink 900 GB/s.
    {"h100-sxm", 67, 989.5, 80, 3350, 450},
    {"h800-sxm", 67, 989.5, 80, 3350, 200},
    // NVIDIA H200 data sheet (2024), SXM.
    {"h200-sxm", 67, 989.5, 141, 4800, 450},
    // NVIDIA DGX B200 data sheet (2024), an eighth: 72 PFLOPS of fp8 with sparsity, 1440 GB.
    {"b200-sxm", 75, 2250, 180, 8000, 900},
    // NVIDIA HGX B300 data sheet (2025), an eighth: 36 PFLOPS of bf16 with sparsity.
    {"b300-sxm", 75, 2250, 268, 8000, 900},
    // NVIDIA GB200 and GB300 NVL72 data sheets (2025), a 72nd: 360 PFLOPS of bf16 with sparsity.
    {"gb200", 80, 2500, 185, 8000, 900},
    {"gb300", 83, 2500, 277, 8000, 900},
};

TEST(Presets, MatchTheirSources) {
  for (const Figures& figures : kFigures) {
    const DevicePreset* preset = find_device_preset(figures.device);
    ASSERT_NE(preset, nullptr) << figures.device;
    EXPECT_DOUBLE_EQ(preset->device.fp32_peak.value, figures.fp32 * 1e12) << figures.device;
    EXPECT_DOUBLE_EQ(preset->device.bf16_peak.value, figures.bf16 * 1e12) << figures.device;
    EXPECT_EQ(preset->device.memory.value, figures.memory_gib << 30) << figures.device;
    EXPECT_DOUBLE_EQ(preset->device.memory_bandwidth.value, figures.memory_bandwidth * 1e9)
        << figures.device;
    EXPECT_DOUBLE_EQ(preset->intra.bandwidth.value, figures.link * 1e9) << figures.device;
  }
}

// Rates with sparsity of the same data sheets, of a device, and the dense rate where they give it.
TEST(Presets, MultiplyInNarrowFormatsAsTheirSourcesSay) {
  struct NarrowPeaks {
    const char* device;
    double fp8_sparse;
    double mxfp8;
    double nvfp4;
  };
  constexpr NarrowPeaks kPeaks[] = {{"h100-sxm", 3958, 0, 0},
                                    {"b200-sxm", 9000, 4500, 18000.0 / 2},
                                    {"b300-sxm", 72000.0 / 8, 4500, 105000.0 / 8},
                                    {"gb200", 10000, 5000, 20000.0 / 2},
                                    {"gb300", 720000.0 / 72, 5000, 1080000.0 / 72}};
  for (const NarrowPeaks& peaks : kPeaks) {
    const DeviceType& device = find_device_preset(peaks.device)->device;
    EXPECT_DOUBLE_EQ(device.fp8_peak.value, peaks.fp8_sparse / 2 * 1e12) << peaks.device;
    EXPECT_DOUBLE_EQ(device.mxfp8_peak.value, peaks.mxfp8 * 1e12) << peaks.device;
    EXPECT_DOUBLE_EQ(device.nvfp4_peak.value, peaks.nvfp4 * 1e12) << peaks.device;
  }
}

// A peak is units x operations a cycle x boost clock: catches a rate with sparsity, or of tf32.
struct Silicon {
  const char* device;
  double fp32_cores;
  double fp32_ghz;
  double bf16_per_cycle;  // dense, of the whole device; 0: not compared
  double bf16_ghz;
};

constexpr Silicon kSilicon[] = {
    {"t4", 2560, 1.59, 0, 0},
    {"v100", 5120, 1.53, 0, 0},
    {"a100-sxm4-80g", 6912, 1.41, 108 * 2048, 1.41},  // NVIDIA A100 architecture (2020), table 1
    {"l40s", 18176, 2.52, 142 * 1024, 2.52},
    {"l20", 11776, 2.52, 0, 0},
    {"h100-sxm", 16896, 1.98, 132 * 4096, 1.83},  // NVIDIA H100 architecture (2022), table 2
};

TEST(Presets, AreDensePeaksAsCoresAndClockGiveThem) {
  for (const Silicon& silicon : kSilicon) {
    const DeviceType& device = find_device_preset(silicon.device)->device;
    const double fp32 = 2 * silicon.fp32_cores * silicon.fp32_ghz * 1e9;
    EXPECT_NEAR(device.fp32_peak.value / fp32, 1, 0.015) << silicon.device;
    const double cores = silicon.fp32_cores / device.processors;
    EXPECT_TRUE(cores == 64 || cores == 128) << silicon.device << " " << cores;
    if (silicon.bf16_per_cycle == 0) continue;
    const double bf16 = silicon.bf16_per_cycle * silicon.bf16_ghz * 1e9;
    EXPECT_NEAR(device.bf16_peak.value / bf16, 1, 0.015) << silicon.device;
  }
}

// The compute network of one server, Gb/s: DGX-1 4 x EDR, DGX A100 8 x HDR, DGX H100 and H200 8 x
// NDR, B300 and GB300 XDR a device; the DeepSeek-V3 report (2024) gives an H800 server 50 GB/s a
// device.
TEST(Presets, GiveServersTheNicsOfTheirSources) {
  const std::vector<std::pair<const char*, double>> totals = {
      {"dgx-v100", 400},       {"dgx-a100-80g", 1600}, {"dgx-h100", 3200},
      {"h200-8", 3200},        {"h800-8", 8 * 50 * 8}, {"b300-8", 8 * 800},
      {"gb200-tray", 4 * 400}, {"gb300-tray", 4 * 800}};
  for (const auto& [name, gigabits] : totals) {
    const ServerType* server = find_server_preset(name);
    ASSERT_NE(server, nullptr) << name;
    EXPECT_DOUBLE_EQ(server->nic_count * server->nic_rate.value * 8, gigabits * 1e9) << name;
  }
}

// NVIDIA GB200 and GB300 NVL72 data sheets: 72 devices, 130 TB/s of NVLink both ways.
TEST(Presets, JoinTheTraysOfARack) {
  for (const char* name : {"gb200-nvl72", "gb200-nvl36x2", "gb300-nvl72"}) {
    const ServerType& tray = *find_server_preset(name);
    const int devices = tray.scale_up.servers * tray.device_count;
    EXPECT_EQ(devices, 72) << name;
    EXPECT_NEAR(devices * 2 * tray.scale_up.bandwidth.value, 130e12, 1e12) << name;
    EXPECT_TRUE(tray.scale_up.in_network_reduction) << name;
  }
  EXPECT_EQ(find_server_preset("dgx-b200")->scale_up.servers, 1);
}

TEST(Presets, KnowWhatTheExportVersionsLack) {
  EXPECT_LT(find_device_preset("a800-sxm4-80g")->intra.bandwidth,
            find_device_preset("a100-sxm4-80g")->intra.bandwidth);
  EXPECT_LT(find_device_preset("h20")->device.bf16_peak,
            find_device_preset("h100-sxm")->device.bf16_peak);
  EXPECT_EQ(find_device_preset("v100")->device.bf16_peak.value, 0);
}

TEST(Presets, AreNotFoundUnderWrongNames) {
  EXPECT_EQ(find_device_preset("a100"), nullptr);
  EXPECT_EQ(find_server_preset(""), nullptr);
}

}  // namespace
}  // namespace regatta::topo
