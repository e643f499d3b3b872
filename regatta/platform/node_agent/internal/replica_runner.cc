#include "regatta/platform/node_agent/internal/replica_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/container/rank_container.h"
#include "regatta/platform/node_agent/internal/metrics_file.h"
#include "regatta/platform/node_agent/internal/process_end.h"
#include "regatta/platform/node_agent/internal/replica_environment.h"
#include "regatta/platform/trainer/training_request.h"

namespace regatta::node_agent {
namespace {

constexpr int kAdoptRounds = 100;
constexpr double kMsPerSecond = 1000;
constexpr unsigned kFolderMode = 0711;  // ranks of any user reach their working folders

std::string key_text(const control::ReplicaKey& key) {
  return fmt::format("{}.{}.{}", key.job, key.attempt, key.replica);
}

// The hierarchy in which processes can be ended together: v2, or the freezer of v1.
std::string find_cgroup_root(const std::string& node) {
  const auto own = os::read_file("/proc/self/cgroup");
  if (!own) return "";
  const auto groups = os::parse_cgroups(*own);
  for (const char* hierarchy : {"", "freezer"}) {
    const auto path = os::path_in(groups, hierarchy);
    if (!path) continue;
    const auto folder = os::cgroup_folder({.hierarchy = hierarchy, .path = *path});
    if (!folder) continue;
    const char* control = *hierarchy == '\0' ? "/cgroup.kill" : "/freezer.state";
    std::string root = *folder + "/regatta-" + node;
    if (!os::make_folder(root)) continue;
    if (::access((root + control).c_str(), W_OK) == 0) return root;
    ::rmdir(root.c_str());
  }
  return "";
}

struct UserEntry {
  ProcessUser user;
  std::string home;
};

Result<UserEntry> find_user(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> text(16384);
  ::getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
  if (found == nullptr)
    return Error{Code::kNotFound, fmt::format("user '{}': this server does not know it; add the "
                                              "user here",
                                              printable(name, 60))};
  UserEntry user{.user = {.uid = entry.pw_uid, .gid = entry.pw_gid, .groups = {}},
                 .home = entry.pw_dir};
  int count = 64;
  user.user.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(name.c_str(), entry.pw_gid, user.user.groups.data(), &count) < 0)
    user.user.groups = {entry.pw_gid};
  else
    user.user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

// The network interface with the address, which may be a name; "": not known.
std::string interface_of(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return "";
  const std::uint32_t number =
      ntohl(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr);
  ::freeaddrinfo(found);
  const auto names = os::interfaces_by_address();
  const auto name = names.find(number);
  return name == names.end() ? "" : name->second;
}

// With the slash at its end; "" where the path has none.
std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

constexpr const char* kCgroupMounts = "/sys/fs/cgroup";

// The name of the containers of a replica's ranks, and of their groups, without the rank.
std::string container_prefix(const std::string& node, const control::ReplicaKey& key) {
  return "regatta-" + node + "-" + key_text(key);
}

// Groups of containers whose making was ended before runc noted them.
void remove_container_groups(const std::string& folder, const std::string& prefix) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(prefix + "-")) continue;
    kill_cgroup(entry.path().string());
    static_cast<void>(os::remove_cgroup(entry.path().string()));
  }
}

// Containers that runc was ended before it removed them, with their groups in each hierarchy.
void remove_containers(const std::string& run, const std::string& prefix) {
  std::error_code error;
  if (!std::filesystem::exists(container::request_path(run), error)) return;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/runc", error)) {
    const auto pid = os::spawn(
        {"runc", "--root", run + "/runc", "delete", "--force", entry.path().filename().string()},
        {});
    if (pid) static_cast<void>(os::wait_for(*pid, Seconds{5}));
  }
  remove_container_groups(kCgroupMounts, prefix);
  for (const auto& hierarchy : std::filesystem::directory_iterator(kCgroupMounts, error))
    if (hierarchy.is_directory(error) && !hierarchy.is_symlink(error))
      remove_container_groups(hierarchy.path().string(), prefix);
}

// As an earlier agent may have written them.
std::uint32_t devices_of_run(const std::string& run) {
  const auto text = read_small_file(spec_path(run));
  const auto spec = text ? decode_replica_spec(*text) : text.error();
  std::uint32_t devices = 0;
  if (!spec) return devices;
  for (const auto& [name, value] : spec->environment)
    if (name == kDevicesVariable)
      for (const std::string& device : split(value, ','))
        devices |= std::uint32_t{1} << parse_number<unsigned>(device).value_or(31) % 32;
  return devices;
}

bool kill_and_wait(const std::string& cgroup, const std::string& run) {
  const std::string mark = std::string(kRunVariable) + "=" + run;
  for (int round = 0; round < 200; ++round) {
    kill_cgroup(cgroup);
    const std::vector<pid_t> left = processes_with_variable(mark);
    for (const pid_t pid : left)
      ::kill(pid, SIGKILL);
    if (left.empty() && cgroup_members(cgroup).empty()) return true;
    os::sleep_for(Seconds{0.01});
  }
  return false;
}

}  // namespace

Result<ReplicaRunner> ReplicaRunner::create(RunnerOptions options) {
  ReplicaRunner runner(std::move(options));
  REGATTA_TRY_DO(os::make_folder(runner.options_.state_folder + "/runs", kFolderMode));
  if (runner.options_.uses_cgroups) runner.cgroup_root_ = find_cgroup_root(runner.options_.node);
  runner.events_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!runner.events_) return os::errno_error("epoll");
  return runner;
}

std::string ReplicaRunner::run_folder(const control::ReplicaKey& key) const {
  return options_.state_folder + "/runs/" + key_text(key);
}

std::string ReplicaRunner::lease_path() const {
  return options_.state_folder + "/lease";
}

Result<ReplicaSpec> ReplicaRunner::spec_for(const control::ReplicaOrder& order,
                                            const std::string& run) {
  EnvironmentFacts facts{.user = order.user,
                         .home = "/",
                         .node = options_.node,
                         .device_type = options_.device_type,
                         .run = run,
                         .address = options_.address,
                         .interface = interface_of(options_.address),
                         .leaf = options_.leaf,
                         .group = options_.group,
                         .host_file = order.hosts.empty() ? "" : run + "/hosts"};
  ReplicaSpec spec;
  if (!order.user.empty()) {
    REGATTA_TRY(user, find_user(order.user));
    facts.home = user.home;
    if (::geteuid() == 0) {
      spec.user = std::move(user.user);
    } else if (::geteuid() != user.user.uid) {
      return Error{Code::kUnsupported,
                   fmt::format("user '{}': the agent runs as another one; start it as root",
                               printable(order.user, 60))};
    }
  }
  spec.command = order.command;
  if (spec.command.front() == trainer::kTrainerProgram)
    spec.command.front() = folder_of(options_.supervisor) + spec.command.front();
  spec.environment = replica_environment(order, facts);
  spec.working_folder = order.working_folder;
  if (spec.working_folder.empty()) {
    spec.working_folder = run + "/work";
    REGATTA_TRY_DO(os::make_folder(spec.working_folder, 0700));
    if (spec.user && ::chown(spec.working_folder.c_str(), spec.user->uid, spec.user->gid) != 0)
      return os::errno_error(spec.working_folder);
  }
  const ProcessUser* owner = spec.user ? &*spec.user : nullptr;
  if (!make_metrics_file(run, owner ? &owner->uid : nullptr, owner ? &owner->gid : nullptr))
    return os::errno_error(metrics_path(run));
  spec.first_rank = order.first_rank;
  spec.ranks = order.ranks;
  spec.log_bytes_max = options_.log_bytes_max;
  spec.grace_ms = order.stop_grace.value < 0 ? options_.grace_ms
                                             : static_cast<int>(order.stop_grace.value * 1000);
  spec.stop_signal = order.stop_signal;
  spec.lease_ms = std::isinf(order.lease.value)
                      ? 0
                      : static_cast<std::int64_t>(order.lease.value * kMsPerSecond);
  if (const std::string hosts = host_list(order); !hosts.empty())
    REGATTA_TRY_DO(os::write_file(facts.host_file, hosts));
  const bool is_sliced = !order.slice.is_whole() && options_.slices.are_enforced();
  if (is_sliced && !order.container.path.empty())
    return Error{Code::kUnsupported,
                 "image: a part of a device cannot be enforced in a container; leave the image or "
                 "the share out"};
  if (!order.container.path.empty()) REGATTA_TRY_DO(put_into_container(order, run, spec));
  if (!cgroup_root_.empty()) {
    spec.cgroup = cgroup_root_ + "/" + key_text(order.key);
    if (!os::make_folder(spec.cgroup)) spec.cgroup.clear();
  }
  if (is_sliced) {
    REGATTA_TRY_DO(options_.slices.enroll(order, spec.cgroup));
    options_.slices.add_variables(spec.environment);
  }
  return spec;
}

// The rank becomes a program of root that makes the container: nothing of the job's is in its
// arguments or variables.
Status ReplicaRunner::put_into_container(const control::ReplicaOrder& order, const std::string& run,
                                         ReplicaSpec& spec) const {
  if (::geteuid() != 0)
    return Error{Code::kUnsupported,
                 "image: the agent of this node is not root and starts no containers; leave the "
                 "image out, or run the agent as root"};
  container::RankContainer rank{.image = order.container.path,
                                .command = {order.command.begin() + 1, order.command.end()},
                                .environment = spec.environment,
                                .working_folder = spec.working_folder,
                                .is_read_only = order.container.is_read_only,
                                .mounts = order.container.mounts,
                                .own_mounts = {metrics_path(run)},
                                .cdi_devices = order.container.cdi_devices,
                                .run = run,
                                .store = options_.state_folder + "/images",
                                .name = container_prefix(options_.node, order.key)};
  if (rank.command.empty()) return Error{Code::kUnsupported, "command: it is empty"};
  (order.working_folder.empty() ? rank.own_mounts : rank.mounts).push_back(spec.working_folder);
  if (!order.hosts.empty()) rank.own_mounts.push_back(run + "/hosts");
  if (options_.device_type != "cpu" && options_.device_type != "emulated")
    for (std::uint32_t devices = order.devices; devices != 0; devices &= devices - 1)
      rank.cdi_devices.push_back("nvidia.com/gpu=" + std::to_string(std::countr_zero(devices)));
  if (spec.user) {
    rank.uid = spec.user->uid;
    rank.gid = spec.user->gid;
    rank.groups.assign(spec.user->groups.begin(), spec.user->groups.end());
  }
  REGATTA_TRY_DO(write_durably(container::request_path(run), container::encode(rank)));
  spec.command = {folder_of(options_.supervisor) + container::kContainerProgram, run};
  spec.environment = {{kRunVariable, run}, {kDevicesVariable, device_list(order.devices)}};
  spec.working_folder = "/";
  spec.user.reset();
  return {};
}

Status ReplicaRunner::start(const control::ReplicaOrder& order) {
  const std::string run = run_folder(order.key);
  REGATTA_TRY_DO(os::make_folder(run, kFolderMode));
  REGATTA_TRY(spec, spec_for(order, run));
  REGATTA_TRY_DO(os::write_file(spec_path(run), encode(spec)));
  const os::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const os::SpawnOptions spawning{.environment = {},
                                  .stdin_fd = null.get(),
                                  .stdout_fd = null.get(),
                                  .stderr_fd = null.get(),
                                  .open_fds = {},
                                  .die_with_parent = false,
                                  .own_group = false,
                                  .namespaces = {},
                                  .cgroup_procs = {},
                                  .working_folder = "/"};
  const auto pid = os::spawn({options_.supervisor, run, lease_path()}, spawning);
  if (!pid) return Error{Code::kUnavailable, pid.error().message};
  // It is a child that has not been waited for: its number belongs to it.
  auto pidfd = os::open_pidfd(*pid);
  const Status watched = pidfd ? watch(order.key, *pid, std::move(*pidfd)) : pidfd.error();
  if (watched) return {};
  ::kill(*pid, SIGKILL);
  ::waitpid(*pid, nullptr, 0);
  close_run(order.key, watched.error().message);
  return Error{Code::kUnavailable, watched.error().message};
}

Status ReplicaRunner::watch(const control::ReplicaKey& key, pid_t pid, os::UniqueFd pidfd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0)
    return os::errno_error("epoll");
  const std::string cgroup = cgroup_root_.empty() ? "" : cgroup_root_ + "/" + key_text(key);
  watched_[key] = {.pid = pid,
                   .pidfd = std::move(pidfd),
                   .cgroup = cgroup,
                   .devices = devices_of_run(run_folder(key))};
  return {};
}

std::vector<MeasuredReplica> ReplicaRunner::measured() const {
  std::vector<MeasuredReplica> replicas;
  for (const auto& [key, watched] : watched_)
    replicas.push_back({.key = key,
                        .devices = watched.devices,
                        .cgroup = watched.cgroup,
                        .supervisor = watched.pid});
  return replicas;
}

Result<std::optional<ReplicaExit>> ReplicaRunner::adopt(const control::ReplicaKey& key) {
  const std::string run = run_folder(key);
  for (int round = 0; round < kAdoptRounds; ++round) {
    REGATTA_TRY(holder, RunLock::holder(run));
    if (!holder)
      return std::optional(close_run(key, "the agent ended before the replica was started"));
    auto pidfd = os::open_pidfd(*holder);
    // The number may have been used again between the two looks, but not by a holder of the lock.
    REGATTA_TRY(again, RunLock::holder(run));
    if (pidfd && again == holder) {
      REGATTA_TRY_DO(watch(key, *holder, std::move(*pidfd)));
      return std::optional<ReplicaExit>();
    }
    os::sleep_for(Seconds{0.005});
  }
  return Error{Code::kUnavailable, run + ": its supervisor cannot be watched"};
}

ReplicaExit ReplicaRunner::close_after_boot(const control::ReplicaKey& key) {
  return close_run(key, "the server was started anew");
}

// No supervisor holds the lock. An exit that it noted counts; else processes that may be left are
// ended, and no supervisor that is late can start.
ReplicaExit ReplicaRunner::close_run(const control::ReplicaKey& key, const std::string& reason) {
  const std::string run = run_folder(key);
  static_cast<void>(os::make_folder(run, kFolderMode));
  const auto lock = RunLock::take(run);
  const auto noted = read_exit(run);
  const std::string cgroup = cgroup_root_.empty() ? "" : cgroup_root_ + "/" + key_text(key);
  ReplicaExit exit{
      .exit_status = 0, .signal = 0, .is_node_fault = true, .running_ms = 0, .reason = reason};
  if (noted && *noted) {
    exit = **noted;
  } else {
    if (!kill_and_wait(cgroup, run)) os::log_error(run + ": processes of it cannot be ended");
    if (const Status written = write_durably(exit_path(run), encode(exit)); !written)
      os::log_error(written.error().message);
  }
  // The GPU daemon ends the tenant of a cgroup that is gone; asked, it does so at once.
  if (options_.slices.are_enforced()) options_.slices.leave(key);
  remove_containers(run, container_prefix(options_.node, key));
  if (!cgroup.empty()) static_cast<void>(os::remove_cgroup(cgroup));
  return exit;
}

void ReplicaRunner::signal(const control::ReplicaKey& key, int signal) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  ::syscall(SYS_pidfd_send_signal, found->second.pidfd.get(), signal, nullptr, 0);
}

void ReplicaRunner::stop(const control::ReplicaKey& key) {
  signal(key, SIGTERM);
}

void ReplicaRunner::kill(const control::ReplicaKey& key) {
  signal(key, SIGUSR1);
  // Also where the supervisor is stopped, or does not come to run.
  const auto found = watched_.find(key);
  if (found != watched_.end()) kill_cgroup(found->second.cgroup);
}

std::vector<EndedReplica> ReplicaRunner::take_ended() {
  std::vector<EndedReplica> ended;
  for (auto each = watched_.begin(); each != watched_.end();) {
    epoll_event event{};
    pollfd state{.fd = each->second.pidfd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&state, 1, 0) != 1) {
      ++each;
      continue;
    }
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, each->second.pidfd.get(), &event);
    ::waitpid(each->second.pid, nullptr, WNOHANG);  // fails for one that an earlier agent started
    ended.push_back({each->first, close_run(each->first, "its supervisor was ended")});
    each = watched_.erase(each);
  }
  return ended;
}

void ReplicaRunner::trim_files() const {
  for (const auto& [key, watched] : watched_)
    trim_metrics(run_folder(key));
}

void ReplicaRunner::set_known(const std::vector<control::ReplicaKey>& keys) {
  std::set<std::string> known;
  for (const control::ReplicaKey& key : keys)
    known.insert(run_folder(key));
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> others;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.state_folder + "/runs", error))
    if (!known.contains(entry.path().string()))
      others.emplace_back(entry.last_write_time(error), entry.path().string());
  std::sort(others.begin(), others.end());
  for (auto& [time, folder] : others)
    forgotten_.push_back(std::move(folder));
  prune();
}

void ReplicaRunner::forget(const control::ReplicaKey& key) {
  forgotten_.push_back(run_folder(key));
  prune();
}

void ReplicaRunner::prune() {
  const auto is_old = [this](const std::string& folder) {
    std::error_code error;
    const auto written = std::filesystem::last_write_time(folder, error);
    return !error &&
           std::filesystem::file_time_type::clock::now() - written > options_.runs_kept_for;
  };
  while (forgotten_.size() > options_.runs_kept ||
         (!forgotten_.empty() && is_old(forgotten_.front()))) {
    static_cast<void>(os::remove_tree(forgotten_.front()));
    forgotten_.pop_front();
  }
}

}  // namespace regatta::node_agent
