// sharing/internal/client/tenant_page.h: finds the page that says which tenant a process belongs
// to.
#pragma once

#include "regatta/base/core/result.h"

namespace regatta::sharing {

// The descriptor of the tenant's page: one that this process inherited, or else a new one of the
// page of the nearest process above it that has one. Programs that close all descriptors of their
// children, as Python's subprocess does, keep them in the tenant so. kNotFound when there is none.
Result<int> find_tenant_page();

}  // namespace regatta::sharing
