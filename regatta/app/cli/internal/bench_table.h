// cli/internal/bench_table.h: the result of `regatta bench coll` for people and for programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/base/core/units.h"
#include "regatta/runtime/bench/timing.h"

namespace regatta::cli {

struct BenchResult {
  bench::BenchTask task;
  std::vector<bench::Contender> race;  // first `own` of Regatta, then the peers
  std::size_t own = 2;
  std::vector<Seconds> bounds;  // by size: no all_reduce ends sooner; empty: not known
};

// The columns of nccl-tests for Regatta's contenders, with the share of the bound where it is
// known, and, where there are peers, a second table with all and how many times as long the best
// peer took.
std::string bench_table(const BenchResult& result);

nlohmann::json bench_json(const BenchResult& result);

}  // namespace regatta::cli
