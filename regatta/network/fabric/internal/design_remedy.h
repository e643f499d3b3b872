// fabric/internal/design_remedy.h: rates with which a fabric can be designed when the requested
// ones do not fit a switch.
#pragma once

#include <functional>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/network/fabric/design.h"

namespace regatta::fabric {

// "take ports of 400 Gbps, or a chip of 102 Tbps": with each, `can_be_made` holds for `request`.
// `has_uplink`: the rate of uplinks is not that of the ports. On a chip below `chip_least` nothing
// fits.
std::string rate_remedy(const DesignRequest& request, bool has_uplink, BytesPerSecond chip_least,
                        const std::function<bool(const DesignRequest&)>& can_be_made);

}  // namespace regatta::fabric
