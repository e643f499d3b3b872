#include "regatta/app/cli/internal/plan_options.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::cli {
namespace {

struct Given {
  const char* flag;
  bool is_given;
  bool is_for_mixed = false;  // also on servers of several types
};

std::array<Given, 12> gpu_options(const PlanOptions& options) {
  return {{{"--sizes", options.sizes},
           {"--launch", !options.launcher.empty()},
           {"--html", !options.html.empty()},
           {"--trace", !options.trace.empty()},
           {"--stack", !options.stack.empty(), true},
           {"--exact", options.exact},
           {"--compare", !options.compared.empty()},
           {"--frontier", options.frontier},
           {"--exhaustive", options.exhaustive},
           {"--extended-search", options.every_form},
           {"--servers", options.servers > 0},
           {"--without", !options.without.empty()}}};
}

}  // namespace

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

Status check_cpu_options(const PlanOptions& options) {
  for (const Given& one : gpu_options(options)) {
    if (!one.is_given) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: {} has no GPUs; give a cluster of GPUs, or plan without it",
                             one.flag, options.cluster)};
  }
  return {};
}

Status check_heterogeneous_options(const PlanOptions& options, const std::string& cluster_name) {
  for (const Given& one : gpu_options(options)) {
    if (!one.is_given || one.is_for_mixed) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: the servers of cluster {} are of several types, and it needs one "
                             "type; name servers of one type, or plan without it",
                             one.flag, cluster_name)};
  }
  return {};
}

}  // namespace regatta::cli
