// comm/internal/transport/bootstrap.h: the rendezvous of the ranks: opens the PeerChannel of every
// pair. Each rank listens on TCP and on an abstract unix socket, passes its endpoint to the
// exchange, and connects to every lower rank: by the unix socket when both name the same server (it
// then passes a memory file), else by TCP. Over TCP the lower rank then connects back: each side
// opens the connections that it sends over, from ports that a PathDiscovery chose. A handshake
// shows protocol, version, job token and rank; strangers are refused with a log line. Shared memory
// that cannot be opened falls back to TCP. A closed connection or listener shows that a process has
// ended; a rank that gives up sends the reason to the others. Two ranks of different servers that
// both have RDMA make a single TCP connection: both know it from the endpoints, and the handshake
// repeats it.
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
  SharedSegment shared_segment;         // this rank's; closed where there is none
  int paths = 1;                        // over equal-cost links, to the rank with the most
  std::shared_ptr<VerbsDevice> rdma;    // null where no channel uses it
};

// "rank 3 (s1/1)" when the options name it, else "rank 3".
std::string name_of(int rank, const CommunicatorOptions& options);

// The listener of a rank, open before the other ranks know its endpoint.
struct ListenEndpoint {
  SharedSegment shared_segment;
  BootstrapListener listener;
  std::shared_ptr<VerbsDevice> rdma;  // null where it is not used
  std::string endpoint;               // for the other ranks
};
// `host`: the name of the rank, for log lines. A rank that will be alone needs no shared segment.
Result<ListenEndpoint> open_listen_endpoint(const std::string& host, bool has_shared_segment,
                                            const CommunicatorOptions& options);

struct RendezvousPlan {
  int rank = 0;
  std::vector<std::string> endpoints;  // by rank
  std::uint64_t rendezvous_id = 0;     // handshakes with another number are refused
  Seconds path_discovery_time{2.0};    // for the paths to all ranks together
  // Polled: whether the rendezvous is cancelled. Null: never.
  std::function<bool()> is_cancelled;
};

// How long a rendezvous takes at most.
Seconds rendezvous_timeout(const CommunicatorOptions& options);

// Fails with kTimeout within peer_timeout + 10 s, naming the missing ranks; with kUnavailable some
// 1 s after a rank's process ended, naming it, and when the rendezvous is cancelled.
Result<RendezvousResult> run_rendezvous(ListenEndpoint listen_endpoint, const RendezvousPlan& plan,
                                        const CommunicatorOptions& options);
// The same, with the endpoints of the exchange.
Result<RendezvousResult> run_rendezvous(int rank, int world_size, const Exchange& exchange,
                                        const CommunicatorOptions& options);

}  // namespace regatta::comm
