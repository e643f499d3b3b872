// sharing/internal/client/tenant_page.h: finds the page that says which tenant a process belongs
// to.
#pragma once

#include "regatta/base/core/result.h"

namespace regatta::sharing {

// The descriptor of the tenant's page: inherited, or else a new one of the page of the nearest
// ancestor that has one. That keeps programs in the tenant whose parents close all descriptors, as
// Python's subprocess does. kNotFound when there is none.
Result<int> find_tenant_page();

}  // namespace regatta::sharing
