// cost/gpu_network.h: the time of collectives between GPUs of equal servers: a ring inside the
// server over the links between devices, between servers over all of a server's NICs together.
// Where links join the devices of several servers (topo::ScaleUp), the domain takes the place of
// the server. Volumes: Patarasuk and Yuan, JPDC 69(2), 2009.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "regatta/base/core/units.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::cost {

// The bandwidth between the servers of one leaf, of one group of leaves, and of the cluster: each
// server sends to a peer outside the next smaller part, all at once.
struct ScopeBandwidth {
  int devices = 0;      // in the part
  BytesPerSecond rate;  // of a whole server, one way
};

// The bandwidth and latency that collectives reach of one server, or of the servers of one domain
// together.
struct ServerNetwork {
  int devices = 1;       // of the smallest part of a domain
  int servers = 1;       // whose devices those are,
  int servers_most = 1;  // and that links could join
  int domains = 1;       // whose parts a job uses; all but the last have
  int more_devices = 0;  // so many more than the last
  int domains_most = std::numeric_limits<int>::max();  // that the cluster has
  // Switches between them, where links join several servers.
  Seconds switch_latency;
  bool in_network_reduction = false;
  BytesPerSecond link;  // of a device to its neighbours, one way
  Seconds latency;      // of a collective
  Seconds path;         // between servers: latency of the links on the path, where that is more
  // Rising in devices and falling in rate; the last is the whole cluster.
  std::array<ScopeBandwidth, 3> reach;

  // The bandwidth of a server for ranks spread over `extent` devices in rank order.
  BytesPerSecond network(int extent) const;
  // The same for neighbours in a chain of stages of `stride` devices each over `extent` devices:
  // its slowest boundary, where only the first and the last stage of a part send out of the part.
  BytesPerSecond chain(int stride, int extent) const;
  // The latency of a collective that leaves the server.
  Seconds network_latency() const { return std::max(latency, path); }
};
// The network of one server.
ServerNetwork server_network(const topo::ServerType& server, const SoftwareStack& stack);
// The parts of domains that a job on `servers` uses: equal ones of at least half a domain, where
// there are so many domains; else those of the fewest domains, of which the last may be smaller.
topo::DomainParts job_parts(const topo::ScaleUp& domain, int servers, int domains_most);
// The network of a job on `servers`: as that of the smallest of its parts, whose pace collectives
// across domains have.
ServerNetwork network_of_job(ServerNetwork network, int servers);
// With the fabric of the cluster, all of whose servers are of the type of the first and used.
ServerNetwork cluster_network(const topo::Cluster& cluster, const SoftwareStack& stack);

// The time of the slowest of `servers` over their mean: the clocks of equal servers differ by some
// per cent under load, and a step waits for the slowest. The largest of so many normal deviates is
// near sqrt(2 ln servers) standard deviations.
double straggler_factor(double servers);

// The servers other than its own that `copies` of a token reach in the mean, when each goes by
// chance to one of the share `reach` of `servers`.
double copies_to_other_servers(double servers, double copies, double reach = 1);

// The ranks of a group in one server, where its ranks are `stride` devices apart and groups follow
// one another. Where some groups begin in one server and end in another, the smallest part of such
// a group.
int ranks_inside(const ServerNetwork& server, int ranks, int stride);

// A group of a parallel form.
struct RankGroup {
  int ranks = 1;
  int inside = 1;  // of them in one server: ranks_inside()
  int rings = 1;   // such groups that share the network of a server
  int extent = 1;  // devices from the first to the last, in rank order
};

enum class Collective {
  kAllReduce,      // of `bytes` in each rank
  kReduceScatter,  // of `bytes` in each rank
  kAllGather,      // to `bytes` in each rank
};

// 0 for a group of one. In one server a ring at the bandwidth of its links; where switches join
// several, the fastest of sending all to all at once, of two such halves, and of a sum that the
// switches form. Between servers one
// latency a doubling of the group at full bandwidth, as of two binary trees that share the work;
// rings have a latency a rank, which large groups of small messages would see.
Seconds collective_time(const ServerNetwork& server, const RankGroup& group, Collective collective,
                        double bytes);

// All-reduce of `bytes` over a group that fills several servers: inside, between, inside.
Seconds hierarchical_all_reduce_time(const ServerNetwork& server, int ranks, double bytes);

// The same as a reduce-scatter and an all-gather with work between: no switch saves their bytes.
Seconds hierarchical_scatter_and_gather_time(const ServerNetwork& server, int ranks, double bytes);

// Tokens of `bytes` a copy to ranks of a group, each copied to `copies` of them at random: a server
// gets one copy for all its ranks (DeepSeek-V3, 2024, section 3.2.2).
struct TokenDispatch {
  int ranks = 1;
  int stride = 1;  // devices from one of the group to the next
  int copies = 1;
  bool is_once_a_rank = false;  // a rank gets one copy for all its experts, too
  double reach = 1;             // the share of the group that one token may go to
};
Seconds dispatch_time(const ServerNetwork& server, const TokenDispatch& dispatch, double bytes);

// `bytes` of each rank spread evenly over the group.
Seconds all_to_all_time(const ServerNetwork& server, const RankGroup& group, double bytes);

// `bytes` of each rank to its neighbour, all at once.
Seconds ring_step_time(const ServerNetwork& server, const RankGroup& group, double bytes);

// One message between neighbours of a chain of `stages`, the rank `stride` devices on: the slowest
// of the chain's, where all devices of a server send at once.
Seconds message_time(const ServerNetwork& server, int stride, int stages, double bytes);

}  // namespace regatta::cost
