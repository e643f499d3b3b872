#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

constexpr int kGroupsVersion = 1;

json to_json(const std::vector<TenantCgroup>& groups) {
  json list = json::array();
  for (const TenantCgroup& group : groups) {
    list.push_back({{"cgroup", os::to_string(group.cgroup)},
                    {"inode", group.inode},
                    {"tenant", group.tenant},
                    {"container", group.container}});
  }
  return {{"version", kGroupsVersion}, {"groups", list}};
}

Result<std::vector<TenantCgroup>> parse_groups(const std::string& text, const std::string& path) {
  REGATTA_TRY(root, JsonReader::parse(text, path));
  if (root.at("version").as<int>() != kGroupsVersion) root.fail("was written by another version");
  std::vector<TenantCgroup> groups;
  for (const JsonReader& item : root.at("groups").items()) {
    const auto name = item.at("cgroup").as<std::string>();
    TenantCgroup group{.inode = item.at("inode").as<std::uint64_t>(),
                       .tenant = item.at("tenant").as<std::string>(),
                       .container = item.at("container").as<std::string>()};
    REGATTA_TRY_DO(root.status());
    const auto cgroup = os::parse_cgroup_path(name);
    if (!cgroup) return Error{Code::kInvalidInput, path + ": " + cgroup.error().message};
    group.cgroup = *cgroup;
    group.folder = os::cgroup_folder(*cgroup).value_or("");
    groups.push_back(std::move(group));
  }
  return root.finish(std::move(groups));
}

// The folder's inode, 0 when it does not exist. A new cgroup gets a new number.
std::uint64_t inode_of(const std::string& folder) {
  struct stat status {};
  const bool is_there = ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return is_there ? status.st_ino : 0;
}

bool is_removed(const TenantCgroup& group) {
  return inode_of(group.folder) != group.inode;
}

std::vector<os::CgroupPath> cgroups_of(const ProcessStat& process) {
  const auto text = os::read_file(folder_of_living_thread(process) + "cgroup");
  return text ? os::parse_cgroups(*text) : std::vector<os::CgroupPath>();
}

bool is_in(pid_t pid, const os::CgroupPath& cgroup) {
  const auto process = read_process(pid);
  if (!process) return false;
  const auto path = os::path_in(cgroups_of(*process), cgroup.hierarchy);
  return path && os::is_within(*path, cgroup.path);
}

}  // namespace

Result<TenantCgroups> TenantCgroups::open(const std::string& folder) {
  TenantCgroups tenant_cgroups(folder + "/groups.json");
  const auto text = os::read_file(tenant_cgroups.path_);
  if (!text && text.error().code == Code::kNotFound) return tenant_cgroups;
  if (!text) {
    return Error{Code::kInvalidInput,
                 text.error().message + "; move it away, or make it readable for this user"};
  }
  auto groups = parse_groups(*text, tenant_cgroups.path_);
  if (!groups) {
    return Error{Code::kInvalidInput,
                 groups.error().message + "; move the file away and start anew"};
  }
  tenant_cgroups.groups_ = std::move(*groups);
  return tenant_cgroups;
}

bool TenantCgroups::has_group(std::string_view tenant) const {
  for (const TenantCgroup& group : groups_) {
    if (group.tenant == tenant) return true;
  }
  return false;
}

std::optional<std::string> TenantCgroups::tenant_of(
    const std::vector<os::CgroupPath>& cgroups) const {
  const TenantCgroup* innermost = nullptr;
  for (const TenantCgroup& group : groups_) {
    const auto path = os::path_in(cgroups, group.cgroup.hierarchy);
    if (!path || !os::is_within(*path, group.cgroup.path)) continue;
    if (innermost != nullptr && innermost->cgroup.path.size() >= group.cgroup.path.size()) continue;
    if (!is_removed(group)) innermost = &group;
  }
  if (innermost == nullptr) return std::nullopt;
  return innermost->tenant;
}

std::optional<std::string> TenantCgroups::tenant_of(const ProcessStat& process) const {
  if (groups_.empty()) return std::nullopt;
  return tenant_of(cgroups_of(process));
}

Status TenantCgroups::enroll(const os::CgroupPath& cgroup, const std::string& tenant,
                             const std::string& container, pid_t asker) {
  const std::string name = os::to_string(cgroup);
  const auto refuse = [&](const std::string& why) {
    return Error{Code::kInvalidInput, fmt::format("cgroup {}: {}", printable(name, 200), why)};
  };
  if (groups_.size() >= kTenantCgroupsMax) {
    return Error{Code::kExhausted,
                 fmt::format("the daemon knows {} cgroups, which is the most", kTenantCgroupsMax)};
  }
  REGATTA_TRY(folder, os::cgroup_folder(cgroup));
  const std::uint64_t inode = inode_of(folder);
  if (inode == 0) return refuse("there is none; make it first, or name its hierarchy");
  if (is_in(::getpid(), cgroup)) return refuse("the daemon is in it; give one of its own");
  if (is_in(asker, cgroup)) return refuse("who asks is in it; give one of its own");
  std::vector<TenantCgroup> groups;
  for (const TenantCgroup& group : groups_) {
    if (group.cgroup == cgroup && group.inode == inode) {
      return Error{Code::kConflict,
                   fmt::format("cgroup {}: is of tenant {} already", name, group.tenant)};
    }
    if (!(group.cgroup == cgroup)) groups.push_back(group);  // else it is of a removed cgroup
  }
  groups.push_back({cgroup, inode, tenant, container, folder});
  return replace(std::move(groups));
}

Result<std::size_t> TenantCgroups::leave(const std::function<bool(const TenantCgroup&)>& is_meant) {
  std::vector<TenantCgroup> left;
  for (const TenantCgroup& group : groups_) {
    if (!is_meant(group)) left.push_back(group);
  }
  const std::size_t count = groups_.size() - left.size();
  if (count != 0) REGATTA_TRY_DO(replace(std::move(left)));
  return count;
}

bool TenantCgroups::drop_removed() {
  if (std::none_of(groups_.begin(), groups_.end(), is_removed)) return false;
  const auto count = leave(is_removed);
  // A group that stays in the file after a failed write is removed by the next daemon.
  if (!count) os::log_warning("gpu daemon: " + count.error().message);
  return count && *count != 0;
}

Status TenantCgroups::replace(std::vector<TenantCgroup> groups) {
  REGATTA_TRY_DO(os::write_file_atomically(path_, to_json(groups).dump(2) + "\n"));
  groups_ = std::move(groups);
  return {};
}

}  // namespace regatta::sharing
