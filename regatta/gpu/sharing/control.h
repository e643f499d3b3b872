// sharing/control.h: sends requests of operators to the daemon: docs/formats/gpu_daemon.md.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/policy/share.h"

namespace regatta::sharing {

// Indexed by regatta_share_policy.
inline constexpr const char* kPolicyNames[] = {"fixed", "equal", "weight", "burst-weight"};

Result<regatta_share_policy> parse_policy(const std::string& name);

// Sends `request`, which is JSON, to the daemon at `socket` and returns its answer; `page` gets the
// descriptor of a tenant's page when the answer has one.
Result<std::string> send_control_request(const std::string& socket, const std::string& request,
                                         os::UniqueFd* page = nullptr);

}  // namespace regatta::sharing
