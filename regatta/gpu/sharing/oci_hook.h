// sharing/oci_hook.h: what `regatta gpu oci-hook` makes of a container: the order that gives its
// cgroup to a tenant. Source: Open Container Initiative, Runtime Specification 1.0 (state, hooks,
// annotations).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/slice.h"

namespace regatta::sharing {

inline constexpr const char* kAnnotationPrefix = "regatta.gpu.";

// What the runtime writes to a hook's standard input.
struct ContainerState {
  std::string id;
  pid_t pid = 0;  // 0 when it has ended
  std::string bundle;
};
Result<ContainerState> parse_container_state(std::string_view text);

// The annotations in the text of a bundle's config.json. `path` is named in messages.
using Annotations = std::map<std::string, std::string>;
Result<Annotations> parse_annotations(std::string_view config, const std::string& path);

// What the annotations `regatta.gpu.*` say.
struct ContainerRequest {
  std::string tenant;  // of the container, or "regatta.gpu.name"
  bool is_named = false;
  GpuSlice slice;
};
// kInvalidInput names the annotation; one that is not known is refused, since a limit that was
// misspelt would be none.
Result<ContainerRequest> parse_container_request(const std::string& container,
                                                 const Annotations& annotations);

// The container's name, or where that is no tenant's a part of it with a hash.
std::string tenant_name_of(const std::string& container);

// The cgroup that a container has for itself: one in which the runtime's processes are not. cgroup
// v2 comes first. kInvalidInput when it has none.
Result<os::CgroupPath> own_cgroup(const std::string& container,
                                  const std::vector<os::CgroupPath>& of_container,
                                  const std::vector<os::CgroupPath>& of_runtime);

// Reads all that belongs to the container: the order for the daemon. Limits in `most` hold where
// the annotations say nothing, and are the most that they may say. `proc`: where processes are.
Result<nlohmann::json> enroll_request(const ContainerState& container, const GpuSlice& most,
                                      const std::string& proc = "/proc");

}  // namespace regatta::sharing
