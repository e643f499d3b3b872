// sharing/control.h: what operators ask of the daemon, as JSON: docs/formats/gpu_daemon.md.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_parts.h"

namespace regatta::sharing {

inline constexpr std::size_t kLongestRequest = 8192;
inline constexpr const char* kPolicyNames[] = {"fixed", "equal", "weight", "burst-weight"};

Result<regatta_share_policy> parse_policy(const std::string& name);

struct ControlReply {
  std::string text;  // JSON, or Prometheus text
  int tenant = -1;   // that a process joins: its page goes along
};

// Answers `request` of the process `asker`, which may ask (check_operator()).
Result<ControlReply> answer_control_request(DaemonParts& parts, std::string_view request,
                                            ProcessId asker);

// Operators are processes of root or of the daemon's user, in its PID namespace, that neither
// belong to a tenant, by descriptor or by cgroup, nor descend from one. kUnsupported names which of
// these fails.
Status check_operator(const TenantStore& tenant_store, const TenantCgroups& tenant_cgroups,
                      pid_t asker, unsigned user);

// Of the two files that answer.
Error bad_request(const std::string& what);
// The tenant of this name; kInvalidInput says which there are.
Result<int> find_tenant_by_name(const TenantStore& tenant_store, const std::string& name);
// The tenant that the request names: made with its limits when it has a `memory`, else one that is
// there, which has to have all limits that the request names.
struct RequestedTenant {
  int number = -1;
  bool is_new = false;
};
Result<RequestedTenant> tenant_of_request(TenantStore& tenant_store, const nlohmann::json& request);
Result<ControlReply> answer_control_command(TenantStore& tenant_store,
                                            TenantCgroups& tenant_cgroups,
                                            const nlohmann::json& request, ProcessId asker);

// The program's side: asks the daemon at `socket` and returns its text; `page` gets the descriptor
// of a tenant's page when one came.
Result<std::string> send_control_request(const std::string& socket, const std::string& request,
                                         os::UniqueFd* page = nullptr);

}  // namespace regatta::sharing
