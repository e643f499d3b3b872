// bench/reliability/decided_gang.h: the gang of 16,384 GPUs once more, with sched::decide() in
// place of the rules of the simulated gang.
#pragma once

#include <vector>

#include "bench/reliability/result_table.h"
#include "regatta/base/core/result.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {

// Effective training time with and without spares and risk, beside simulate_gang() under the same
// terms. `llama3`: the mix with its counts.
Result<std::vector<ResultTable>> decided_gang_tables(const FailureMix& llama3, int seeds);

}  // namespace regatta::reliability
