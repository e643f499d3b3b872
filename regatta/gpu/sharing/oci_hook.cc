#include "regatta/gpu/sharing/oci_hook.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>

#include <fmt/core.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

constexpr std::size_t kNameMax = 47;
const std::vector<std::string> kKeys = {"memory", "compute", "weight", "priority", "name"};

Error bad_container(const std::string& what) {
  return {Code::kInvalidInput, what};
}

bool is_name_letter(unsigned char letter) {
  return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
}

// `process` is its folder in /proc.
Result<std::vector<os::CgroupPath>> cgroups_of(const std::string& process) {
  REGATTA_TRY(text, os::read_file(process + "/cgroup"));
  return os::parse_cgroups(text);
}

}  // namespace

Result<ContainerState> parse_container_state(std::string_view text) {
  const auto state = JsonReader::parse(text, "standard input");
  ContainerState container;
  if (state) {
    state->read("id", container.id);
    state->read("bundle", container.bundle);
    state->read_if("pid", container.pid, IntRange{0});
    if (state->status() && (container.id.empty() || container.bundle.empty()))
      state->fail("has an empty id or bundle");
  }
  const Status status = state ? state->status() : Status(state.error());
  if (status) return container;
  return bad_container(status.error().message +
                       "; a container runtime starts this command as a hook and writes the state "
                       "of the container to it");
}

Result<Annotations> parse_annotations(std::string_view config, const std::string& path) {
  REGATTA_TRY(root, JsonReader::parse(config, path));
  Annotations annotations;
  if (!root.raw().is_object())
    return bad_container(path + ": is no OCI configuration; check the bundle");
  if (!root.has("annotations")) return annotations;
  for (const auto& [key, value] : root.at("annotations").members())
    annotations[key] = value.as<std::string>();
  return root.finish(annotations);
}

Result<ContainerRequest> parse_container_request(const std::string& container,
                                                 const Annotations& annotations) {
  ContainerRequest wish{.tenant = tenant_name_of(container)};
  const std::string prefix = kAnnotationPrefix;
  for (const auto& [name, text] : annotations) {
    if (name.rfind(prefix, 0) != 0) continue;
    const std::string key = name.substr(prefix.size());
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      const std::string near = nearest_word(key, kKeys);
      return bad_container(
          fmt::format("container {}: there is no annotation {}; {}", printable(container, 80),
                      printable(name, 60),
                      near.empty() ? "choose one of " + prefix + "{" + join(kKeys, ", ") + "}"
                                   : "did you mean " + prefix + near + "?"));
    }
    if (key == "name") {
      wish.tenant = text;
      wish.is_named = true;
    } else if (const Status status = set_limit(wish.slice, key, text); !status) {
      return bad_container(fmt::format("container {}: annotation {}: {}", printable(container, 80),
                                       name, status.error().message));
    }
  }
  return wish;
}

std::string tenant_name_of(const std::string& container) {
  std::string name;
  std::copy_if(container.begin(), container.end(), std::back_inserter(name), is_name_letter);
  if (name == container && !name.empty() && name.size() <= kNameMax) return name;
  return fmt::format("{}{}{:016x}", name.substr(0, 30), name.empty() ? "" : "-", fnv1a(container));
}

Result<os::CgroupPath> own_cgroup(const std::string& container,
                                  const std::vector<os::CgroupPath>& of_container,
                                  const std::vector<os::CgroupPath>& of_runtime) {
  // cgroup v2, then the hierarchies of v1 that runtimes set up for every container, then any.
  std::vector<std::string> order = {"", "devices", "memory", "pids", "freezer", "cpu"};
  for (const os::CgroupPath& group : of_container)
    order.push_back(group.hierarchy);
  for (const std::string& hierarchy : order) {
    const auto path = os::path_in(of_container, hierarchy);
    const auto runtime = os::path_in(of_runtime, hierarchy);
    if (path && *path != "/" && !(runtime && os::is_within(*runtime, *path)))
      return os::CgroupPath{hierarchy, *path};
  }
  return bad_container(
      fmt::format("container {}: has no cgroup of its own; set linux.cgroupsPath in its "
                  "config.json",
                  printable(container, 80)));
}

Result<json> enroll_request(const ContainerState& container, const GpuSlice& most,
                            const std::string& proc) {
  const std::string name = "container " + printable(container.id, 80);
  if (container.pid == 0)
    return bad_container(name +
                         ": has no process; give --leave after its end, createRuntime before");
  const std::string path = container.bundle + "/config.json";
  const auto config = os::read_text_file(path);
  if (!config) return bad_container(name + ": " + config.error().message + "; check the bundle");
  REGATTA_TRY(annotations, parse_annotations(*config, path));
  REGATTA_TRY(wish, parse_container_request(container.id, annotations));
  const auto slice = restrict_slice(wish.slice, most);
  if (!slice) return bad_container(name + ": " + slice.error().message);
  // A container that names a tenant joins it when no memory is stated for it.
  const bool joins = wish.is_named && wish.slice.memory.empty() && most.memory.empty();
  if (slice->memory.empty() && !joins) {
    return bad_container(
        fmt::format("{}: has no limit of memory; annotate it with {}memory, or give the "
                    "hook --memory",
                    name, kAnnotationPrefix));
  }
  const auto of_container = cgroups_of(fmt::format("{}/{}", proc, container.pid));
  if (!of_container) {
    const Error& error = of_container.error();
    if (error.code != Code::kNotFound) return Error{error.code, name + ": " + error.message};
    return bad_container(
        fmt::format("{}: its process {} is not there; start this hook while it is, as "
                    "createRuntime",
                    name, container.pid));
  }
  REGATTA_TRY(of_runtime, cgroups_of(proc + "/self"));
  REGATTA_TRY(cgroup, own_cgroup(container.id, *of_container, of_runtime));
  json request{{"request", "enroll"},
               {"name", wish.tenant},
               {"container", container.id},
               {"cgroup", os::to_string(cgroup)}};
  // A request to join may name limits, which the daemon compares with the tenant's.
  add_to_request(request, joins ? wish.slice : *slice);
  return request;
}

}  // namespace regatta::sharing
