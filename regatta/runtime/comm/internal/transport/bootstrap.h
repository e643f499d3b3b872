// comm/internal/transport/bootstrap.h: the ranks find each other: every pair gets its PeerChannel.
// Each rank listens on TCP and on an abstract unix socket, gives its endpoint to the exchange, and
// then calls every lower rank: over the unix socket when both name the same server (the caller
// hands over a memory file), else over TCP. Over TCP the called one then calls back: each side
// opens the connections that it sends over, from ports that a PathDiscovery chose. A caller shows
// protocol, version, job token and rank; a stranger is refused with a log line. Shared memory that
// cannot be opened falls back to TCP. A rank whose process ended is found out by a hang-up or by
// its closed listener; who gives up tells the others why. Two ranks of different servers whose
// endpoints both say that they have RDMA make one TCP connection alone: both know so from the
// endpoints, and the caller says it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/handshake.h"
#include "regatta/runtime/comm/internal/transport/bootstrap_listener.h"
#include "regatta/runtime/comm/internal/transport/peer_channel.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"

namespace regatta::comm {

struct RendezvousResult {
  std::vector<PeerChannel> channels;    // by rank
  std::vector<std::string> names;       // by rank: "rank 3 (s1/1) at s1"
  std::vector<PeerEndpoint> endpoints;  // by rank
  SharedSegment shared_segment;         // the own one; closed where it could not be had
  int paths = 1;                        // over equal-cost links, to the rank with the most
  std::shared_ptr<VerbsDevice> rdma;    // null where no channel uses it
};

// "rank 3 (s1/1)" when the options name it, else "rank 3".
std::string name_of(int rank, const CommunicatorOptions& options);

// Where the others come in, open before they know where it is.
struct ListenEndpoint {
  SharedSegment shared_segment;
  BootstrapListener listener;
  std::shared_ptr<VerbsDevice> rdma;  // null where it is not used
  std::string endpoint;               // where it is, for the others
};
// `host`: the name of the rank, for log lines. A rank that will be alone needs no shared segment.
Result<ListenEndpoint> open_listen_endpoint(const std::string& host, bool has_shared_segment,
                                            const CommunicatorOptions& options);

struct RendezvousPlan {
  int rank = 0;
  std::vector<std::string> endpoints;  // by rank
  std::uint64_t rendezvous_id = 0;     // callers that give another number are refused
  Seconds path_discovery_time{2.0};    // for the ways to all ranks together
  // Asked now and then: the rendezvous is cancelled. Null: never.
  std::function<bool()> is_cancelled;
};

// How long a rendezvous takes at most.
Seconds rendezvous_timeout(const CommunicatorOptions& options);

// Fails with kTimeout within peer_timeout + 10 s, naming the missing ranks; with kUnavailable some
// 1 s after a rank's process ended, naming it, and when the rendezvous is off.
Result<RendezvousResult> run_rendezvous(ListenEndpoint listen_endpoint, const RendezvousPlan& plan,
                                        const CommunicatorOptions& options);
// The same, after the exchange told the endpoints.
Result<RendezvousResult> run_rendezvous(int rank, int world_size, const Exchange& exchange,
                                        const CommunicatorOptions& options);

}  // namespace regatta::comm
