// fabric/packet_simulation.h: what becomes of each packet: it is sent by a NIC, waits in the
// queues of switches that store and forward, and arrives. The finest level of simulation.
#pragma once

#include <cstddef>
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
#include "regatta/network/fabric/internal/pfc_watchdog.h"
#include "regatta/network/fabric/internal/time_bins.h"
#include "regatta/network/fabric/port_pfc_watchdog.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// How much waited for each link at most when, in a bounded number of equal
// bins of time: as time goes on they become twice as long, two in one.

class QueueHistory {
 public:
  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  QueueHistory(std::size_t links, std::size_t bins, double width);

  // At most `bytes` waited for the link from `begin` to `end`, in seconds, 0 <= begin <= end.
  void add(std::uint32_t link, double bytes, double begin, double end);

  double width() const { return bins_.width(); }  // seconds
  std::size_t used() const {
    return bins_.used();
  }  // bins, up to the last one that something is in
  double bytes(std::uint32_t link, std::size_t bin) const { return bins_.at(link, bin); }

 private:
  TimeBins bins_;
};

// A lossless fabric: a switch that holds more than `xoff` bytes that came by one link asks its
// other end to pause, and to go on when they are no more than `xon` (priority flow control, IEEE
// 802.1Qbb). The pause frame takes the latency of the link.
struct PfcOptions {
  Bytes xoff{200'000};
  Bytes xon{150'000};
  std::optional<Bytes> headroom;  // behind xoff; none: as much as the link can need
};

// Packets are marked by the queue that they meet at a link (explicit congestion notification):
// never up to `from` bytes, always above `to`, in between by a chance that rises to `most`.
struct EcnOptions {
  Bytes from{50'000};   // Kmin of DCQCN, for 400 Gbit/s
  Bytes to{2'000'000};  // Kmax
  double most = 0.01;   // Pmax
};

// How packets are spread over equally good paths.
enum class LoadBalancing : std::uint8_t {
  kHash,           // by the 5-tuple: all of a connection's go one path
  kConnections,    // a sender leads its packets over the paths of the pair's connections in turn
  kRandom,         // each switch by chance for each packet
  kRoundRobin,     // each switch in turn
  kFlowlets,       // each switch the least loaded hop for what comes after a gap
  kShortestQueue,  // each switch the least loaded hop for each packet
};

// At a moment, links die or come back, or switches choose by other routes. A dead link eats what
// crosses it, in both directions. Who sends over a path that hashes and loses a packet so stops,
// and sends again what was lost until it arrives; who sprays goes on. What is lost at a NIC whose
// link never comes back is not sent again.
struct Outage {
  Seconds at;
  std::vector<LinkId> dead;        // from then on
  std::vector<LinkId> back;        // from then on
  std::function<Routes()> routes;  // of all switches from then on; empty: as before
  std::vector<LinkId> stuck;       // their NICs ask their switches to pause, and let nothing in,
  std::vector<LinkId> freed;       // and from then on no longer
};

// A watch on the queues of switches that pauses hold for good, as switches have.
struct PfcStormOptions {
  Seconds period{0.02};  // of polls
  PfcWatchdogOptions rule;
};

struct PacketOptions {
  Bytes mtu{4096};   // of a message in one packet, at most; 1 to 65,535
  Bytes header{30};  // that each packet has beside it on the wire
  HashPolicy policy = HashPolicy::kFields;
  std::uint64_t seed = 1;  // of all that is drawn
  LoadBalancing load_balancing = LoadBalancing::kHash;
  Seconds flowlet_gap{10e-6};
  std::optional<PfcOptions> pauses;  // none: the fabric drops what finds no room
  std::optional<Bytes> buffer;       // of each link, without pauses; none: without end
  Seconds retransmit_after{1e-4};    // what was lost: each packet by itself, before all others
  std::optional<EcnOptions> marks;
  std::optional<Dcqcn> rate_control;      // of each connection; does nothing without marks
  std::vector<Outage> outages;            // by time
  std::optional<PfcStormOptions> storms;  // does nothing without pauses
  LinkHistory* history = nullptr;  // gets what crosses each link when; over a fast-forward, evenly
  QueueHistory* queues = nullptr;  // gets how much waited for each link when
  // Called for each flow once it has arrived, in the order of that.
  std::function<void(std::uint32_t flow, const FlowTimes& times)> on_arrived;
};

// Links inside servers, as plain intra_server_links, which pause nobody, drop and mark nothing.
struct IntraServerLinks {
  Links links;  // out of a device (even) and into it (odd), in turn
  struct Path {
    std::uint32_t out = ~0U;  // of the sender; none: it takes no time
    std::uint32_t into = ~0U;
  };
  std::vector<Path> paths;  // of the first pairs; those of two NICs have none
};

// The fabric, and who sends over it: `pairs` are what flows of the traffic name as paths.
struct PacketSetup {
  const topo::Graph& graph;
  const Routes& routes;
  std::span<const std::uint32_t> seeds;  // of the switches' hashes, by NodeId
  const NicPairs& pairs;
  const IntraServerLinks* intra_server_links =
      nullptr;  // numbered behind both directions of the graph's links
};

struct LinkPauseTotals {
  std::uint64_t count = 0;
  Seconds time;  // in all
};

struct PfcStorm {
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
  std::vector<LinkPauseTotals> pauses_of_link;
  std::uint64_t packets = 0;    // that arrived
  std::uint64_t crossings = 0;  // of links by packets
  std::uint64_t events = 0;
  std::uint64_t marks = 0;
  std::uint64_t cnps = 0;  // to connections, of congestion
  std::uint64_t pauses = 0;
  std::uint64_t lost_on_links = 0;  // packets, on dead links or for want of a path; sent again
  std::uint64_t lost = 0;           // packets that found no room; sent again
  // That crossed too many links, lost their path for good, or whose NIC never comes back.
  std::uint64_t expired = 0;
  std::size_t not_arrived = 0;  // flows
  // Packets that came after one sent later on their connection, and the most of a connection that a
  // receiver held back until all before them had come.
  std::uint64_t reordered = 0;
  std::uint32_t reorder_buffer_peak = 0;
  Seconds quiescent_at;      // nothing happened any more
  DependencyCycle deadlock;  // links that wait for each other for ever; empty: none do
  // Where nothing moves any more, as the watch would find them that goes on.
  std::vector<PfcStorm> storms;
};

// A connection sends its messages one after the other, as fast as its NIC can or its rate control
// says: the connections of a NIC take turns, packet by packet. Fails with kInvalidInput where flows
// wait for each other in a cycle, an option is out of its range, or no path leads from one of a
// pair to the other. Deterministic for a seed.
Result<PacketReport> simulate_packets(const PacketSetup& setup, const FlowGraph& traffic,
                                      const PacketOptions& options = {});

// Packets where things change, and what they say where nothing
// does. Each packet is simulated until all that send do so at rates that stay; then time
// fast-forwards to where the first of them is nearly done, with all queues as they are, and packets
// go on. What has come once comes again where the state is the same: pauses of an incast, steps of
// a ring. Traffic that has no link and no wait in common fast-forwards each for itself. The ideas:
// Wormhole, NSDI 2026, which fast-forwards and keeps what it simulated.

struct MixedOptions {
  double tolerance = 0.01;   // how far rates may be from those that are taken for them
  double most_error = 0.02;  // of a fast-forward, as a part of it: a longer bound is not worth it
  Seconds window{2e-6};      // over which they are measured at first, after a change
};

// The counts of packets, bytes and crossings hold those skipped too; queues, marks and pauses
// are those that were simulated.
struct MixedReport : PacketReport {
  Seconds bound;    // no flow's times are farther from those of the packet level
  Seconds skipped;  // of the simulated time, in the mean of the flows
  std::uint64_t fast_forwards = 0;
  std::uint64_t fast_forwards_by_max_min = 0;  // with the rates of the flow level
  std::uint64_t fast_forwards_by_recurrence =
      0;  // by what was simulated once; the others as measured
  // Periods of steps of a collective that were not simulated, for they were like one before.
  std::uint64_t cycles = 0;
};

// As simulate_packets(). It fast-forwards where packets go by the hash alone (LoadBalancing::kHash)
// and connections have no rate control; otherwise it is the packet level. Where it fast-forwards,
// flows may be told to have arrived at the end of the simulation alone. Fails as that does, and
// where an option is out of its range.
Result<MixedReport> simulate_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                                   const PacketOptions& packets = {},
                                   const MixedOptions& options = {});

namespace packet {

// The same, of options that are in their range.
Result<MixedReport> run_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                              const PacketOptions& packets, const MixedOptions& options);

}  // namespace packet
}  // namespace regatta::fabric
