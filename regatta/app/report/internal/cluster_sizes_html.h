// report/internal/cluster_sizes_html.h: the sizes of a cluster that a job was planned for, as a
// section of the plan's page: throughput and cost beside devices.
#pragma once

#include <cstddef>
#include <string>

#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::report {

// HTML for html_page(). `picked` is the size that the page is about.
std::string cluster_sizes_section(const plan::ClusterSizes& sizes, std::size_t picked);

}  // namespace regatta::report
