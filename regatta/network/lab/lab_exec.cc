// Starting programs inside the lab, and handing its namespaces out.
#include <string>

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/lab/internal/state.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {
namespace {

Result<int> holder_fd_of(const LabState& state, const std::string& node) {
  std::vector<std::string> names;
  for (const NodeState& entry : state.nodes) {
    if (entry.name == node) return entry.holder_fd;
    names.push_back(entry.name);
  }
  return Error{Code::kNotFound, fmt::format("node {}: not in lab {}, which has {}", node,
                                            state.info.name, join(names, ", "))};
}

Result<os::UniqueFd> open_file(const std::string& path, int flags) {
  os::UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file) return os::errno_error(path);
  return file;
}

}  // namespace

Result<pid_t> spawn(const LabInfo& lab, const std::string& node,
                    const std::vector<std::string>& argv, const ExecOptions& options) {
  REGATTA_TRY(state, living_state(lab));
  REGATTA_TRY(holder_fd, holder_fd_of(state, node));
  const std::string holder = fmt::format("/proc/{}", lab.holder);
  REGATTA_TRY(network, open_file(fmt::format("{}/fd/{}", holder, holder_fd), O_RDONLY));
  os::SpawnOptions spawn_options;
  os::UniqueFd user;
  if (lab.user_namespace) {
    // First the user namespace: its root may then enter what belongs to it.
    REGATTA_TRY(opened, open_file(holder + "/ns/user", O_RDONLY));
    user = std::move(opened);
    spawn_options.namespaces.push_back(user.get());
  }
  spawn_options.namespaces.push_back(network.get());
  os::UniqueFd group;
  if (state.join_cgroup) {
    REGATTA_TRY(opened, open_file(state.cgroup + "/cgroup.procs", O_WRONLY));
    group = std::move(opened);
    spawn_options.cgroup_procs.push_back(group.get());
  }
  spawn_options.environment = options.environment;
  spawn_options.stdin_fd = options.stdin_fd;
  spawn_options.stdout_fd = options.stdout_fd;
  spawn_options.stderr_fd = options.stderr_fd;
  spawn_options.die_with_parent = options.die_with_parent;
  return os::spawn(argv, spawn_options);
}

Result<os::UniqueFd> open_network(const LabInfo& lab, const std::string& node) {
  REGATTA_TRY(state, living_state(lab));
  REGATTA_TRY(holder_fd, holder_fd_of(state, node));
  return open_file(fmt::format("/proc/{}/fd/{}", lab.holder, holder_fd), O_RDONLY);
}

Status enter_user_namespace(const LabInfo& lab) {
  if (!lab.user_namespace) return {};
  REGATTA_TRY(user, open_file(fmt::format("/proc/{}/ns/user", lab.holder), O_RDONLY));
  if (::setns(user.get(), CLONE_NEWUSER) != 0) return os::errno_error("lab " + lab.name);
  return {};
}

}  // namespace regatta::lab
