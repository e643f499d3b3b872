// cli/internal/plan_what_if.h: `regatta plan what-if JOB --cluster A --cluster B --with
// nic_rate=800Gbps`: the best plan on each cluster, its time, cost and energy.
#pragma once

#include <CLI/App.hpp>

namespace regatta::cli {

void add_plan_what_if(CLI::App& plan, int& exit_status);

}  // namespace regatta::cli
