// cost/gpu_network.h: how long collectives take between GPUs of equal servers: a ring inside the
// server over the links between devices, between servers over all of a server's NICs together.
// Volumes: Patarasuk and Yuan, JPDC 69(2), 2009.
#pragma once

#include "regatta/core/units.h"
#include "regatta/cost/stack.h"
#include "regatta/topo/cluster.h"

namespace regatta::cost {

// What collectives reach of one server.
struct ServerNetwork {
  int devices = 1;
  BytesPerSecond link;     // of a device to its neighbours, one way
  BytesPerSecond network;  // of the whole server, one way
  Seconds latency;         // of a collective
};
ServerNetwork server_network(const topo::ServerType& server, const Stack& stack);

// A group of a parallel form.
struct RankGroup {
  int ranks = 1;
  int inside = 1;  // of them in one server
  int rings = 1;   // such groups that share the network of a server
};

enum class Collective {
  kAllReduce,      // of `bytes` in each rank
  kReduceScatter,  // of `bytes` in each rank
  kAllGather,      // to `bytes` in each rank
};

// 0 for a group of one.
Seconds collective_time(const ServerNetwork& server, const RankGroup& group, Collective collective,
                        double bytes);

// All-reduce of `bytes` over a group that fills several servers: inside, between, inside.
Seconds hierarchical_all_reduce_time(const ServerNetwork& server, int ranks, double bytes);

// Tokens of `bytes` a copy to ranks of a group, each copied to `copies` of them at random: a server
// is sent one copy however many of its ranks want it (DeepSeek-V3, 2024, section 3.2.2).
struct Dispatch {
  int ranks = 1;
  int stride = 1;  // ranks between two of the group
  int copies = 1;
};
Seconds dispatch_time(const ServerNetwork& server, const Dispatch& dispatch, double bytes);

// `bytes` of each rank spread evenly over the group.
Seconds all_to_all_time(const ServerNetwork& server, const RankGroup& group, double bytes);

// `bytes` of each rank to its neighbour, all at once.
Seconds ring_step_time(const ServerNetwork& server, const RankGroup& group, double bytes);

// One message between two ranks, where all devices of a server send at once.
Seconds message_time(const ServerNetwork& server, bool is_inside, double bytes);

}  // namespace regatta::cost
