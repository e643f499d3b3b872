#include "regatta/cli/plan_options.h"

#include <array>
#include <string>

#include <fmt/format.h>

namespace regatta::cli {

Status check_cpu_options(const PlanOptions& options) {
  struct Given {
    const char* flag;
    bool is_given;
  };
  const std::array given = {Given{"--sizes", options.sizes},
                            Given{"--launch", !options.launcher.empty()},
                            Given{"--html", !options.html.empty()},
                            Given{"--trace", !options.trace.empty()},
                            Given{"--stack", !options.stack.empty()},
                            Given{"--frontier", options.frontier},
                            Given{"--exhaustive", options.exhaustive},
                            Given{"--every-form", options.every_form},
                            Given{"--servers", options.servers > 0},
                            Given{"--without", !options.without.empty()}};
  for (const Given& one : given) {
    if (!one.is_given) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: {} has no GPUs; give a cluster of GPUs, or plan without it",
                             one.flag, options.cluster)};
  }
  return {};
}

}  // namespace regatta::cli
