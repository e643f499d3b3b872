// sharing/internal/daemon/requested_tenant.h: the tenant and the limits that an operator's request
// names.
#pragma once

#include <string>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

namespace regatta::sharing {

// kInvalidInput lists the tenants that exist.
Result<int> find_tenant_by_name(const TenantStore& tenant_store, const std::string& name);

// `limits` with those that the request has in their place.
Result<TenantLimits> limits_with_request(TenantLimits limits, const JsonReader& request);

// A request with `memory` makes a new tenant. Another one names a tenant that exists, whose limits
// have to equal all limits of the request.
struct RequestedTenant {
  int number = -1;
  bool is_new = false;
};
Result<RequestedTenant> tenant_of_request(TenantStore& tenant_store, const JsonReader& request);

}  // namespace regatta::sharing
