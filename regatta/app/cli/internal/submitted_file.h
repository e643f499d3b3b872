// cli/internal/submitted_file.h: the file of `regatta submit`: one job, or a list of them.
// Format: docs/formats/submitted_job.md.
#pragma once

#include <string>

#include "regatta/base/core/result.h"

namespace regatta::cli {

// The jobs of the file as the JSON that the API takes. kInvalidInput, with file, line, key and
// remedy, for all that can be known without the controller.
Result<std::string> load_submitted_jobs(const std::string& path);

}  // namespace regatta::cli
