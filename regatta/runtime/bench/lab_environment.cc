#include "regatta/runtime/bench/lab_environment.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/os/log.h"

namespace regatta::bench {
namespace {

Result<std::vector<topo::DeviceRef>> choose_devices(const topo::Cluster& cluster, int ranks,
                                                    bool is_round_robin) {
  std::vector<topo::DeviceRef> devices = all_devices(cluster);
  if (static_cast<int>(devices.size()) < ranks)
    return Error{
        Code::kInvalidInput,
        fmt::format("cluster {}: {} devices are too few for {} ranks; give a smaller --ranks",
                    cluster.name, devices.size(), ranks)};
  if (is_round_robin)
    std::stable_sort(devices.begin(), devices.end(),
                     [](const auto& a, const auto& b) { return a.index < b.index; });
  devices.resize(static_cast<std::size_t>(ranks));
  return devices;
}

}  // namespace

Result<LabEnvironment> LabEnvironment::open(const topo::Cluster& cluster, int ranks,
                                            bool is_round_robin) {
  REGATTA_TRY(devices, choose_devices(cluster, ranks, is_round_robin));
  LabEnvironment made;
  auto found = lab::find(cluster.name);
  if (found) {
    REGATTA_TRY_DO(lab::check_same_cluster(*found, cluster));
    made.environment_.lab = std::move(*found);
  } else {
    REGATTA_TRY(lab, lab::up(cluster, {.die_with_caller = true}));
    made.environment_.lab = std::move(lab);
    made.brought_up_ = cluster.name;
  }
  for (const topo::DeviceRef device : devices) {
    const lab::LabServer& server = made.environment_.lab->servers[device.server.index()];
    const auto nic = static_cast<std::size_t>(std::max(0, topo::nic_of(cluster, device)));
    if (nic >= server.nic_addresses.size())
      return Error{Code::kInvalidInput,
                   fmt::format("server {}: has no NIC; give its type one", server.name)};
    made.environment_.places.push_back({.server = server.name,
                                        .address = server.nic_addresses[nic],
                                        .link_rate = cluster.type_of(device.server).nic_rate});
  }
  return made;
}

LabEnvironment::LabEnvironment(LabEnvironment&& other) noexcept
    : environment_(std::move(other.environment_)),
      brought_up_(std::exchange(other.brought_up_, "")) {}

LabEnvironment::~LabEnvironment() {
  if (brought_up_.empty()) return;
  if (const Status ended = lab::down(brought_up_); !ended)
    os::log_warning("lab " + brought_up_ + ": " + ended.error().message);
}

}  // namespace regatta::bench
