// bench/reliability/gang_tables.h: a gang of 16,384 GPUs under the failure mix of Llama 3 for 54
// days.
#pragma once

#include <vector>

#include "bench/reliability/result_table.h"
#include "regatta/base/core/result.h"
#include "regatta/platform/reliability/failure_mix.h"
#include "regatta/platform/reliability/gang_simulation.h"

namespace regatta::reliability {

// The simulation beside Daly's closed form; the gang with and without each measure; intervals
// between checkpoints; restart times; spares; and the failure rate at which draining a node pays.
// `llama3`: the mix with its counts.
Result<std::vector<ResultTable>> gang_tables(const FailureMix& llama3);

inline constexpr int kGangNodes = 2048;
inline constexpr Seconds kGangTime = 54 * kDay;

// All measures on: spares, risk, checkpoints in memory at Daly's interval. `mix` has rates.
GangOptions full_gang(const FailureMix& mix);

}  // namespace regatta::reliability
