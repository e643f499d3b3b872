#include "regatta/gpu/device/discover.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <hwloc.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/gpu/device/device.h"
#include "regatta/model/topo/presets.h"

namespace regatta::device {
namespace {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kClassDisplay = 0x03;
constexpr unsigned kClassAccelerator = 0x12;
constexpr int kDevicesMax = 64;

using PciDevice = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

struct PciName {
  unsigned device;
  std::string_view preset;
};

// Source: the PCI ID Repository, vendor 10de.
constexpr std::array<PciName, 12> kPciNames{{{0x1db1, "v100-sxm2-16g"},
                                             {0x1db5, "v100"},
                                             {0x1eb8, "t4"},
                                             {0x20b0, "a100-sxm4-40g"},
                                             {0x20b2, "a100-sxm4-80g"},
                                             {0x20f3, "a800-sxm4-80g"},
                                             {0x2324, "h800-sxm"},
                                             {0x2329, "h20"},
                                             {0x2330, "h100-sxm"},
                                             {0x2335, "h200-sxm"},
                                             {0x26b9, "l40s"},
                                             {0x26ba, "l20"}}};

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

Result<Topology> load_topology(const std::string& xml_file) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return Error{Code::kUnavailable, "hwloc cannot start; is memory exhausted?"};
  Topology topology(raw);
  if (!xml_file.empty() && hwloc_topology_set_xml(raw, xml_file.c_str()) != 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: not a recorded machine; make one with lstopo x.xml", xml_file)};
  }
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0) {
    return Error{xml_file.empty() ? Code::kUnavailable : Code::kInvalidInput,
                 fmt::format("hwloc cannot read {}; check that it is readable",
                             xml_file.empty() ? "/sys" : xml_file)};
  }
  return topology;
}

int count_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
}

std::string info_of(hwloc_obj_t object, const char* name) {
  const char* value = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? "" : value;
}

void read_processor(hwloc_topology_t topology, DiscoveredServer& server) {
  server.packages = count_of(topology, HWLOC_OBJ_PACKAGE);
  server.cores = std::max(1, count_of(topology, HWLOC_OBJ_CORE));
  server.threads = count_of(topology, HWLOC_OBJ_PU);
  server.type.numa_nodes = std::max(1, count_of(topology, HWLOC_OBJ_NUMANODE));
  hwloc_obj_t root = hwloc_get_root_obj(topology);
  server.memory = Bytes{static_cast<long long>(root->total_memory)};
  server.cpu_model = info_of(hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0), "CPUModel");
  if (server.cpu_model.empty()) server.cpu_model = info_of(root, "CPUModel");
  static constexpr std::array<hwloc_obj_type_t, 4> kCaches{HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                                           HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE};
  for (std::size_t i = 0; i < kCaches.size(); ++i) {
    hwloc_obj_t first = hwloc_get_obj_by_type(topology, kCaches[i], 0);
    if (first == nullptr) continue;
    server.caches.push_back({.level = static_cast<int>(i) + 1,
                             .size = {static_cast<long long>(first->attr->cache.size)},
                             .count = count_of(topology, kCaches[i])});
  }
}

// MemTotal of /proc/meminfo: some virtual machines add memory that the per-node counters, which
// hwloc reads, leave out. 0 when it cannot be read.
Bytes total_memory_of_this_machine() {
  const auto found = device_memory(ComputeDevice{});
  return found ? found->total : Bytes{};
}

// The NUMA node that `object` hangs from: 0 when it hangs from the whole machine.
int numa_of(hwloc_topology_t topology, hwloc_obj_t object) {
  hwloc_obj_t parent = hwloc_get_non_io_ancestor_obj(topology, object);
  if (parent == nullptr || parent->nodeset == nullptr) return 0;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    if (hwloc_bitmap_isset(parent->nodeset, node->os_index) != 0)
      return static_cast<int>(node->logical_index);
  }
  return 0;
}

// The bridges above `object`, host bridge first.
std::vector<std::string> bridges_above(hwloc_obj_t object) {
  std::vector<std::string> bridges;
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (above->type == HWLOC_OBJ_BRIDGE)
      bridges.push_back(fmt::format("bridge{}", above->logical_index));
  }
  std::reverse(bridges.begin(), bridges.end());
  return bridges;
}

std::string preset_name(const PciDevice& pci) {
  for (const PciName& known : kPciNames) {
    if (pci.vendor_id == kNvidia && pci.device_id == known.device) return std::string(known.preset);
  }
  return fmt::format("{:04x}:{:04x}", pci.vendor_id, pci.device_id);
}

bool is_accelerator(const PciDevice& pci) {
  const unsigned base = static_cast<unsigned>(pci.class_id) >> 8U;
  // A display controller of a server's management chip is no accelerator; NVIDIA's are.
  return base == kClassAccelerator || (base == kClassDisplay && pci.vendor_id == kNvidia);
}

BytesPerSecond pci_rate(const PciDevice& pci) {
  return {static_cast<double>(pci.linkspeed) * 1e9};  // hwloc: GB/s, 0 when not known
}

void read_accelerators(hwloc_topology_t topology, DiscoveredServer& server) {
  std::set<std::string> models;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
    const PciDevice& pci = device->attr->pcidev;
    if (!is_accelerator(pci)) continue;
    const std::string model = preset_name(pci);
    if (models.empty()) {
      server.type.device.name = model;
      if (const topo::DevicePreset* preset = topo::find_device_preset(model)) {
        server.type.device = preset->device;
        server.type.intra = preset->intra;
      } else {
        server.type.intra = topo::default_intra(topo::IntraKind::kPcie);
        server.notes.push_back(
            fmt::format("the figures of device {} are not known; add it as a preset", model));
      }
    }
    models.insert(model);
    server.parts.push_back({.name = fmt::format("dev{}", server.type.device_count++),
                            .is_nic = false,
                            .numa = numa_of(topology, device),
                            .bridges = bridges_above(device),
                            .rate = pci_rate(pci)});
  }
  if (models.size() > 1) {
    server.notes.push_back("devices of several models are here; the figures are those of " +
                           server.type.device.name);
  }
}

// Without accelerators the cores are the devices.
void use_cores_as_devices(hwloc_topology_t topology, DiscoveredServer& server) {
  const topo::DevicePreset* preset = topo::find_device_preset("cpu");
  server.type.device = preset->device;
  server.type.intra = preset->intra;
  server.type.device_count = std::min(server.cores, kDevicesMax);
  server.type.device.memory = Bytes{server.memory.value / server.cores};
  if (server.cores > kDevicesMax)
    server.notes.push_back(
        fmt::format("{} cores; the first {} are shown", server.cores, kDevicesMax));
  for (int i = 0; i < server.type.device_count; ++i) {
    hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    server.parts.push_back({.name = fmt::format("core{}", i),
                            .is_nic = false,
                            .numa = core == nullptr ? 0 : numa_of(topology, core),
                            .bridges = {},
                            .rate = {}});
  }
}

// Mbit/s in class/net/NAME/speed; -1 or an error when the driver does not say.
BytesPerSecond nic_rate(const std::string& sys_root, const std::string& name) {
  const auto text = os::read_file(fmt::format("{}/class/net/{}/speed", sys_root, name));
  if (!text) return {};
  const double megabits = std::strtod(std::string(trim(*text)).c_str(), nullptr);
  return {megabits > 0 ? megabits * 1e6 / 8 : 0};
}

void read_nics(hwloc_topology_t topology, const std::string& sys_root, DiscoveredServer& server) {
  std::set<double> rates;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_osdev(topology, device)) != nullptr;) {
    if (device->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || device->name == nullptr) continue;
    BytesPerSecond rate = nic_rate(sys_root, device->name);
    if (rate.value <= 0)
      server.notes.push_back(fmt::format("the speed of {} is not known", device->name));
    server.parts.push_back({.name = device->name,
                            .is_nic = true,
                            .numa = numa_of(topology, device),
                            .bridges = bridges_above(device),
                            .rate = rate});
    rates.insert(rate.value);
    ++server.type.nic_count;
    server.type.nic_rate = std::max(server.type.nic_rate, rate);
  }
  if (rates.size() > 1)
    server.notes.push_back("NICs of several speeds are here; the server's rate is the fastest");
}

}  // namespace

Result<DiscoveredServer> discover_server(const DiscoverOptions& options) {
  REGATTA_TRY(topology, load_topology(options.xml_file));
  DiscoveredServer server;
  server.type.name = "this-machine";
  server.type.source = "hwloc, PCI ids and data sheets";
  read_processor(topology.get(), server);
  if (options.xml_file.empty())
    server.memory = std::max(server.memory, total_memory_of_this_machine());
  read_accelerators(topology.get(), server);
  if (server.type.device_count == 0) use_cores_as_devices(topology.get(), server);
  read_nics(topology.get(), options.sys_root, server);
  return server;
}

}  // namespace regatta::device
