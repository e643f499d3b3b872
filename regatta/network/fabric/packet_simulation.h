// fabric/packet_simulation.h: the finest level of simulation: a NIC sends each packet, which waits
// in the queues of store-and-forward switches, and arrives.
#pragma once

#include <atomic>
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

// The longest queue of each link over time, in a bounded number of equal bins: when they are used
// up, pairs of bins merge into bins of twice the width.
class QueueHistory {
 public:
  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  QueueHistory(std::size_t links, std::size_t bins, double width);

  // At most `bytes` waited for the link from `begin` to `end`, in seconds, 0 <= begin <= end.
  void add(std::uint32_t link, double bytes, double begin, double end);

  // Widens the bins until `end`, in seconds, is in one.
  void reach(double end) { bins_.reach(end); }

  double width() const { return bins_.width(); }     // seconds
  std::size_t used() const { return bins_.used(); }  // bins, up to the last one that is not empty
  double bytes(std::uint32_t link, std::size_t bin) const { return bins_.at(link, bin); }

 private:
  TimeBins bins_;
};

// Priority flow control (IEEE 802.1Qbb) of a lossless fabric: a switch that holds more than `xoff`
// bytes from one link pauses its other end, and resumes it at `xon` bytes or fewer. The pause frame
// takes the latency of the link.
struct PfcOptions {
  Bytes xoff{200'000};
  Bytes xon{150'000};
  std::optional<Bytes> headroom;  // above xoff; none: as much as the link can need
};

// Explicit congestion notification: the queue that a packet meets at a link marks it: never up to
// `from` bytes, always above `to`, in between with a probability that rises to `most`.
struct EcnOptions {
  Bytes from{50'000};   // Kmin of DCQCN, for 400 Gbit/s
  Bytes to{2'000'000};  // Kmax
  double most = 0.01;   // Pmax
};

// How packets are spread over equally good paths.
enum class LoadBalancing : std::uint8_t {
  kHash,           // by the 5-tuple: all packets of a connection take one path
  kConnections,    // a sender takes the paths of the pair's connections in turn
  kRandom,         // each switch draws a hop for each packet
  kRoundRobin,     // each switch takes its hops in turn
  kFlowlets,       // each switch takes the least loaded hop after a gap
  kShortestQueue,  // each switch takes the least loaded hop for each packet
};

// At a moment, links die or come back, or switches choose by other routes. A dead link loses all
// packets in both directions. A connection on a hashed path that loses a packet so stops, and sends
// lost packets again until they arrive; a sprayed one goes on. Packets lost at a NIC whose link
// never comes back are not sent again.
struct Outage {
  Seconds at;
  std::vector<LinkId> dead;        // from then on
  std::vector<LinkId> back;        // from then on
  std::function<Routes()> routes;  // of all switches from then on; empty: as before
  std::vector<LinkId> stuck;  // from then on their NICs pause their switches and accept nothing
  std::vector<LinkId> freed;  // stuck links that work from then on
};

// A PFC watchdog for queues that stay paused, as switches have.
struct PfcStormOptions {
  Seconds period{0.02};  // of polls
  PfcWatchdogOptions rule;
};

// Packets that stand for several, so that fewer events are simulated: each message has about as
// many, unless they would be shorter than `least` or longer than the MTU.
struct CoarsePackets {
  std::uint32_t per_message = 32;  // >= 1
  Bytes least{4096};               // 1 to the MTU
};

struct PacketOptions {
  Bytes mtu{4096};                      // the most payload of a packet; 1 to 65,535
  std::optional<CoarsePackets> coarse;  // none: all are as long as the MTU but for the last ones
  Bytes header{30};                     // of each packet, besides its payload
  HashPolicy policy = HashPolicy::kFields;
  std::uint64_t seed = 1;  // of all random numbers
  LoadBalancing load_balancing = LoadBalancing::kHash;
  Seconds flowlet_gap{10e-6};
  std::optional<PfcOptions> pauses;  // none: the fabric drops packets that find no room
  std::optional<Bytes> buffer;       // of each link, without pauses; none: unlimited
  Seconds retransmit_after{1e-4};    // each lost packet by itself, before all others
  std::optional<EcnOptions> marks;
  std::optional<Dcqcn> rate_control;      // of each connection; does nothing without marks
  std::vector<Outage> outages;            // by time
  std::optional<PfcStormOptions> storms;  // does nothing without pauses
  LinkHistory* history = nullptr;  // records bytes on links over time; over a fast-forward, evenly
  QueueHistory* queues = nullptr;  // records the queue of each link over time
  // Called for each flow once it has arrived, in that order.
  std::function<void(std::uint32_t flow, const FlowTimes& times)> on_arrived;
  const std::atomic<bool>* stop = nullptr;  // ends the simulation early once it is true
};

// Links inside servers, which do not pause, drop or mark.
struct IntraServerLinks {
  Links links;  // alternately out of a device (even) and into it (odd)
  struct Path {
    std::uint32_t out = ~0U;  // of the sender; ~0U: it takes no time
    std::uint32_t into = ~0U;
  };
  std::vector<Path> paths;  // of the first pairs; pairs of two NICs have none
};

// The fabric and the pairs that send over it: the path of a flow is an index into `pairs`.
struct PacketSetup {
  const topo::Graph& graph;
  const Routes& routes;
  std::span<const std::uint32_t> seeds;  // of the switches' hashes, by NodeId
  const NicPairs& pairs;
  const IntraServerLinks* intra_server_links =
      nullptr;  // numbered after both directions of the graph's links
};

struct LinkPauseTotals {
  std::uint64_t count = 0;
  Seconds time;  // in all
};

struct PfcStorm {
  Seconds since;  // the first poll from which on the rule held
  Seconds at;     // of detection
  std::optional<Seconds> over;
  PauseTree tree;  // of links that were held meanwhile
  // Without `over`: the links nearest to its root are still held at the end of the simulation; if
  // not, the rule was still to report its recovery.
  bool is_held = false;
};

// The report of the flow level (bytes_of_link: without headers), plus packet statistics. A flow
// that has not arrived when nothing moves any more has infinite times.
struct PacketReport : FlowReport {
  std::vector<double> longest_queue;  // per link, in bytes
  std::vector<double> mean_queue;     // the same, over the packets that met it
  std::vector<std::uint64_t> marks_of_link;
  std::vector<LinkPauseTotals> pauses_of_link;
  std::uint64_t packets = 0;    // arrived
  std::uint64_t crossings = 0;  // of links by packets
  std::uint64_t events = 0;
  std::uint64_t marks = 0;
  std::uint64_t cnps = 0;  // congestion notification packets to connections
  std::uint64_t pauses = 0;
  std::uint64_t lost_on_links = 0;  // packets, on dead links or without a path; sent again
  std::uint64_t lost = 0;           // packets that found no room; sent again
  // Packets that crossed too many links, lost their path for good, or whose NIC never comes back.
  std::uint64_t expired = 0;
  std::size_t not_arrived = 0;  // flows
  // Packets that arrived after one sent later on their connection, and the most packets of a
  // connection that a receiver held back until all earlier ones had arrived.
  std::uint64_t reordered = 0;
  std::uint32_t reorder_buffer_peak = 0;
  Seconds quiescent_at;      // of the last event
  DependencyCycle deadlock;  // links that wait for each other for ever; empty: none do
  // Where nothing moves any more, also those that the watchdog would find later.
  std::vector<PfcStorm> storms;
};

// A connection sends its messages one after the other, as fast as its NIC and its rate control
// allow; the connections of a NIC take turns, packet by packet. Fails with kInvalidInput where
// flows wait for each other in a cycle, an option is out of range, or no path joins a pair.
// Deterministic for a seed.
Result<PacketReport> simulate_packets(const PacketSetup& setup, const FlowGraph& traffic,
                                      const PacketOptions& options = {});

// The mixed level simulates packets until all senders have steady rates; then time fast-forwards to
// where the first of them is nearly done, with all queues as they are, and packets go on. A state
// that recurs, such as the pauses of an incast or the steps of a ring, is not simulated again.
// Parts of the traffic that share no link and no dependency fast-forward independently. Source:
// Wormhole, NSDI 2026, which fast-forwards and keeps its results.

struct MixedOptions {
  double tolerance = 0.01;   // relative error of the rates assumed as steady, at most
  double most_error = 0.02;  // error bound relative to the length of a fast-forward, at most
  Seconds window{2e-6};      // in which rates are measured first after a change
};

// The counts of packets, bytes and crossings include skipped ones; those of queues, marks and
// pauses do not.
struct MixedReport : PacketReport {
  Seconds bound;    // of the difference of a flow's times to the packet level
  Seconds skipped;  // simulated time that was skipped, mean of the flows
  std::uint64_t fast_forwards = 0;
  std::uint64_t fast_forwards_by_max_min = 0;  // with the rates of the flow level
  std::uint64_t fast_forwards_by_recurrence =
      0;  // repeating a simulated period; the others use measured rates
  // Periods of steps of a collective that were not simulated, since they repeat an earlier one.
  std::uint64_t cycles = 0;
};

// Simulates as simulate_packets() does, and fails likewise. It fast-forwards where packets take
// paths by the hash (LoadBalancing::kHash) and connections have no rate control; otherwise it is
// the packet level. Where it fast-forwards, on_arrived may be called only at the end.
Result<MixedReport> simulate_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                                   const PacketOptions& packets = {},
                                   const MixedOptions& options = {});

namespace packet {

// The same, for valid options.
Result<MixedReport> run_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                              const PacketOptions& packets, const MixedOptions& options);

}  // namespace packet
}  // namespace regatta::fabric
