#include "regatta/app/cli/internal/local_cluster.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::cli {
namespace {

constexpr Seconds kLook{0.02};
constexpr Seconds kGoneWithin{5};  // after SIGKILL
constexpr const char* kSupervisor = "regatta-supervisor";

std::string record_path(const std::string& folder) {
  return folder + "/processes.json";
}

// Strings of /proc/PID/FILE, which end with a byte 0 each; none when the process is gone.
std::vector<std::string> strings_of(pid_t pid, const char* file) {
  const auto text = os::read_file(fmt::format("/proc/{}/{}", pid, file));
  return text ? split(*text, '\0') : std::vector<std::string>();
}

bool is_supervisor_below(pid_t pid, const std::string& below) {
  const std::vector<std::string> words = strings_of(pid, "cmdline");
  return words.size() > 1 && words[0].ends_with(kSupervisor) && words[1].starts_with(below);
}

// Ranks know their run's folder from the variable REGATTA_RUN, and what they start inherits it.
bool is_rank_below(pid_t pid, const std::string& below) {
  const std::string mark = "REGATTA_RUN=" + below;
  for (const std::string& variable : strings_of(pid, "environ"))
    if (variable.starts_with(mark)) return true;
  return false;
}

bool wait_until_gone(const LocalProcess& process, Seconds limit) {
  const Seconds end = os::monotonic_now() + limit;
  while (os::is_alive(process.pid, process.start_time)) {
    if (os::monotonic_now() > end) return false;
    os::sleep_for(kLook);
  }
  return true;
}

std::string last_line(const std::string& path) {
  const auto text = os::read_file(path);
  if (!text) return "";
  const std::vector<std::string> lines = split(trim(*text), '\n');
  return lines.back();
}

}  // namespace

const LocalProcess* LocalCluster::find(const std::string& name) const {
  for (const LocalProcess& process : processes)
    if (process.name == name) return &process;
  return nullptr;
}

bool LocalCluster::is_running(const std::string& name) const {
  const LocalProcess* process = find(name);
  return process != nullptr && os::is_alive(process->pid, process->start_time);
}

std::string default_state_folder() {
  const char* folder = std::getenv("XDG_STATE_HOME");
  if (folder != nullptr && *folder == '/') return std::string(folder) + "/regatta";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.local/state/regatta";
}

std::string local_node_name(const std::string& state, int index) {
  const bool is_usual = std::getenv("XDG_STATE_HOME") == nullptr && state == default_state_folder();
  if (is_usual) return fmt::format("node-{}", index);
  return fmt::format("node-{:04x}-{}", fnv1a(state) & 0xffff, index);
}

Result<os::UniqueFd> hold_state_folder(const std::string& folder) {
  REGATTA_TRY_DO(os::make_folder(folder, 0700));
  const std::string path = folder + "/lock";
  os::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return os::errno_error(path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{Code::kConflict,
                 folder +
                     ": another regatta up, down or join works in this folder; wait for its "
                     "end"};
  return fd;
}

Result<LocalCluster> load_local_cluster(const std::string& folder) {
  const auto text = os::read_text_file(record_path(folder));
  if (!text && text.error().code == Code::kNotFound) return LocalCluster();
  if (!text) return text.error();
  REGATTA_TRY(root, JsonReader::parse(*text, record_path(folder)));
  LocalCluster cluster;
  root.allow({"url", "devices", "device_memory", "gpu_daemon", "processes", "cgroups"});
  root.read("devices", cluster.devices, IntRange{.low = -1});
  root.read("url", cluster.url);
  root.read_if("device_memory", cluster.device_memory);
  root.read_if("gpu_daemon", cluster.gpu_daemon);
  root.read("cgroups", cluster.cgroups);
  for (const JsonReader& item : root.at("processes").items()) {
    LocalProcess process;
    item.read("name", process.name);
    item.read("pid", process.pid, IntRange{.low = 1});
    item.read("start_time", process.start_time);
    cluster.processes.push_back(std::move(process));
  }
  return root.finish(std::move(cluster));
}

Status save_local_cluster(const std::string& folder, const LocalCluster& cluster) {
  nlohmann::json processes = nlohmann::json::array();
  for (const LocalProcess& process : cluster.processes)
    processes.push_back(
        {{"name", process.name}, {"pid", process.pid}, {"start_time", process.start_time}});
  const nlohmann::json object = {{"url", cluster.url},
                                 {"devices", cluster.devices},
                                 {"device_memory", cluster.device_memory},
                                 {"gpu_daemon", cluster.gpu_daemon},
                                 {"processes", processes},
                                 {"cgroups", cluster.cgroups}};
  return write_secret_file(record_path(folder), object.dump(2) + "\n");
}

Status start_local_process(const std::string& folder, const std::string& name,
                           const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment, LocalCluster& cluster) {
  const std::string log = folder + "/" + name + ".log";
  const os::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const os::UniqueFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!null || !out) return os::errno_error(log);
  REGATTA_TRY(pid, os::spawn(argv, {.environment = environment,
                                    .stdin_fd = null.get(),
                                    .stdout_fd = out.get(),
                                    .stderr_fd = out.get(),
                                    .open_fds = {},
                                    .die_with_parent = false,
                                    .own_group = true,
                                    .namespaces = {},
                                    .cgroup_procs = {},
                                    .working_folder = folder}));
  // It is a child that has not been waited for, so /proc has it even when it has ended.
  REGATTA_TRY(entry, os::read_process(pid));
  std::erase_if(cluster.processes, [&](const LocalProcess& each) { return each.name == name; });
  cluster.processes.push_back({.name = name, .pid = pid, .start_time = entry.start_time});
  return save_local_cluster(folder, cluster);
}

Status check_local_process(const std::string& folder, const std::string& name,
                           const LocalCluster& cluster) {
  if (cluster.is_running(name)) return {};
  const std::string log = folder + "/" + name + ".log";
  return Error{Code::kUnavailable,
               fmt::format("{} has ended: {}; see {}", name, printable(last_line(log), 300), log)};
}

std::vector<std::string> cgroups_of_agent(const std::string& name) {
  std::vector<std::string> folders;
  const auto own = os::read_file("/proc/self/cgroup");
  if (!own) return folders;
  const auto groups = os::parse_cgroups(*own);
  for (const char* hierarchy : {"", "freezer"}) {
    const auto path = os::path_in(groups, hierarchy);
    if (!path) continue;
    const auto folder = os::cgroup_folder({.hierarchy = hierarchy, .path = *path});
    if (folder) folders.push_back(*folder + "/regatta-" + name);
  }
  return folders;
}

Result<bool> end_local_process(const LocalProcess& process, Seconds grace) {
  // The descriptor first, the look at the start time after it: the signal reaches that process or
  // none.
  const auto pidfd = os::open_pidfd(process.pid);
  if (!pidfd || !os::is_alive(process.pid, process.start_time)) return false;
  ::syscall(SYS_pidfd_send_signal, pidfd->get(), SIGTERM, nullptr, 0);
  if (wait_until_gone(process, grace)) return true;
  ::syscall(SYS_pidfd_send_signal, pidfd->get(), SIGKILL, nullptr, 0);
  if (wait_until_gone(process, kGoneWithin)) return true;
  return Error{Code::kTimeout,
               fmt::format("{} (process {}) does not end", process.name, process.pid)};
}

Result<int> end_replicas(const std::string& folder) {
  const std::string below = folder + "/";
  const Seconds end = os::monotonic_now() + kGoneWithin;
  int supervisors = 0;
  for (bool is_first = true;; is_first = false) {
    int left = 0;
    for (const os::ProcessEntry& process : os::list_processes()) {
      if (process.pid == ::getpid() || process.state == 'Z') continue;
      if (is_supervisor_below(process.pid, below)) {
        // It ends its ranks, those in their cgroup too, and notes that.
        static_cast<void>(os::send_signal(process.pid, SIGUSR1).has_value());
        ++left;
        if (is_first) ++supervisors;
      } else if (!is_first && is_rank_below(process.pid, below)) {
        static_cast<void>(os::send_signal(process.pid, SIGKILL).has_value());
        ++left;
      }
    }
    if (left == 0 && !is_first) return supervisors;
    if (os::monotonic_now() > end)
      return Error{Code::kTimeout,
                   fmt::format("{}: {} processes of jobs do not end", folder, left)};
    os::sleep_for(kLook);
  }
}

}  // namespace regatta::cli
