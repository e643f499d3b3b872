// bench/lab_environment.h: ranks on the devices of an emulated cluster.
#pragma once

#include <string>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/runtime/bench/regatta_ranks.h"

namespace regatta::bench {

// The lab of a cluster; where it is not up, this brings it up and takes it down at the end.
class LabEnvironment {
 public:
  // Ranks are on the devices in their order, or (`is_round_robin`) on the first device of each
  // server, then on the second ones. kInvalidInput when there are fewer devices than ranks.
  static Result<LabEnvironment> open(const topo::Cluster& cluster, int ranks, bool is_round_robin);
  LabEnvironment(LabEnvironment&& other) noexcept;
  LabEnvironment& operator=(LabEnvironment&&) = delete;
  ~LabEnvironment();

  const TestEnvironment& environment() const { return environment_; }
  void plan_ports_with(BenchPortPlanner planner) { environment_.plan_ports = std::move(planner); }

 private:
  LabEnvironment() = default;
  TestEnvironment environment_;
  std::string brought_up_;  // the lab's name
};

}  // namespace regatta::bench
