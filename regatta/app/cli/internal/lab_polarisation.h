// cli/internal/lab_polarisation.h: whether tiers of a lab's switches hash alike, by what its cables
// carried meanwhile (diag/polarisation.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {

// Bytes in each direction of each cable since the lab came up.
Result<std::vector<std::uint64_t>> bytes_of_cables(const lab::LabInfo& lab);

// A sentence for each finding, of what was carried since `before`. None where a cable has no
// carrier: its traffic goes elsewhere.
Result<std::vector<std::string>> find_polarisation(const lab::LabInfo& lab,
                                                   const std::vector<std::uint64_t>& before);

}  // namespace regatta::cli
