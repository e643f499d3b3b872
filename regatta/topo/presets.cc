#include "regatta/topo/presets.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/core/check.h"

namespace regatta::topo {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 80_GiB reads as the data sheet

constexpr FlopsPerSecond tflops(double rate) {
  return {rate * 1e12};
}

constexpr BytesPerSecond gigabytes_per_second(double rate) {
  return {rate * 1e9};
}

// Latencies are not in data sheets: these are the usual order of one small copy between two
// devices; `regatta measure` replaces them.
constexpr Seconds kShmLatency{10e-6};
constexpr Seconds kPcieLatency{5e-6};
constexpr Seconds kNvlinkLatency{2e-6};

IntraLink nvlink(double gigabytes) {
  return {IntraKind::kNvlink, gigabytes_per_second(gigabytes), kNvlinkLatency};
}

IntraLink pcie(double gigabytes) {
  return {IntraKind::kPcie, gigabytes_per_second(gigabytes), kPcieLatency};
}

struct DeviceRow {
  const char* name;
  double fp32_tflops;
  double bf16_tflops;  // dense; 0: the device has no bf16
  long long memory_gib;
  double memory_gigabytes_per_second;
  IntraLink intra;
  const char* source;
};

// NVIDIA's rates with sparsity are halved here. A data sheet's GB of device memory is read as GiB:
// that is what the driver reports to within a percent. NVLink and PCIe rates are per direction,
// half the bidirectional figure of the data sheet.
std::vector<DevicePreset> make_device_presets() {
  const std::vector<DeviceRow> rows = {
      {"t4", 8.1, 0, 16, 300, pcie(16), "NVIDIA T4 data sheet (2019): PCIe 3.0 x16"},
      {"v100-sxm2-16g", 15.7, 0, 16, 900, nvlink(25),
       "NVIDIA V100 data sheet (2020); one NVLink 2.0 brick between two neighbours"},
      {"v100", 15.7, 0, 32, 900, nvlink(25),
       "NVIDIA V100 data sheet (2020), SXM2 32 GB; one NVLink 2.0 brick between two neighbours"},
      {"a100-sxm4-40g", 19.5, 312, 40, 1555, nvlink(300),
       "NVIDIA A100 data sheet (2022): NVLink 600 GB/s"},
      {"a100-sxm4-80g", 19.5, 312, 80, 2039, nvlink(300),
       "NVIDIA A100 data sheet (2022): NVLink 600 GB/s"},
      {"a800-sxm4-80g", 19.5, 312, 80, 2039, nvlink(200),
       "NVIDIA A800 data sheet (2022): NVLink 400 GB/s"},
      {"l20", 59.8, 119.5, 48, 864, pcie(32), "NVIDIA L20 data sheet (2023): PCIe 4.0 x16"},
      {"l40s", 91.6, 362.05, 48, 864, pcie(32), "NVIDIA L40S data sheet (2023): PCIe 4.0 x16"},
      {"h20", 44, 148, 96, 4000, nvlink(450), "NVIDIA H20 data sheet (2023): NVLink 900 GB/s"},
      {"h100-sxm", 67, 989.5, 80, 3350, nvlink(450),
       "NVIDIA H100 data sheet (2023): NVLink 900 GB/s"},
      {"h800-sxm", 67, 989.5, 80, 3350, nvlink(200),
       "NVIDIA H800 data sheet (2023): NVLink 400 GB/s"},
      {"h200-sxm", 67, 989.5, 141, 4800, nvlink(450),
       "NVIDIA H200 data sheet (2024): NVLink 900 GB/s"},
  };
  std::vector<DevicePreset> presets;
  // One core at 3 GHz with two 8-lane fused multiply-adds a cycle; bf16 is computed in fp32 units.
  presets.push_back({.device = {.name = "cpu",
                                .kind = DeviceKind::kCpu,
                                .fp32_peak = 96_GFLOPS,
                                .bf16_peak = 96_GFLOPS,
                                .memory = 2_GiB,
                                .memory_bandwidth = 10_GBps,
                                .cpu_share = 0,
                                .source = "one x86-64 core with AVX2 at 3 GHz; memory is a choice"},
                     .intra = default_intra(IntraKind::kShm)});
  for (const DeviceRow& row : rows) {
    presets.push_back(
        {.device = {.name = row.name,
                    .kind = DeviceKind::kGpu,
                    .fp32_peak = tflops(row.fp32_tflops),
                    .bf16_peak = tflops(row.bf16_tflops),
                    .memory = Bytes{row.memory_gib << 30},
                    .memory_bandwidth = gigabytes_per_second(row.memory_gigabytes_per_second),
                    .cpu_share = 0,
                    .source = row.source},
         .intra = row.intra});
  }
  return presets;
}

struct ServerRow {
  const char* name;
  const char* device;
  int nics;
  BytesPerSecond nic_rate;
  const char* source;
};

// Eight devices and two processor sockets each. NIC counts are those of the compute network.
std::vector<ServerType> make_server_presets() {
  const std::vector<ServerRow> rows = {
      {"dgx-v100", "v100", 4, 100_Gbps,
       "DGX-1 with V100 system architecture (2017): 4 x EDR; the hybrid cube mesh gives a pair "
       "one or two bricks, one is taken"},
      {"dgx-a100-80g", "a100-sxm4-80g", 8, 200_Gbps, "DGX A100 data sheet (2021): 8 x HDR 200"},
      {"a800-8", "a800-sxm4-80g", 8, 200_Gbps,
       "HGX A800 8-GPU board; NICs as in DGX A100 (an assumption: boards differ)"},
      {"l20-8", "l20", 2, 200_Gbps, "8 x L20 on PCIe 4.0; 2 NICs (an assumption: boards differ)"},
      {"h20-8", "h20", 8, 400_Gbps,
       "HGX H20 8-GPU board; NICs as in DGX H100 (an assumption: boards differ)"},
      {"dgx-h100", "h100-sxm", 8, 400_Gbps, "DGX H100 data sheet (2023): 8 x NDR 400"},
      {"h800-8", "h800-sxm", 8, 400_Gbps,
       "HGX H800 8-GPU board; NICs as in DGX H100 (an assumption: boards differ)"},
      {"h200-8", "h200-sxm", 8, 400_Gbps, "DGX H200 data sheet (2024): 8 x NDR 400"},
  };
  std::vector<ServerType> presets;
  for (const ServerRow& row : rows) {
    const DevicePreset* device = find_device_preset(row.device);
    REGATTA_CHECK(device != nullptr);
    presets.push_back({.name = row.name,
                       .device = device->device,
                       .device_count = 8,
                       .intra = device->intra,
                       .nic_count = row.nics,
                       .nic_rate = row.nic_rate,
                       .numa_nodes = 2,
                       .source = row.source});
  }
  return presets;
}

const std::vector<DevicePreset>& device_presets() {
  static const std::vector<DevicePreset> presets = make_device_presets();
  return presets;
}

const std::vector<ServerType>& server_presets() {
  static const std::vector<ServerType> presets = make_server_presets();
  return presets;
}

}  // namespace

const DevicePreset* find_device_preset(std::string_view name) {
  for (const DevicePreset& preset : device_presets()) {
    if (preset.device.name == name) return &preset;
  }
  return nullptr;
}

const ServerType* find_server_preset(std::string_view name) {
  for (const ServerType& preset : server_presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

std::vector<std::string> device_preset_names() {
  std::vector<std::string> names;
  for (const DevicePreset& preset : device_presets())
    names.push_back(preset.device.name);
  return names;
}

std::vector<std::string> server_preset_names() {
  std::vector<std::string> names;
  for (const ServerType& preset : server_presets())
    names.push_back(preset.name);
  return names;
}

IntraLink default_intra(IntraKind kind) {
  switch (kind) {
    case IntraKind::kShm:
      return {kind, 4_GBps, kShmLatency};
    case IntraKind::kPcie:
      return pcie(32);
    case IntraKind::kNvlink:
      return {kind, {}, kNvlinkLatency};
  }
  return {};
}

std::string_view to_string(IntraKind kind) {
  switch (kind) {
    case IntraKind::kShm:
      return "shm";
    case IntraKind::kPcie:
      return "pcie";
    case IntraKind::kNvlink:
      return "nvlink";
  }
  return "shm";
}

}  // namespace regatta::topo
