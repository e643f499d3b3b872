#include "regatta/network/lab/internal/devices.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/core.h>

#include "regatta/base/os/process.h"

namespace regatta::lab {
namespace {

Status make_groups(const Blueprint& blueprint, const os::CpuCgroupRoot& root, LabState& state) {
  REGATTA_TRY(parent, os::make_cpu_group(root, "regatta-" + blueprint.name));
  for (std::size_t s = 0; s < state.info.servers.size(); ++s) {
    const BlueprintNode& node = blueprint.nodes[s];
    for (std::size_t device = 0; device < node.cpu_shares.size(); ++device) {
      REGATTA_TRY(group, os::make_limited_group(parent, fmt::format("{}-{}", node.name, device),
                                                node.cpu_shares[device]));
      state.info.servers[s].devices[device].cgroup = group;
    }
  }
  return {};
}

}  // namespace

Status make_devices(const Blueprint& blueprint, LabState& state) {
  double total = 0;
  double least = 1;
  for (std::size_t s = 0; s < state.info.servers.size(); ++s) {
    for (const double share : blueprint.nodes[s].cpu_shares) {
      state.info.servers[s].devices.push_back({.cpu_share = share, .cgroup = ""});
      total += share;
      least = std::min(least, share);
    }
  }
  state.info.cpu_share = least;
  const int cores = os::usable_cores();
  state.info.fixed_speed = total <= cores;
  if (!state.info.fixed_speed) {
    state.info.speed_note =
        fmt::format("the devices ask for {:.2f} cores and this machine has {}", total, cores);
  }
  const auto root = os::find_cpu_cgroup_root();
  if (!root) {
    if (state.info.fixed_speed) {
      state.info.speed_note =
          "no cgroup enforces the devices' shares, their workers keep the pace by themselves: " +
          root.error().message;
    }
    return save_state(state);
  }
  state.cgroup = root->folder + "/regatta-" + blueprint.name;
  state.join_cgroup = true;
  REGATTA_TRY_DO(save_state(state));
  return make_groups(blueprint, *root, state);
}

}  // namespace regatta::lab
