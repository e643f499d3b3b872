// train/internal/error_feedback_file.h: the error feedback of compressed gradients in the folder of
// a checkpoint: one file for each rank, pp0-tp0-dp1.feedback, because every replica has its own.
// File: magic, number of buckets, then for each the number of its bytes and the bytes
// (comm/compression.h).
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

// The replica that loads, the number of replicas, and the number of those that saved theirs
// (saved_error_feedbacks() in checkpoint.h).
struct ReplicaPosition {
  workload::RankCoordinates at;
  int dp = 1;
  int saved = 0;
};
// Fills `buckets`, whose number is that of the saved ones. With another number of replicas, each
// new one gets the sum over its share of the old ones, so that nothing is lost. kInvalidInput names
// the file: unreadable, modified, or of another job.
Status load_error_feedback(const std::string& folder, int step, const ReplicaPosition& replica,
                           std::vector<comm::compress::ErrorFeedback>& buckets);

}  // namespace regatta::train
