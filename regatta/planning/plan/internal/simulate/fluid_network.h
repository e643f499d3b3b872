// plan/internal/simulate/fluid_network.h: transfers that share resources as fluids do: each
// resource divides its capacity fairly over the flows that cross it (max-min fairness,
// fabric/flow_simulation.h). A transfer here is a set of
// flows that advance together, as the neighbours of a ring do.
#pragma once

#include <vector>

namespace regatta::plan {

// A directed link, or one direction of a device's port inside its server.
struct ResourceLoad {
  int resource = 0;
  double weight = 0;  // flows of the transfer that cross it, each counted by its share
};

// All flows of one transfer carry the same bytes at the same rate.
struct FluidTransfer {
  std::vector<ResourceLoad> loads;  // one entry per resource; empty: takes no time
  double bytes_per_flow = 0;
};

// The present transfers. Time is the caller's: advance() moves all of them at their present rates.
class FluidNetwork {
 public:
  // `capacities`: bytes per second by resource, positive.
  explicit FluidNetwork(std::vector<double> capacities);

  // Starts a transfer that must outlive its end; advance() returns its `tag`.
  void start(const FluidTransfer* transfer, int tag);

  // Seconds from now to the next end; infinity when there is no transfer.
  double next_end();

  // Moves everything by `seconds` <= next_end() and returns the tags of what ended, in the order
  // of their start.
  std::vector<int> advance(double seconds);

  bool idle() const { return active_.empty(); }

 private:
  struct Active {
    const FluidTransfer* transfer = nullptr;
    int tag = 0;
    double left = 0;  // bytes per flow
    double rate = 0;  // bytes per second per flow
  };
  void share();

  std::vector<double> capacities_;
  std::vector<Active> active_;
  std::vector<int> link_of_;  // scratch of share(), by resource; -1: no transfer crosses it
  bool stale_ = false;
};

}  // namespace regatta::plan
