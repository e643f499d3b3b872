#include "regatta/network/lab/internal/state.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::lab {
namespace {

constexpr const char* kStateFile = "/state.json";

nlohmann::json to_json(const LabState& state) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const NodeState& node : state.nodes) {
    nodes.push_back({{"name", node.name},
                     {"holder_fd", node.holder_fd},
                     {"inode", node.inode},
                     {"cookie", node.cookie}});
  }
  return {{"info", to_json(state.info)},
          {"holder_start", state.holder_start},
          {"boot_id", state.boot_id},
          {"cgroup", state.cgroup},
          {"join_cgroup", state.join_cgroup},
          {"description", state.description},
          {"ready", state.ready},
          {"nodes", nodes}};
}

LabState read_state(const JsonReader& json) {
  LabState state;
  state.info = read_info(json.at("info"));
  json.read("holder_start", state.holder_start);
  json.read("boot_id", state.boot_id);
  json.read("cgroup", state.cgroup);
  json.read("join_cgroup", state.join_cgroup);
  json.read("description", state.description);
  json.read("ready", state.ready);
  for (const JsonReader& node : json.at("nodes").items()) {
    NodeState& read = state.nodes.emplace_back();
    node.read("name", read.name);
    node.read("holder_fd", read.holder_fd);
    node.read("inode", read.inode);
    node.read("cookie", read.cookie);
  }
  return state;
}

Result<os::UniqueFd> lock(int operation) {
  REGATTA_TRY(folder, runtime_folder());
  const std::string path = folder + "/lock";
  os::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return os::errno_error(path);
  while (::flock(file.get(), operation) != 0) {
    if (errno != EINTR) return os::errno_error(path);
  }
  return file;
}

std::string folder_by_environment() {
  const char* run = std::getenv("XDG_RUNTIME_DIR");
  if (::geteuid() == 0) return "/run/regatta";
  if (run != nullptr && ::access(run, W_OK) == 0) return std::string(run) + "/regatta";
  return fmt::format("/tmp/regatta-{}", ::geteuid());
}

}  // namespace

Result<std::string> runtime_folder() {
  const std::string folder = folder_by_environment();
  REGATTA_TRY_DO(os::make_folder(folder, 0700));
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return os::errno_error(folder);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0077U) != 0) {
    return Error{Code::kConflict,
                 folder + ": is not a private folder of this user; remove it, then try again"};
  }
  return folder;
}

Result<std::string> lab_folder(const std::string& name) {
  REGATTA_TRY(folder, runtime_folder());
  return folder + "/" + name;
}

Result<os::UniqueFd> lock_labs() {
  return lock(LOCK_EX);
}

Result<os::UniqueFd> try_lock_labs() {
  return lock(LOCK_EX | LOCK_NB);
}

Status save_state(const LabState& state) {
  return os::write_file_atomically(state.info.folder + kStateFile, to_json(state).dump(1));
}

Result<LabState> load_state(const std::string& name) {
  REGATTA_TRY(folder, lab_folder(name));
  REGATTA_TRY(text, os::read_text_file(folder + kStateFile));
  auto state = JsonReader::parse(text, folder + kStateFile).and_then([](const JsonReader& json) {
    return json.finish(read_state(json));
  });
  if (!state) return Error{Code::kUnavailable, state.error().message};
  return state;
}

std::vector<std::string> state_names() {
  std::vector<std::string> names;
  const auto folder = runtime_folder();
  if (!folder) return names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(*folder, error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename());
  }
  return names;
}

bool holder_is_alive(const LabState& state) {
  return os::is_alive(state.info.holder, state.holder_start);
}

Result<LabState> living_state(const LabInfo& info) {
  auto state = load_state(info.name);
  if (state && state->info.holder == info.holder && holder_is_alive(*state)) return state;
  return gone(info.name);
}

nlohmann::json to_json(const LabInfo& info) {
  nlohmann::json servers = nlohmann::json::array();
  for (const LabServer& server : info.servers) {
    nlohmann::json devices = nlohmann::json::array();
    for (const LabDevice& device : server.devices)
      devices.push_back({{"cpu_share", device.cpu_share}, {"cgroup", device.cgroup}});
    servers.push_back(
        {{"name", server.name}, {"nic_addresses", server.nic_addresses}, {"devices", devices}});
  }
  return {{"name", info.name},
          {"holder", info.holder},
          {"user_namespace", info.user_namespace},
          {"fixed_speed", info.fixed_speed},
          {"speed_note", info.speed_note},
          {"cpu_share", info.cpu_share},
          {"servers", servers},
          {"folder", info.folder},
          {"up_seconds", info.up_seconds}};
}

LabInfo read_info(const JsonReader& json) {
  LabInfo info;
  json.read("name", info.name);
  json.read("holder", info.holder);
  json.read("user_namespace", info.user_namespace);
  json.read("fixed_speed", info.fixed_speed);
  json.read("speed_note", info.speed_note);
  json.read("cpu_share", info.cpu_share);
  for (const JsonReader& server : json.at("servers").items()) {
    LabServer& read = info.servers.emplace_back();
    server.read("name", read.name);
    server.read("nic_addresses", read.nic_addresses);
    for (const JsonReader& device : server.at("devices").items())
      read.devices.push_back(
          {device.at("cpu_share").as<double>(), device.at("cgroup").as<std::string>()});
  }
  json.read("folder", info.folder);
  json.read("up_seconds", info.up_seconds);
  return info;
}

}  // namespace regatta::lab
