// simulate/internal/message_reporter.h: reports messages to the caller of a simulation while their
// flows, or the parts of these, end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/simulate/internal/flow_problem.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/run_scenario.h"

namespace regatta::simulate {

class MessageReporter {
 public:
  // The workload and the options outlive it. `problem` has the parts of flows: without parts, each
  // flow is one.
  MessageReporter(const ScenarioWorkload& workload, const FlowProblem& problem,
                  const SimulateOptions& options);

  // A part has ended.
  void report(std::uint32_t part, const fabric::FlowTimes& times);

 private:
  template <typename Use>
  void for_each_message_of(std::uint32_t path, Use&& use) const;

  const ScenarioWorkload& workload_;
  const SimulateOptions& options_;
  std::size_t messages_ = 0;
  std::size_t sent_ = 0;
  std::vector<std::uint32_t> left_;     // parts of each flow
  std::vector<std::uint32_t> flow_of_;  // each part
};

}  // namespace regatta::simulate
