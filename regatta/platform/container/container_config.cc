#include "regatta/platform/container/container_config.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"

namespace regatta::container {
namespace {

using nlohmann::json;

json mount_of(const char* type, const char* source, const char* to,
              std::vector<std::string> options) {
  return {{"destination", to}, {"type", type}, {"source", source}, {"options", std::move(options)}};
}

json bind_of(const std::string& source, const std::string& inside, bool is_read_only) {
  std::vector<std::string> options = {"rbind", "nosuid", "nodev"};
  options.emplace_back(is_read_only ? "ro" : "rw");
  return {{"destination", inside}, {"type", "bind"}, {"source", source}, {"options", options}};
}

json mounts_of(const RankContainer& request, const ContainerRoot& root) {
  json mounts = {
      mount_of("proc", "proc", "/proc", {"nosuid", "noexec", "nodev"}),
      mount_of("tmpfs", "tmpfs", "/dev", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
      mount_of("devpts", "devpts", "/dev/pts",
               {"nosuid", "noexec", "newinstance", "ptmxmode=0666"}),
      // Ranks of a replica exchange through it.
      bind_of("/dev/shm", "/dev/shm", false),
      mount_of("sysfs", "sysfs", "/sys", {"nosuid", "noexec", "nodev", "ro"})};
  if (request.is_read_only)
    mounts.push_back(mount_of("tmpfs", "tmpfs", "/tmp", {"nosuid", "nodev", "mode=1777"}));
  for (const BoundPath& bound : root.bound)
    mounts.push_back(bind_of(bound.source, bound.inside, bound.is_read_only));
  return mounts;
}

// The image's variables, and over them those of the job. The agent's usual PATH and HOME are those
// of the node and do not count.
json environment_of(const RankContainer& request, const ContainerRoot& root,
                    const RankNumbers& numbers) {
  constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::map<std::string, std::string> variables = {{"PATH", kPath}};
  for (const std::string& text : root.image_environment)
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      variables[text.substr(0, equals)] = text.substr(equals + 1);
  for (const auto& [name, value] : request.environment)
    if (!(name == "PATH" && value == kPath)) variables[name] = value;
  variables["HOME"] = request.working_folder;
  variables["RANK"] = std::to_string(numbers.rank);
  variables["LOCAL_RANK"] = std::to_string(numbers.local_rank);
  json list = json::array();
  for (const auto& [name, value] : variables)
    list.push_back(std::string(name).append("=").append(value));
  return list;
}

const json* list_in(const json& map, const char* key) {
  const auto found = map.find(key);
  return found != map.end() && found->is_array() ? &*found : nullptr;
}

Error wrong_edits(std::string_view device) {
  return {Code::kInvalidInput,
          fmt::format("CDI device {}: its edits have another form; write its specification again",
                      printable(device, 80))};
}

Status apply_edits(const json& edits, std::string_view device, json& config) {
  if (!edits.is_object()) return wrong_edits(device);
  if (const json* variables = list_in(edits, "env"))
    for (const json& one : *variables)
      if (one.is_string()) config["process"]["env"].push_back(one);
  if (const json* mounts = list_in(edits, "mounts"))
    for (const json& one : *mounts) {
      if (!one.is_object() || !one.contains("hostPath") || !one.contains("containerPath"))
        return wrong_edits(device);
      config["mounts"].push_back({{"source", one["hostPath"]},
                                  {"destination", one["containerPath"]},
                                  {"type", one.value("type", "bind")},
                                  {"options", one.value("options", json{"rbind", "ro"})}});
    }
  if (const json* nodes = list_in(edits, "deviceNodes"))
    for (const json& one : *nodes) {
      if (!one.is_object() || !one.contains("path")) return wrong_edits(device);
      json node = {{"path", one["path"]}, {"type", one.value("type", "c")}};
      for (const char* key : {"hostPath", "major", "minor", "fileMode", "uid", "gid"})
        if (one.contains(key)) node[key] = one[key];
      config["linux"]["devices"].push_back(std::move(node));
    }
  if (const json* hooks = list_in(edits, "hooks"))
    for (const json& one : *hooks) {
      if (!one.is_object() || !one.value("hookName", json()).is_string() || !one.contains("path"))
        return wrong_edits(device);
      json hook = {{"path", one["path"]}};
      for (const char* key : {"args", "env", "timeout"})
        if (one.contains(key)) hook[key] = one[key];
      config["hooks"][one["hookName"].get<std::string>()].push_back(std::move(hook));
    }
  return {};
}

}  // namespace

std::string container_name(const RankContainer& request, int local_rank) {
  return fmt::format("{}-{}", request.name, local_rank);
}

json container_config(const RankContainer& request, const ContainerRoot& root,
                      const RankNumbers& numbers) {
  json user = {{"uid", request.uid}, {"gid", request.gid}, {"additionalGids", request.groups}};
  const json none = json::array();
  return {
      {"ociVersion", "1.0.2"},
      {"process",
       {{"terminal", false},
        {"user", std::move(user)},
        {"args", request.command},
        {"env", environment_of(request, root, numbers)},
        {"cwd", request.working_folder},
        {"noNewPrivileges", true},
        {"capabilities",
         {{"bounding", none}, {"effective", none}, {"permitted", none}, {"inheritable", none}}}}},
      {"root", {{"path", root.path}, {"readonly", request.is_read_only}}},
      {"mounts", mounts_of(request, root)},
      {"linux",
       {{"cgroupsPath", "/" + container_name(request, numbers.local_rank)},
        {"namespaces", json::array({{{"type", "mount"}}})},
        {"devices", json::array()},
        {"resources", {{"devices", json::array({{{"allow", false}, {"access", "rwm"}}})}}},
        {"maskedPaths", {"/proc/kcore", "/proc/keys", "/sys/firmware"}},
        {"readonlyPaths", {"/proc/sys", "/proc/sysrq-trigger"}}}}};
}

Status apply_cdi_device(const std::vector<json>& documents, std::string_view device, json& config) {
  const std::size_t equals = device.find('=');
  const std::string kind(device.substr(0, equals));
  const std::string name(equals == std::string_view::npos ? "" : device.substr(equals + 1));
  for (const json& document : documents) {
    const json* devices = document.is_object() && document.value("kind", "") == kind
                              ? list_in(document, "devices")
                              : nullptr;
    if (devices == nullptr) continue;
    for (const json& one : *devices) {
      if (!one.is_object() || !one.contains("name") || one["name"] != name) continue;
      if (document.contains("containerEdits"))
        REGATTA_TRY_DO(apply_edits(document["containerEdits"], device, config));
      return apply_edits(one.value("containerEdits", json::object()), device, config);
    }
  }
  return Error{
      Code::kNotFound,
      fmt::format("CDI device {}: no file in /etc/cdi or /var/run/cdi of this node has it; "
                  "write its specification there",
                  printable(device, 80))};
}

}  // namespace regatta::container
