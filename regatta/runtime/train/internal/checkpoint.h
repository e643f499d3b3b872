// train/internal/checkpoint.h: the state of a training run in a folder: FOLDER/step-00000015/ holds
// a file for each (pp, tp) position and a manifest, written last, without which the folder does not
// count. Every file is written under another name and renamed, so a kill at any moment leaves the
// previous checkpoint. Part file: magic, step and element count, the three flat arrays, a checksum.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/runtime/train/internal/parameters.h"

namespace regatta::train {

// The folder of the files of a step.
std::string step_folder(const std::string& folder, int step);

// Saves this rank's position after `step` steps. kUnavailable names the path and the reason.
Status save_part(const std::string& folder, int step, workload::RankCoordinates at,
                 const Parameters& parameters);
// After all parts are saved, by one rank.
Status save_manifest(const std::string& folder, int step, const workload::Job& job,
                     const workload::Strategy& strategy);

// The steps of the newest complete checkpoint. kNotFound when there is none: names the folder.
Result<int> newest_checkpoint(const std::string& folder);

// Fails with kInvalidInput when the checkpoint is of another model, precision, tp or pp: names the
// key, the saved value and the requested one; or names the file that cannot be read.
Status check_manifest(const std::string& folder, int step, const workload::Job& job,
                      const workload::Strategy& strategy);

// The number of replicas that saved the error feedback of their compressed gradients
// (error_feedback_file.h): 0 where the run had no compression, or one replica. After
// check_manifest().
int saved_error_feedbacks(const std::string& folder, int step);

// Fills master, moments and compute weights. kInvalidInput names the file: missing, of another
// size, truncated or modified.
Status load_part(const std::string& folder, int step, workload::RankCoordinates at,
                 Parameters& parameters);

// The error of a file at `path` that cannot be read back because of `what`.
Error broken_checkpoint(const std::string& path, std::string_view what);

}  // namespace regatta::train
