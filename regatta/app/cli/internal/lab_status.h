// cli/internal/lab_status.h: what `regatta lab status` prints.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/network/lab/lab.h"

namespace regatta::cli {

// Tables of servers, links and processes for people.
std::string status_text(const lab::LabInfo& lab, const std::vector<lab::LinkState>& links,
                        const std::vector<lab::LabProcess>& processes);

// The same for programs: keys name, servers, links, processes and those of lab::LabInfo.
nlohmann::json status_json(const lab::LabInfo& lab, const std::vector<lab::LinkState>& links,
                           const std::vector<lab::LabProcess>& processes);

}  // namespace regatta::cli
