// fabric/packet_simulation.h: what becomes of each packet: it is sent by a NIC, waits in the
// queues of switches that store and forward, and arrives. The finest level of simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/internal/packet/rate_control.h"
#include "regatta/network/fabric/internal/pause_watch.h"
#include "regatta/network/fabric/pairs.h"
#include "regatta/network/fabric/pause_tree.h"
#include "regatta/network/fabric/queue_history.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// A lossless fabric: a switch that holds more than `xoff` bytes that came by one link asks its
// other end to pause, and to go on when they are no more than `xon` (priority flow control, IEEE
// 802.1Qbb). The word takes the latency of the link.
struct Pauses {
  Bytes xoff{200'000};
  Bytes xon{150'000};
  std::optional<Bytes> headroom;  // behind xoff; none: as much as the link can need
};

// Packets are marked by the queue that they meet at a link (explicit congestion notification):
// never up to `from` bytes, always above `to`, in between by a chance that rises to `most`.
struct Marks {
  Bytes from{50'000};   // Kmin of DCQCN, for 400 Gbit/s
  Bytes to{2'000'000};  // Kmax
  double most = 0.01;   // Pmax
};

// How packets are spread over equally good ways.
enum class Spread : std::uint8_t {
  kHash,           // by the 5-tuple: all of a connection's go one way
  kConnections,    // a sender leads its packets over the ways of the pair's connections in turn
  kRandom,         // each switch by chance for each packet
  kRoundRobin,     // each switch in turn
  kFlowlets,       // each switch the least loaded hop for what comes after a gap
  kShortestQueue,  // each switch the least loaded hop for each packet
};

// At a moment, links die or come back, or switches choose by other routes. A dead link eats what
// crosses it, in both directions. Who sends over a way that hashes and loses a packet so stops, and
// sends again what was lost until it arrives; who sprays goes on. What is lost at a NIC whose link
// never comes back is not sent again.
struct Outage {
  Seconds at;
  std::vector<LinkId> dead;        // from then on
  std::vector<LinkId> back;        // from then on
  std::function<Routes()> routes;  // of all switches from then on; empty: as before
  std::vector<LinkId> stuck;       // their NICs ask their switches to pause, and let nothing in,
  std::vector<LinkId> freed;       // and from then on no longer
};

// A watch on the queues of switches that pauses hold for good, as switches have.
struct StormOptions {
  Seconds period{0.02};  // of polls
  PauseOptions rule;
};

struct PacketOptions {
  Bytes mtu{4096};   // of a message in one packet, at most; 1 to 65,535
  Bytes header{30};  // that each packet has beside it on the wire
  HashPolicy policy = HashPolicy::kFields;
  std::uint64_t seed = 1;  // of all that is drawn
  Spread spread = Spread::kHash;
  Seconds flowlet_gap{10e-6};
  std::optional<Pauses> pauses;    // none: the fabric drops what finds no room
  std::optional<Bytes> buffer;     // of each link, without pauses; none: without end
  Seconds send_again_after{1e-4};  // what was lost: each packet by itself, before all others
  std::optional<Marks> marks;
  std::optional<Dcqcn> rate_control;   // of each connection; does nothing without marks
  std::vector<Outage> outages;         // by time
  std::optional<StormOptions> storms;  // does nothing without pauses
  LinkHistory* history = nullptr;      // gets what crosses each link when; over a leap, evenly
  QueueHistory* queues = nullptr;      // gets how much waited for each link when
  // Called for each flow once it has arrived, in the order of that.
  std::function<void(std::uint32_t flow, const FlowTimes& times)> on_arrived;
};

// Links inside servers, as plain pipes, which pause nobody, drop and mark nothing.
struct Pipes {
  Links links;  // out of a device (even) and into it (odd), in turn
  struct Way {
    std::uint32_t out = ~0U;  // of the sender; none: it takes no time
    std::uint32_t into = ~0U;
  };
  std::vector<Way> ways;  // of the first pairs; those of two NICs have none
};

// The fabric, and who sends over it: `pairs` are what flows of the traffic name as paths.
struct PacketScene {
  const topo::Graph& graph;
  const Routes& routes;
  std::span<const std::uint32_t> seeds;  // of the switches' hashes, by NodeId
  const Pairs& pairs;
  const Pipes* pipes = nullptr;  // numbered behind both directions of the graph's links
};

struct LinkPauses {
  std::uint64_t count = 0;
  Seconds time;  // in all
};

struct PauseStorm {
  Seconds since;  // the first poll from which on the rule held
  Seconds at;     // when the watch knew
  std::optional<Seconds> over;
  PauseTree tree;  // of links that were held meanwhile
  // Where it is not told as over: pauses hold those nearest to its root still when all ends. Else
  // the recovery of the rule would have told its end later.
  bool is_held = false;
};

// What a flow level says too (bytes_of_link: without headers), and what only packets know. A flow
// that has not arrived when nothing moves any more has infinite times.
struct PacketReport : FlowReport {
  std::vector<double> longest_queue;  // per link: bytes that waited for it, at most
  std::vector<double> mean_queue;     // the same as packets met it
  std::vector<std::uint64_t> marks_of_link;
  std::vector<LinkPauses> pauses_of_link;
  std::uint64_t packets = 0;    // that arrived
  std::uint64_t crossings = 0;  // of links by packets
  std::uint64_t events = 0;
  std::uint64_t marks = 0;
  std::uint64_t notices = 0;  // to connections, of congestion
  std::uint64_t pauses = 0;
  std::uint64_t lost_on_links = 0;  // packets, on dead links or for want of a way; sent again
  std::uint64_t lost = 0;           // packets that found no room; sent again
  // That crossed too many links, lost their way for good, or whose NIC never comes back.
  std::uint64_t expired = 0;
  std::size_t not_arrived = 0;  // flows
  // Packets that came after one sent later on their connection, and the most of a connection that a
  // receiver held back until all before them had come.
  std::uint64_t reordered = 0;
  std::uint32_t most_held_back = 0;
  Seconds still;    // nothing happened any more
  Circle deadlock;  // links that wait for each other for ever; empty: none do
  // Where nothing moves any more, as the watch would find them that goes on.
  std::vector<PauseStorm> storms;
};

// A connection sends its messages one after the other, as fast as its NIC can or its rate control
// says: the connections of a NIC take turns, packet by packet. Fails with kInvalidInput where flows
// wait for each other in a circle, an option is out of its range, or no way leads from one of a
// pair to the other. Deterministic for a seed.
Result<PacketReport> simulate_packets(const PacketScene& scene, const Traffic& traffic,
                                      const PacketOptions& options = {});

}  // namespace regatta::fabric
