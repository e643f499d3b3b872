// link_rates/internal/nic_load.h: which NICs carry other traffic than trains, and which links that
// traffic may cross: trains wait until those are idle. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::link_rates {

// The other traffic of one NIC, from its counters without the bytes of the trains.
class NicLoad {
 public:
  // A train began here. Until it is over, counters say nothing.
  void begin_train() { ++trains_; }
  // `sent` and `received`: its bytes of frames that left and reached the NIC.
  void end_train(Bytes sent, Bytes received, Seconds now);

  // Counters since the NIC exists. Returns whether they show the load of the time since since().
  bool add(std::uint64_t sent, std::uint64_t received, Seconds now);
  BytesPerSecond rate() const { return rate_; }  // the larger one of both directions
  Seconds since() const { return since_; }

 private:
  int trains_ = 0;
  Seconds train_ended_{-1e18};
  Bytes train_sent_;
  Bytes train_received_;
  bool has_base_ = false;
  std::uint64_t base_sent_ = 0;
  std::uint64_t base_received_ = 0;
  Seconds base_at_;
  Seconds since_;
  BytesPerSecond rate_;
};

// The directed links that packets between two leaves may take.
std::vector<std::uint32_t> links_between_leaves(const topo::Graph& graph,
                                                const fabric::Routes& routes, NodeId from,
                                                NodeId to);

// By directed link: what the traffic of the `busy` NICs may cross. That of a single one may go
// anywhere from its leaf.
std::vector<bool> links_of_traffic(const topo::Graph& graph, const fabric::Routes& routes,
                                   const std::vector<LinkId>& busy);

}  // namespace regatta::link_rates
