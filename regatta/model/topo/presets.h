// topo/presets.h: the devices and whole servers that a cluster file can name, each figure with its
// source. The tables in presets.cc are the one place to add a device or a server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/model/topo/cluster.h"

namespace regatta::topo {

// A device and its usual link to its neighbours in a server.
struct DevicePreset {
  DeviceType device;
  IntraLink intra;
};

// nullptr when there is no preset of that name.
const DevicePreset* find_device_preset(std::string_view name);
const ServerType* find_server_preset(std::string_view name);

// The names, in the order of the tables, for the remedies of messages.
std::vector<std::string> device_preset_names();
std::vector<std::string> server_preset_names();

// The default link between two devices of a server by kind; bandwidth 0: it has none.
IntraLink default_intra(IntraKind kind);

std::string_view to_string(IntraKind kind);  // "shm", "pcie", "nvlink"

}  // namespace regatta::topo
