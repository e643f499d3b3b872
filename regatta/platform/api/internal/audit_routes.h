// api/internal/audit_routes.h: the route of the audit.
#pragma once

#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/audit/audit_log.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

// A page of records, the newest first: `limit`, `after` (a page's next), `user`.
void list_audit(audit::AuditLog* log, controller::ControllerRuntime& runtime,
                const ApiRequest& request);

}  // namespace regatta::api
