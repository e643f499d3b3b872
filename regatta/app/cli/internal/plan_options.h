// cli/internal/plan_options.h: what `regatta plan JOB --cluster CLUSTER` was asked.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {

struct PlanOptions {
  std::string job;
  std::string cluster;
  std::string strategy;
  std::vector<std::string> constraints;  // "pp <= 8"
  std::string stack;                     // of cost/software_stack.h; empty: the usual one
  int top = 10;
  std::vector<std::string> compared;  // strategies of the user's beside those that are found
  bool exact = false;                 // the strategy as it stands, without a search
  bool every_form = false;
  bool exhaustive = false;
  bool frontier = false;  // plans that trade time for memory
  bool sizes = false;     // the best plan on several numbers of servers
  std::string objective;  // which of them is picked; empty: time, or cost where `within` is given
  std::string within;     // "30d": it ends in this time
  double price = 0;       // of a device and hour
  int steps = 0;          // of the job; 0: as many as its file says
  std::string without_text;          // "s3,s7"
  std::vector<std::string> without;  // servers that may not be used
  int servers = 0;                   // so many of the others; 0: all
  std::string launcher;              // the plan as launch script of another framework
  std::string html;                  // where the page of the plan goes
  std::string trace;                 // where its timeline goes
  bool json = false;
};

inline constexpr int kMostPlans = 10'000;     // that are shown; the search keeps them in order
inline constexpr double kHighestPrice = 1e6;  // of a device and hour: beyond, figures overflow

// Makes `without` of `without_text`. kInvalidInput where a name between commas is missing.
Status read_server_names(PlanOptions& options);

// Rejects the options that no cluster of CPUs can have: kInvalidInput for --launch, whose
// frameworks need GPUs, and for a number of servers where the job says where its ranks go.
Status check_cpu_options(const PlanOptions& options, const workload::Job& job);

}  // namespace regatta::cli
