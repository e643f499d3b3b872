// sharing/oci_hook.h: `regatta gpu oci-hook`: the request that gives the cgroup of a container to a
// tenant. Source: Open Container Initiative, Runtime Specification 1.0 (state, hooks, annotations).
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

// The state that the runtime writes to a hook's standard input.
struct ContainerState {
  std::string id;
  pid_t pid = 0;  // 0 when it has ended
  std::string bundle;
};
Result<ContainerState> parse_container_state(std::string_view text);

// The annotations in the text of a bundle's config.json. `path` is named in messages.
using Annotations = std::map<std::string, std::string>;
Result<Annotations> parse_annotations(std::string_view config, const std::string& path);

// The request in the annotations `regatta.gpu.*`.
struct ContainerRequest {
  std::string tenant;  // named after the container, or "regatta.gpu.name"
  bool is_named = false;
  GpuSlice slice;
};
// kInvalidInput names the annotation. An unknown one is refused, because a misspelt limit would be
// no limit.
Result<ContainerRequest> parse_container_request(const std::string& container,
                                                 const Annotations& annotations);

// The container's name; where that is no valid tenant name, a part of it with a hash.
std::string tenant_name_of(const std::string& container);

// The cgroup of the container alone, without the runtime's processes; cgroup v2 comes first.
// kInvalidInput when it has none.
Result<os::CgroupPath> own_cgroup(const std::string& container,
                                  const std::vector<os::CgroupPath>& of_container,
                                  const std::vector<os::CgroupPath>& of_runtime);

// Reads the container's files and returns the request to the daemon. Limits in `most` apply where
// the annotations say nothing, and are the most that they may say. `proc`: the folder of processes.
Result<nlohmann::json> enroll_request(const ContainerState& container, const GpuSlice& most,
                                      const std::string& proc = "/proc");

}  // namespace regatta::sharing
