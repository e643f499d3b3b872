// cli/internal/measure_table.h: measured rates for people.
#pragma once

#include <string>

#include "regatta/model/cost/rates.h"

namespace regatta::cli {

// Products by shape, operators, copies, and each path beside what the cluster file says of it.
std::string rates_text(const cost::Rates& rates);

}  // namespace regatta::cli
