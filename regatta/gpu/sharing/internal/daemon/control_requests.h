// sharing/internal/daemon/control_requests.h: answers the requests of operators:
// docs/formats/gpu_daemon.md.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_parts.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"

namespace regatta::sharing {

inline constexpr std::size_t kControlRequestMax = 8192;  // bytes

struct ControlReply {
  std::string text;  // JSON, or Prometheus text
  int tenant = -1;   // that the sender joins: the reply carries the tenant's page
};

// Answers `request` of the process `sender`, which is an operator.
Result<ControlReply> answer_control_request(DaemonParts& parts, std::string_view request,
                                            ProcessId sender);

}  // namespace regatta::sharing
