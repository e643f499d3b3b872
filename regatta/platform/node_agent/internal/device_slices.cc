#include "regatta/platform/node_agent/internal/device_slices.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/hook_loading.h"
#include "regatta/gpu/sharing/messages.h"
#include "regatta/gpu/sharing/slice.h"

namespace regatta::node_agent {
namespace {

constexpr unsigned kPpmPerMilli = 1000;
constexpr long long kSliceMib = 1 << 20;

// The cgroup whose folder this is, as the daemon wants it: of the hierarchy v2, or the freezer.
Result<std::string> cgroup_of(const std::string& folder) {
  REGATTA_TRY(mounts, os::read_file("/proc/self/mountinfo"));
  for (const char* hierarchy : {"", "freezer"}) {
    const auto mount = os::find_cgroup_mount(mounts, hierarchy);
    if (!mount || !folder.starts_with(mount->point + "/")) continue;
    const std::string root = mount->root == "/" ? "" : mount->root;
    return os::to_string(
        {.hierarchy = hierarchy, .path = root + folder.substr(mount->point.size())});
  }
  return Error{Code::kUnavailable,
               folder + ": it is in no hierarchy of cgroups that the GPU daemon knows"};
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& environment,
                     const std::string& name) {
  for (const auto& [each, value] : environment)
    if (each == name) return value;
  return "";
}

}  // namespace

std::string tenant_name(const control::ReplicaKey& key) {
  return fmt::format("job-{}.{}.{}", key.job, key.attempt, key.replica);
}

std::string enroll_request(const control::ReplicaOrder& order, const std::string& cgroup) {
  sharing::GpuSlice slice;
  slice.compute_ppm = static_cast<unsigned>(order.slice.device_milli) * kPpmPerMilli;
  for (int device = 0; device < 32; ++device)
    if ((order.devices >> static_cast<unsigned>(device) & 1U) != 0)
      slice.memory[device] = Bytes{order.slice.device_memory_mib * kSliceMib};
  nlohmann::json request{
      {"request", "enroll"}, {"name", tenant_name(order.key)}, {"cgroup", cgroup}};
  sharing::add_to_request(request, slice);
  return request.dump();
}

Result<DeviceSlices> DeviceSlices::create(const std::string& daemon_socket) {
  if (daemon_socket != sharing::kDefaultSocket)
    return Error{
        Code::kInvalidInput,
        fmt::format("--gpu-daemon {}: programs of replicas look for the daemon at {} alone, "
                    "as in containers; start it with this socket",
                    printable(daemon_socket, 100), sharing::kDefaultSocket)};
  DeviceSlices slices;
  REGATTA_TRY(folder, sharing::find_hook_folder(daemon_socket));
  slices.socket_ = daemon_socket;
  slices.hook_folder_ = folder;
  return slices;
}

Status DeviceSlices::enroll(const control::ReplicaOrder& order, const std::string& folder) const {
  if (folder.empty())
    return Error{Code::kUnavailable,
                 "this server has no cgroups for the agent, by which the GPU daemon would know the "
                 "replica; its part of a device could not be enforced"};
  REGATTA_TRY(cgroup, cgroup_of(folder));
  const auto answer = sharing::send_control_request(socket_, enroll_request(order, cgroup));
  if (answer) return {};
  return Error{Code::kUnavailable, answer.error().message};
}

void DeviceSlices::leave(const control::ReplicaKey& key) const {
  const nlohmann::json request{{"request", "leave"}, {"name", tenant_name(key)}};
  static_cast<void>(sharing::send_control_request(socket_, request.dump()));
}

void DeviceSlices::add_variables(
    std::vector<std::pair<std::string, std::string>>& environment) const {
  const auto variables = sharing::hook_variables(hook_folder_, value_of(environment, "LD_PRELOAD"),
                                                 value_of(environment, "LD_LIBRARY_PATH"));
  for (const auto& [name, value] : variables) {
    std::erase_if(environment, [&name = name](const auto& each) { return each.first == name; });
    environment.emplace_back(name, value);
  }
}

}  // namespace regatta::node_agent
