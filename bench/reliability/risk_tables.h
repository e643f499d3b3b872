// bench/reliability/risk_tables.h: forecasts of failures on the traces of Titan and InfiniteHBD.
#pragma once

#include <vector>

#include "bench/reliability/result_table.h"
#include "regatta/base/core/result.h"
#include "regatta/platform/reliability/failure_log.h"

namespace regatta::reliability {

// GPUs: snapshots each 45 days, forecasts from 2017 on, windows of 30 and 90 days. Servers: each 6
// hours, forecasts from day 155 on, windows of 1, 7 and 30 days; and what came back from repair.
Result<std::vector<ResultTable>> risk_tables(const FailureLog& gpus, const FailureLog& servers);

}  // namespace regatta::reliability
