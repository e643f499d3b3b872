// cli/bench_table.h: the result of `regatta bench coll` for people and for programs.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/bench/timing.h"

namespace regatta::cli {

// The columns of nccl-tests for private and for shared buffers, and, where there are peers, a
// second table with all contenders and how many times as long the best peer took.
std::string bench_table(const bench::Task& task, const std::vector<bench::Contender>& race);

nlohmann::json bench_json(const bench::Task& task, const std::vector<bench::Contender>& race);

}  // namespace regatta::cli
