// bench/lab_ground.h: ranks on the devices of an emulated cluster.
#pragma once

#include <string>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/runtime/bench/own_ranks.h"

namespace regatta::bench {

// The lab of a cluster, brought up if it is not, and then taken down at the end.
class LabGround {
 public:
  // Ranks lie on the devices in their order, or (`go_round`) on the first device of each server,
  // then on the second ones. kInvalidInput when there are fewer devices than ranks.
  static Result<LabGround> open(const topo::Cluster& cluster, int ranks, bool go_round);
  LabGround(LabGround&& other) noexcept;
  LabGround& operator=(LabGround&&) = delete;
  ~LabGround();

  const Ground& ground() const { return ground_; }
  void plan_ports_with(PortPlanner planner) { ground_.plan_ports = std::move(planner); }

 private:
  LabGround() = default;
  Ground ground_;
  std::string brought_up_;  // the lab's name
};

}  // namespace regatta::bench
