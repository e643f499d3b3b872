// cli/internal/plan_diff.h: `regatta plan diff A B`: why one plan is faster than another.
#pragma once

#include <CLI/App.hpp>

namespace regatta::cli {

void add_plan_diff(CLI::App& plan, int& exit_status);

}  // namespace regatta::cli
