// The part of control.h that is about cgroups.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/core/text.h"
#include "regatta/vgpu/daemon/control.h"

namespace regatta::vgpu {
namespace {

using nlohmann::json;

// A tenant of a cgroup: a new one with the limits of the request, or one that is there.
Result<ControlAnswer> enroll(Books& books, Membership& membership, const json& request,
                             ProcessId asker) {
  REGATTA_TRY(cgroup, os::parse_cgroup_path(request.value("cgroup", "")));
  const std::string container = request.value("container", "");
  REGATTA_TRY(tenant, tenant_of_request(books, request));
  const std::string name = books.tenant_name(tenant.number);
  const Status status = membership.enroll(cgroup, name, container, asker.pid);
  // A daemon that is killed between the two leaves a tenant that nothing holds: the next ends it.
  if (!status && tenant.is_new) books.remove_tenant(tenant.number);
  if (!status) return status.error();
  return ControlAnswer{json{{"tenant", name}}.dump()};
}

// By the tenant's name, by the container's, or by both.
Result<ControlAnswer> leave(const Books& books, Membership& membership, const json& request) {
  const std::string name = request.value("name", "");
  const std::string container = request.value("container", "");
  if (name.empty() && container.empty())
    return bad_request("has neither a 'name' nor a 'container'");
  if (!name.empty()) REGATTA_TRY_DO(find_named(books, name));
  REGATTA_TRY(count, membership.leave([&](const Group& group) {
    return (name.empty() || group.tenant == name) &&
           (container.empty() || group.container == container);
  }));
  if (count == 0 && container.empty()) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {}: has no cgroup; it ends with its last process", name)};
  }
  return ControlAnswer{json{{"left", count}}.dump()};
}

}  // namespace

Result<ControlAnswer> answer_order(Books& books, Membership& membership,
                                   const nlohmann::json& request, ProcessId asker) {
  const std::string what = request.value("ask", "");
  if (what == "enroll") return enroll(books, membership, request, asker);
  if (what == "leave") return leave(books, membership, request);
  return bad_request("asks for nothing that the daemon knows");
}

}  // namespace regatta::vgpu
