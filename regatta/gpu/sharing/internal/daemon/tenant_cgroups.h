// sharing/internal/daemon/tenant_cgroups.h: which cgroups belong to which tenant. A process in such
// a group, or below it, is the tenant's, whatever it inherited and whatever its environment says;
// it cannot leave without the right to write above the group. Kept in DIR/groups.json
// (docs/formats/ gpu_state.md), which is written before an order is answered.
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
  std::uint64_t inode = 0;  // of its folder: one that is made anew under the path is another
  std::string tenant;
  std::string container;  // what the runtime calls it; may be ""
  std::string folder;     // not written down
};

class TenantCgroups {
 public:
  // What an earlier daemon wrote into the folder. kInvalidInput when the file is damaged.
  static Result<TenantCgroups> open(const std::string& folder);

  const std::vector<TenantCgroup>& groups() const { return groups_; }
  bool has_group(std::string_view tenant) const;
  // The tenant of the innermost group that a process with these cgroups is in.
  std::optional<std::string> tenant_of(const std::vector<os::CgroupPath>& cgroups) const;
  // The same of a living process; nothing when there are no groups, without a look at it.
  std::optional<std::string> tenant_of(pid_t pid) const;

  // kInvalidInput when there is no such cgroup, or when this process or `asker` is in it;
  // kConflict when it is a tenant's already.
  Status enroll(const os::CgroupPath& cgroup, const std::string& tenant,
                const std::string& container, pid_t asker);
  // Ends the groups for which `is_meant`; returns how many there were. The processes in them stay
  // the tenant's while they live; no new ones become so.
  Result<std::size_t> leave(const std::function<bool(const TenantCgroup&)>& is_meant);
  // Ends those whose cgroup was removed; whether there were any.
  bool drop_removed();

 private:
  explicit TenantCgroups(std::string path) : path_(std::move(path)) {}
  Status replace(std::vector<TenantCgroup> groups);

  std::string path_;
  std::vector<TenantCgroup> groups_;
};

}  // namespace regatta::sharing
