#include "regatta/network/lab/lab.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/network/lab/internal/blueprint.h"
#include "regatta/network/lab/internal/holder.h"
#include "regatta/network/lab/internal/processes.h"
#include "regatta/network/lab/internal/remove.h"
#include "regatta/network/lab/internal/state.h"

namespace regatta::lab {
namespace {

std::vector<std::string> names_of(const std::vector<LabInfo>& labs) {
  std::vector<std::string> names;
  names.reserve(labs.size());
  for (const LabInfo& lab : labs)
    names.push_back(lab.name);
  return names;
}

}  // namespace

Result<LabInfo> up(const topo::Cluster& cluster, const UpOptions& options) {
  const Seconds start = os::monotonic_now();
  REGATTA_TRY(blueprint, make_blueprint(cluster, os::usable_cores()));
  REGATTA_TRY(lock, lock_labs());
  reap_dead_labs();
  REGATTA_TRY(folder, lab_folder(blueprint.name));
  if (const auto old = load_state(blueprint.name); old) {
    return Error{Code::kConflict,
                 fmt::format("lab {}: is up already (process {}); take it down first with "
                             "regatta lab down {}",
                             old->info.name, old->info.holder, old->info.name)};
  }
  REGATTA_TRY_DO(os::make_folder(folder, 0700));
  auto info = start_holder(blueprint, folder, options);
  if (!info) {
    const auto state = load_state(blueprint.name);
    const Status removed = state ? remove_lab(*state) : os::remove_tree(folder);
    if (!removed) os::log_warning("after a failed lab up: " + removed.error().message);
    return info.error();
  }
  info->up_seconds = (os::monotonic_now() - start).value;
  return info;
}

Status down(const std::string& name) {
  REGATTA_TRY(lock, lock_labs());
  const auto state = load_state(name);
  if (state) return remove_lab(*state);
  if (state.error().code != Code::kNotFound) {
    REGATTA_TRY(folder, lab_folder(name));
    return os::remove_tree(folder);
  }
  const std::vector<LabInfo> labs = list();
  return Error{
      Code::kNotFound,
      fmt::format("lab {}: not up; {}", name,
                  labs.empty() ? "no lab is up" : "up now: " + join(names_of(labs), ", "))};
}

std::vector<LabInfo> list() {
  if (const auto lock = try_lock_labs(); lock) reap_dead_labs();
  std::vector<LabInfo> labs;
  for (const std::string& name : state_names()) {
    const auto state = load_state(name);
    if (state && state->ready && holder_is_alive(*state)) labs.push_back(state->info);
  }
  std::sort(labs.begin(), labs.end(),
            [](const LabInfo& a, const LabInfo& b) { return a.name < b.name; });
  return labs;
}

Result<LabInfo> find(const std::string& name) {
  const auto labs = list();
  for (const LabInfo& lab : labs) {
    if (lab.name == name) return lab;
  }
  return Error{
      Code::kNotFound,
      fmt::format("lab {}: not up; start it with regatta lab up CLUSTER{}", name,
                  labs.empty() ? "" : ", or name one that is up: " + join(names_of(labs), ", "))};
}

Error gone(const std::string& name) {
  return {Code::kUnavailable,
          fmt::format("lab {}: is gone; bring it up again with regatta lab up CLUSTER", name)};
}

Status check_same_cluster(const LabInfo& lab, const topo::Cluster& cluster) {
  REGATTA_TRY(blueprint, make_blueprint(cluster, os::usable_cores()));
  REGATTA_TRY(state, living_state(lab));
  if (state.description == blueprint.description) return {};
  return Error{Code::kConflict,
               fmt::format("lab {}: was built from another description of the cluster; take it "
                           "down first with regatta lab down {}",
                           lab.name, lab.name)};
}

Result<std::vector<LabProcess>> processes(const LabInfo& lab) {
  REGATTA_TRY(state, living_state(lab));
  return find_processes(state);
}

}  // namespace regatta::lab
