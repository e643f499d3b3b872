// sharing/internal/daemon/tenant_cgroups.h: which cgroups belong to which tenant. A process in such
// a group, or below it, belongs to the tenant, whatever it inherited and whatever its environment
// says; it cannot leave without the right to write above the group. Kept in DIR/groups.json
// (docs/formats/gpu_state.md), which is written before a request is answered.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"

namespace regatta::sharing {

constexpr std::size_t kTenantCgroupsMax = 4096;

struct TenantCgroup {
  os::CgroupPath cgroup;
  std::uint64_t inode = 0;  // of its folder; a group that is made anew has another
  std::string tenant;
  std::string container;  // the runtime's name for it; may be ""
  std::string folder;     // not stored
};

class TenantCgroups {
 public:
  // Reads the groups that an earlier daemon wrote into the folder. kInvalidInput when the file is
  // damaged.
  static Result<TenantCgroups> open(const std::string& folder);

  const std::vector<TenantCgroup>& groups() const { return groups_; }
  bool has_group(std::string_view tenant) const;
  // The tenant of the innermost group that a process with these cgroups is in.
  std::optional<std::string> tenant_of(const std::vector<os::CgroupPath>& cgroups) const;
  // The tenant of a living process, whose cgroups are not read when there are no groups.
  std::optional<std::string> tenant_of(const ProcessStat& process) const;

  // kInvalidInput when there is no such cgroup, or when this process or `asker` is in it;
  // kConflict when it is a tenant's already.
  Status enroll(const os::CgroupPath& cgroup, const std::string& tenant,
                const std::string& container, pid_t asker);
  // Removes the groups for which `is_meant`; returns their number. Processes in them stay the
  // tenant's while they live; new ones do not join.
  Result<std::size_t> leave(const std::function<bool(const TenantCgroup&)>& is_meant);
  // Removes groups whose cgroup no longer exists; true when there were any.
  bool drop_removed();

 private:
  explicit TenantCgroups(std::string path) : path_(std::move(path)) {}
  Status replace(std::vector<TenantCgroup> groups);

  std::string path_;
  std::vector<TenantCgroup> groups_;
};

}  // namespace regatta::sharing
