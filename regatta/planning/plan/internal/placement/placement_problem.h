// plan/internal/placement/placement_problem.h: ranks folded into the servers that they fill, and
// the parts of the fabric that those servers may come from: what a placement is chosen and judged
// on.
//
// Slot i is the i-th run of as many consecutive ranks as a server has devices. A server's traffic
// is taken to be even over its NICs, and so over the rails: collectives use all NICs of a server
// (cost/gpu_network.h), and a message reaches the NIC of its rail inside the server (PXN, NCCL
// 2.12). Where links join several servers to a domain, a slot is the part of a domain that the job
// uses, and takes the place of a server. Traffic between slots therefore meets three kinds of
// links: those of the servers, whatever the placement; the uplinks of a leaf, of all rails
// together, for what leaves the leaf; and the uplinks of a group's spines for what leaves the
// group.
#pragma once

#include <array>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

// Bytes are counted in halves and in integers, so that changes cancel without remainder: of a ring,
// a connection carries its bytes one way, and so a half of them each way.
using HalfBytes = long long;

struct NeighbourTraffic {
  int slot = 0;
  int axis = 0;
  HalfBytes each_way = 0;
};

// Slots that all talk to each other: `each_way` for each pair of a rank here and a rank there.
struct AllToAllGroup {
  struct Member {
    int slot = 0;
    int ranks = 0;
  };
  int axis = 0;
  HalfBytes each_way = 0;
  int ranks = 0;
  std::vector<Member> members;
};

// Usable servers under the same leaf switches, one on every rail: `joined` for each slot.
struct LeafServers {
  int group = 0;
  std::vector<ServerId> servers;
  int joined = 1;

  int capacity() const { return static_cast<int>(servers.size()) / joined; }
};

// Neighbours of slot i: neighbours[first[i]] to neighbours[first[i + 1]]; exchanges alike.
struct PlacementProblem {
  int slots = 0;
  int stages = 1;  // of the pipeline, where each fills whole servers: slot / (slots / stages)
  std::vector<int> first;
  std::vector<NeighbourTraffic> neighbours;
  std::vector<AllToAllGroup> exchanges;
  std::vector<int> first_exchange;
  std::vector<int> exchange_of;
  std::array<AxisTraffic, kAxisCount> axes;  // for overlap
  std::array<Seconds, kAxisCount> nic_time;  // the server that sends most
  std::vector<LeafServers> leaves;
  int groups = 1;
  // One way, of all links of a part; 0: there is nothing outside it.
  BytesPerSecond leaf_rate;
  BytesPerSecond group_rate;
  BytesPerSecond server_rate;
  int joined = 1;   // servers of a slot
  int devices = 1;  // of a slot
};

// The parts of domains that a job uses: as many servers of `servers` as it has slots.
topo::DomainParts parts_of_slots(const topo::Cluster& cluster, const std::vector<ServerId>& servers,
                                 int slots);

// `servers`, ascending, are of one type and make equal parts of domains. The lines of `traffic` are
// of as many ranks as `servers_filled` have devices; slots are as many, or fewer where domains join
// servers. Leaves hold the servers of whole slots alone, and may be too few.
PlacementProblem placement_problem(const topo::Cluster& cluster,
                                   const std::vector<ServerId>& servers,
                                   const StrategyTraffic& traffic, int servers_filled,
                                   double network_efficiency);

// Leaf of each slot.
using LeafAssignment = std::vector<int>;

// The time that a step waits for the network, by axis: the busiest link decides each, and
// computation hides its share. Axes do not overlap each other.
struct PlacementTime {
  std::array<Seconds, kAxisCount> axes;
  Seconds total;
};
// From scratch; slots at leaf -1 are not there yet, and what they send is left out.
PlacementTime placement_time(const PlacementProblem& network, const LeafAssignment& leaf_of);

}  // namespace regatta::plan
