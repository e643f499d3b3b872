// collective/internal/rail.h: all_to_all between servers over rails: the local rank that owns rail
// j gathers the parts for rank j of other servers and sends them on in one message a server. Rank
// numbers may lie in any order over the servers. With N servers of P ranks, b the bytes of a part
// and S = N P b those of a rank's vector, a rank
//   sends (P-1)/P S inside its server, in messages of up to the bytes of the options,
//   then (N-1)/N S over the network: N-1 messages of P b to the ranks with its own number, which
//   keep them.
// The same bytes as pairwise_all_to_all over the network, in 1/P as many messages, none of which
// leaves its rail. Where servers have other numbers of ranks, rank j of another one belongs to the
// local rank j modulo the local number; the rest holds as above.
// Every part is copied up to three times: gathered, in order of its sender, put in its place.
// Source: the idea of NCCL's PXN, "Doubling all2all Performance with NCCL 2.12" (NVIDIA, 2022).
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// The ranks of each server by rail, as in cost/hierarchical_layout.h. Every rank is in it once.
using RailLayout = std::vector<std::vector<int>>;

struct RailOptions {
  // Parts for several servers share a message inside the server up to this size: larger ones only
  // delay the network.
  std::size_t local_message_bytes = std::size_t{64} << 10;
};

// in, out: count * world_size elements; they may be the same, and have no other overlap.
void rail_all_to_all(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const RailLayout& servers,
                     const RailOptions& options = {});

}  // namespace regatta::collective
