// cli/plan_options.h: what `regatta plan JOB --cluster CLUSTER` was asked.
#pragma once

#include <string>

namespace regatta::cli {

struct PlanOptions {
  std::string job;
  std::string cluster;
  std::string strategy;
  std::string stack;  // of cost/stack.h; empty: the usual one
  int top = 10;
  bool every_form = false;
  bool exhaustive = false;
  bool json = false;
};

}  // namespace regatta::cli
