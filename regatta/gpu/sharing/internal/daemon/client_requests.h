// sharing/internal/daemon/client_requests.h: the daemon's replies to clients that request memory, a
// session of an engine or to be pinned.
#pragma once

#include "regatta/gpu/sharing/internal/daemon/daemon_parts.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

// `request` is of type kLease, kLeaseSwappable, kOpenSession or kPin.
ClientReply answer_client_request(DaemonParts& parts, int client, const ClientRequest& request);

}  // namespace regatta::sharing
