#include "regatta/app/cli/internal/plan_options.h"

#include <string>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::cli {
Status read_server_names(PlanOptions& options) {
  if (options.without_text.empty()) return {};
  for (const std::string& part : split(options.without_text, ',')) {
    const std::string name(trim(part));
    if (name.empty()) {
      return Error{Code::kInvalidInput,
                   fmt::format("--without: '{}' lacks a name between two commas or at an end; "
                               "write it like s3,s7",
                               printable(options.without_text, 60))};
    }
    options.without.push_back(name);
  }
  return {};
}

Status check_cpu_options(const PlanOptions& options, const workload::Job& job) {
  if (!options.launcher.empty()) {
    return Error{Code::kInvalidInput,
                 fmt::format("--launch: {} has no GPUs, which {} needs; leave it out, or start the "
                             "job with regatta run",
                             options.cluster, options.launcher)};
  }
  const bool has_servers = options.servers > 0 || !options.without.empty() || options.sizes;
  if (job.placement.empty() || !has_servers) return {};
  return Error{Code::kInvalidInput,
               fmt::format("job {}: placement: it names the devices, so no other servers can be "
                           "taken; write placement: auto, or leave --servers, --without and "
                           "--sizes out",
                           job.name)};
}

}  // namespace regatta::cli
