#include "regatta/topo/presets.h"

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
    EXPECT_EQ(preset->device_count, 8) << name;
    EXPECT_GT(preset->nic_rate.value, 0) << name;
    EXPECT_FALSE(preset->source.empty()) << name;
  }
}

// NVIDIA A100 data sheet (2022): 312 TFLOPS bf16 dense, 2039 GB/s, NVLink 600 GB/s both ways.
TEST(Presets, MatchTheA100DataSheet) {
  const DevicePreset* preset = find_device_preset("a100-sxm4-80g");
  ASSERT_NE(preset, nullptr);
  EXPECT_DOUBLE_EQ(preset->device.bf16_peak.value, 312e12);
  EXPECT_DOUBLE_EQ(preset->device.memory_bandwidth.value, 2039e9);
  EXPECT_DOUBLE_EQ(preset->intra.bandwidth.value, 300e9);
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
