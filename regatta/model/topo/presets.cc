#include "regatta/model/topo/presets.h"

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

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
  double fp16_tflops;
  double fp8_tflops;  // 0: the device has no fp8
  int processors;
  long long memory_gib;
  double memory_gigabytes_per_second;
  IntraLink intra;
  const char* source;
  double nvfp4_tflops = 0;  // 0: the device has neither nvfp4 nor mxfp8, whose rate is that of fp8
};

// Peak rates are dense: a data sheet that gives the rate with sparsity is halved; fp32 is that of
// the vector units, not of tf32. NVLink and PCIe rates are per direction, half of what data sheets
// give, and rounded as there (PCIe 4.0 x16 carries 31.5 GB/s). Memory is what the driver leaves: a
// data sheet's GB of HBM is that many GiB to within a percent (nvidia-smi: A100 81920 MiB, H100
// 81559, H20 97871); of GDDR6, ECC, on when shipped, takes a sixteenth (T4 15360, L40S 46068).
// Processors are streaming multiprocessors: cores of the data sheet / 64
// (V100, A100, T4) or / 128 (H100 and later, L20, L40S). "Not re-checked" marks figures that no
// document of the vendor was found for.
std::vector<DeviceRow> device_rows() {
  return {
      {"t4", 8.1, 0, 65, 0, 40, 15, 320, pcie(16),
       "NVIDIA T4 product brief, table 2: 16 GB less ECC, 320 GB/s (the data sheet of 2019 rounds "
       "to 300); 2560 cores at 1.59 GHz; PCIe 3.0 x16 card"},
      {"v100-sxm2-16g", 15.7, 0, 125, 0, 80, 16, 900, nvlink(25),
       "NVIDIA V100 data sheet (2020), SXM2; one NVLink 2.0 brick of six between two neighbours"},
      {"v100", 15.7, 0, 125, 0, 80, 32, 900, nvlink(25),
       "NVIDIA V100 data sheet (2020), SXM2 32 GB; one NVLink 2.0 brick of six between two "
       "neighbours"},
      {"a100-sxm4-40g", 19.5, 312, 312, 0, 108, 40, 1555, nvlink(300),
       "NVIDIA A100 data sheet 1758950 (2021), SXM 40 GB: NVLink 600 GB/s both ways"},
      {"a100-sxm4-80g", 19.5, 312, 312, 0, 108, 80, 2039, nvlink(300),
       "NVIDIA A100 data sheet 1758950 (2021), SXM 80 GB: NVLink 600 GB/s both ways"},
      {"a800-sxm4-80g", 19.5, 312, 312, 0, 108, 80, 2039, nvlink(200),
       "as A100 SXM 80 GB but NVLink 400 GB/s both ways, NVIDIA's statement of November 2022; "
       "vendor's data sheet not re-checked"},
      {"l20", 59.8, 119.5, 119.5, 239, 92, 45, 864, pcie(32),
       "NVIDIA L20 (2023), PCIe 4.0 x16 card, 48 GB less ECC; 11776 cores at 2.52 GHz give 59.4 "
       "TFLOPS; vendor's data sheet not re-checked"},
      {"l40s", 91.6, 362.05, 362.05, 733, 142, 45, 864, pcie(32),
       "NVIDIA L40S data sheet (2023): 48 GB less ECC; PCIe 4.0 x16 card, 64 GB/s both ways"},
      {"h20", 44, 148, 148, 296, 78, 96, 4000, nvlink(450),
       "NVIDIA H20 SXM as announced (November 2023): NVLink 900 GB/s both ways; no data sheet is "
       "public, not re-checked"},
      {"h100-sxm", 67, 989.5, 989.5, 1979, 132, 80, 3350, nvlink(450),
       "NVIDIA H100 data sheet (2023), SXM: bf16 1979 TFLOPS with sparsity, NVLink 900 GB/s both "
       "ways"},
      {"h800-sxm", 67, 989.5, 989.5, 1979, 132, 80, 3350, nvlink(200),
       "as H100 SXM but NVLink 400 GB/s both ways (DeepSeek-V3 report, 2024, measures 160 of 200 "
       "GB/s one way); vendor's data sheet not re-checked"},
      {"h200-sxm", 67, 989.5, 989.5, 1979, 132, 141, 4800, nvlink(450),
       "NVIDIA H200 data sheet (2024), SXM: bf16 1979 TFLOPS with sparsity, NVLink 900 GB/s both "
       "ways"},
      {"b200-sxm", 75, 2250, 2250, 4500, 148, 180, 8000, nvlink(900),
       "NVIDIA DGX B200 data sheet (2024): eight have 1440 GB, 64 TB/s, 72 PFLOPS of fp8 with "
       "sparsity twice the dense rate; NVLink 1.8 TB/s both ways; fp4 9 PFLOPS: HGX B200 data "
       "sheet",
       9000},
      {"b300-sxm", 75, 2250, 2250, 4500, 148, 268, 8000, nvlink(900),
       "NVIDIA HGX B300 data sheet (2025), an eighth: 36 and 72 PFLOPS of bf16 and fp8 with "
       "sparsity, 105 of nvfp4 dense, NVLink 1.8 TB/s both ways; nvidia-smi: 275040 MiB; "
       "processors as B200; these two not re-checked",
       13125},
      {"gb200", 80, 2500, 2500, 5000, 152, 185, 8000, nvlink(900),
       "NVIDIA GB200 NVL72 data sheet (2025), a device of 72: 5, 10 and 20 PFLOPS of bf16, fp8 and "
       "fp4 with sparsity, 186 GB; nvidia-smi: 189471 MiB; processors: CUDA's device properties; "
       "these two not re-checked",
       10000},
      {"gb300", 83, 2500, 2500, 5000, 152, 277, 8000, nvlink(900),
       "NVIDIA GB300 NVL72 data sheet (2025), a 72nd: 360 and 720 PFLOPS of bf16 and fp8 with "
       "sparsity, 1080 of nvfp4 dense, 6 of fp32, 20 TB, 576 TB/s; nvidia-smi: 284208 MiB; "
       "processors as GB200; these two not re-checked",
       15000},
  };
}

std::vector<DevicePreset> make_device_presets() {
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
  for (const DeviceRow& row : device_rows()) {
    presets.push_back(
        {.device = {.name = row.name,
                    .kind = DeviceKind::kGpu,
                    .fp32_peak = tflops(row.fp32_tflops),
                    .bf16_peak = tflops(row.bf16_tflops),
                    .fp16_peak = tflops(row.fp16_tflops),
                    .fp8_peak = tflops(row.fp8_tflops),
                    .mxfp8_peak = tflops(row.nvfp4_tflops > 0 ? row.fp8_tflops : 0),
                    .nvfp4_peak = tflops(row.nvfp4_tflops),
                    .processors = row.processors,
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
  int numa_nodes;  // that hold devices
  PcieTree pcie;
  const char* source;
  int devices = 8;
  ScaleUp scale_up = {};
};

// Devices have equal links to all switches of a rack of 18 trays; of 36x2 the other half of the
// domain is one more switch away, for which the latency is an assumption.
constexpr ScaleUp kNvl72{.servers = 18,
                         .bandwidth = gigabytes_per_second(900),
                         .latency = kNvlinkLatency,
                         .in_network_reduction = true};
constexpr ScaleUp kNvl36x2{.servers = 18,
                           .bandwidth = gigabytes_per_second(900),
                           .latency = Seconds{3e-6},
                           .in_network_reduction = true};

// A switch for each device and its NIC, or for two devices and theirs.
constexpr PcieTree kPixEach{.switches = 8};
constexpr PcieTree kPxbEach{.switches = 8, .has_cascades = true};
constexpr PcieTree kPxbPairs{.switches = 4, .has_cascades = true};
constexpr PcieTree kPixPairs{.switches = 4, .has_one_host_bridge = true};

// Two processor sockets each. NICs are those of the compute network, storage and
// management left out. PCIe is as published matrices of `nvidia-smi topo -m` show it.
std::vector<ServerType> make_server_presets() {
  const std::vector<ServerRow> rows = {
      {"dgx-v100", "v100", 4, 100_Gbps, 2, kPixPairs,
       "NVIDIA DGX-1 with Tesla V100 system architecture, WP-08437 (2017): 4 x EDR InfiniBand; the "
       "hybrid cube mesh gives four of seven neighbours one or two bricks, one is taken; PCIe: "
       "figure "
       "of the same document, two devices and a NIC a switch, two switches a socket"},
      {"dgx-a100-80g", "a100-sxm4-80g", 8, 200_Gbps, 4, kPxbPairs,
       "NVIDIA DGX A100 user guide, DU-09821-001 (2020), hardware overview: 8 x ConnectX-6 HDR 200 "
       "Gb/s, NVSwitch between all devices; PCIe: NVIDIA/DCGM issue 149, PXB within four pairs, "
       "SYS "
       "between them, whose NUMA nodes differ"},
      {"a800-8", "a800-sxm4-80g", 8, 200_Gbps, 2, kPixEach,
       "HGX A800 8-GPU board; NICs as in DGX A100 (an assumption: servers differ); PCIe: "
       "NVIDIA/nccl "
       "issue 933, eight devices of eight NVLinks, PIX and NODE"},
      {"l20-8",
       "l20",
       2,
       200_Gbps,
       2,
       {},
       "8 x L20 cards on PCIe 4.0; 2 NICs (an assumption: servers differ); PCIe switches not "
       "known"},
      {"h20-8", "h20", 8, 400_Gbps, 2, kPixEach,
       "HGX H20 8-GPU board; NICs as in DGX H100 (an assumption: servers differ); PCIe: "
       "deepseek-ai/DeepEP issue 137, 8 x H20, PIX and NODE"},
      {"dgx-h100", "h100-sxm", 8, 400_Gbps, 2, kPxbEach,
       "NVIDIA DGX BasePOD reference architecture, core components, DGX H200 and H100: 8 "
       "single-port ConnectX-7, 400 Gb/s; PCIe: vllm-project/vllm issue 6746, 8 x H100, PXB and "
       "NODE"},
      {"h800-8", "h800-sxm", 8, 400_Gbps, 2, kPixEach,
       "HGX H800 8-GPU board; 50 GB/s of InfiniBand a device as in the DeepSeek-V3 report "
       "(2024); PCIe as a800-8"},
      {"h200-8", "h200-sxm", 8, 400_Gbps, 2, kPxbEach,
       "NVIDIA DGX BasePOD reference architecture, core components, DGX H200 and H100: 8 "
       "single-port ConnectX-7, 400 Gb/s; PCIe as dgx-h100"},
      {"dgx-b200", "b200-sxm", 8, 400_Gbps, 2, kPxbEach,
       "NVIDIA DGX B200 data sheet (2024): 8 single-port ConnectX-7, 400 Gb/s; PCIe: "
       "vllm-project/vllm issue 16336, PXB and NODE"},
      {"b300-8", "b300-sxm", 8, 800_Gbps, 2, kPxbEach,
       "NVIDIA DGX B300 data sheet (2025): 8 single-port ConnectX-8, 800 Gb/s; PCIe as dgx-b200"},
      {"gb200-tray",
       "gb200",
       4,
       400_Gbps,
       2,
       {},
       "NVIDIA GB200 NVL72 (2024): a compute tray has two Grace processors, four devices and four "
       "ConnectX-7, 400 Gb/s; sgl-project/sglang issue 11208: NV18 between its devices, SYS to "
       "NICs",
       4},
      {"gb300-tray",
       "gb300",
       4,
       800_Gbps,
       2,
       {},
       "NVIDIA GB300 NVL72 (2025): as a tray of GB200 but four ConnectX-8, 800 Gb/s a device",
       4},
      {"gb200-nvl72",
       "gb200",
       4,
       400_Gbps,
       2,
       {},
       "gb200-tray, of which NVIDIA GB200 NVL72 (2024) joins 18: NVLink 1.8 TB/s a device both "
       "ways "
       "to 18 switches of nine switch trays, 130 TB/s, with NVLink SHARP",
       4,
       kNvl72},
      {"gb200-nvl36x2",
       "gb200",
       4,
       400_Gbps,
       2,
       {},
       "gb200-nvl72 in two racks of nine trays, whose switches are cabled to each other "
       "(SemiAnalysis, \"GB200 hardware architecture\", 2024)",
       4,
       kNvl36x2},
      {"gb300-nvl72",
       "gb300",
       4,
       800_Gbps,
       2,
       {},
       "gb300-tray, of which NVIDIA GB300 NVL72 (2025) joins 18 as GB200 NVL72: NVLink 130 TB/s",
       4,
       kNvl72},
  };
  std::vector<ServerType> presets;
  for (const ServerRow& row : rows) {
    const DevicePreset* device = find_device_preset(row.device);
    REGATTA_CHECK(device != nullptr);
    presets.push_back({.name = row.name,
                       .device = device->device,
                       .device_count = row.devices,
                       .intra = device->intra,
                       .nic_count = row.nics,
                       .nic_rate = row.nic_rate,
                       .numa_nodes = row.numa_nodes,
                       .pcie = row.pcie,
                       .scale_up = row.scale_up,
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
