#include "regatta/gpu/sharing/internal/daemon/control_requests.h"

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/internal/daemon/control_commands.h"
#include "regatta/gpu/sharing/internal/daemon/metrics.h"
#include "regatta/gpu/sharing/internal/daemon/requested_tenant.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

// A new tenant with the sender as its first process, or one more process of a tenant.
Result<ControlReply> join_tenant(TenantStore& tenant_store, const JsonReader& request,
                                 ProcessId sender) {
  REGATTA_TRY(tenant, tenant_of_request(tenant_store, request));
  const auto client = tenant_store.add_client(tenant.number, sender);
  if (!client && tenant.is_new) tenant_store.remove_tenant(tenant.number);
  if (!client) return client.error();
  return ControlReply{json{{"tenant", tenant_store.tenants().name(tenant.number)}}.dump(),
                      tenant.number};
}

Result<ControlReply> change_tenant(DaemonParts& parts, const JsonReader& request) {
  TenantStore& tenant_store = parts.tenant_store;
  std::string name;
  request.read("name", name);
  REGATTA_TRY_DO(request.status());
  REGATTA_TRY(tenant, find_tenant_by_name(tenant_store, name));
  REGATTA_TRY(limits, limits_with_request(tenant_store.tenants().limits(tenant), request));
  REGATTA_TRY_DO(tenant_store.set_limits(tenant, limits));
  return ControlReply{tenant_json(parts, tenant).dump()};
}

Result<ControlReply> show_or_set_policy(TenantStore& tenant_store, const JsonReader& request) {
  if (request.has("policy")) {
    const auto name = request.at("policy").as<std::string>();
    REGATTA_TRY_DO(request.status());
    REGATTA_TRY(policy, parse_policy(name));
    REGATTA_TRY_DO(tenant_store.set_policy(policy));
  }
  return ControlReply{json{{"policy", kPolicyNames[tenant_store.tenants().policy()]}}.dump()};
}

enum class Command { kJoin, kSet, kPolicy, kPs, kMetrics, kEnroll, kLeave, kDrain };
const Choices<Command> kCommands = {{"join", Command::kJoin},       {"set", Command::kSet},
                                    {"policy", Command::kPolicy},   {"ps", Command::kPs},
                                    {"metrics", Command::kMetrics}, {"enroll", Command::kEnroll},
                                    {"leave", Command::kLeave},     {"drain", Command::kDrain}};

}  // namespace

Result<ControlReply> answer_control_request(DaemonParts& parts, std::string_view text,
                                            ProcessId sender) {
  REGATTA_TRY(request, JsonReader::parse(text, "the request", {.size_max = kControlRequestMax}));
  // "ask" is the old name of the key, until the next minor version.
  const auto command = request.at(request.has("ask") ? "ask" : "request").as<Command>(kCommands);
  REGATTA_TRY_DO(request.status());
  TenantStore& tenant_store = parts.tenant_store;
  switch (command) {
    case Command::kJoin:
      return join_tenant(tenant_store, request, sender);
    case Command::kSet:
      return change_tenant(parts, request);
    case Command::kPolicy:
      return show_or_set_policy(tenant_store, request);
    case Command::kPs:
      return ControlReply{daemon_state_json(parts).dump()};
    case Command::kMetrics:
      return ControlReply{metrics_text(parts)};
    case Command::kEnroll:
      return enroll_cgroup(tenant_store, parts.tenant_cgroups, request, sender);
    case Command::kLeave:
      return remove_cgroups(tenant_store, parts.tenant_cgroups, request);
    case Command::kDrain:
      return drain(tenant_store, request);
  }
  return ControlReply{};
}

}  // namespace regatta::sharing
