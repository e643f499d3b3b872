// train/internal/error_feedback_file.h: what compressed gradients left out, in the folder of a
// checkpoint: one file for each rank, pp0-tp0-dp1.feedback, because every replica left out
// something of its own. File: magic, number of buckets, then of each its bytes (comm/compression.h)
// behind their number.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/runtime/comm/compression.h"

namespace regatta::train {

// Before the manifest. kUnavailable names the path and the reason.
Status save_error_feedback(const std::string& folder, int step, workload::RankCoordinates at,
                           const std::vector<comm::compress::ErrorFeedback>& buckets);

// Which replica asks, of how many, and how many saved theirs (saved_error_feedbacks() in
// checkpoint.h).
struct ReplicaPosition {
  workload::RankCoordinates at;
  int dp = 1;
  int saved = 0;
};
// Fills `buckets`, whose number is that of the saved ones. Of another number of replicas, each new
// one takes over the sum of what its share of the old ones left out, so that nothing is lost.
// kInvalidInput names the file: unreadable, changed since, or of another job.
Status load_error_feedback(const std::string& folder, int step, const ReplicaPosition& replica,
                           std::vector<comm::compress::ErrorFeedback>& buckets);

}  // namespace regatta::train
