// cli/internal/job_file.h: what every command does first and last: read the user's files, report an
// error.
#pragma once

#include <string>

#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {

// The job of the file `path`, with the model of the file that it names, its data and checkpoint
// folder as absolute paths (they are written relative to the job file). kInvalidInput when the file
// cannot be read, else see parse_job().
Result<workload::Job> load_job(const std::string& path);

// Whether files can be written into `folder`, before the work whose result shall go there; `flag`
// is what chooses another one. kInvalidInput when not.
Status check_writable(const std::string& folder, const std::string& flag);

// Prints "regatta: <message>" to standard error and returns the exit status that goes with it.
int report_error(const Error& error);

}  // namespace regatta::cli
