// plan/internal/search/server_count.h: the numbers of servers among which a job looks for the
// fastest.
#pragma once

#include <vector>

namespace regatta::plan {

// The numbers from `least` to `most` that fastest_server_count() looks at, descending: all where
// they are few, else the largest and those whose `devices` each divide a batch best: the odd
// factors that no number of replicas takes up, and stages must, are small.
std::vector<int> counts_to_try(int least, int most, int devices, int global_batch);

}  // namespace regatta::plan
