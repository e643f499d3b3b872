// fabric/traffic.h: the traffic of a network: flows over paths, and their dependencies.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::fabric {

// Directed links, by number.
struct Links {
  std::vector<double> capacity;  // bytes per second, > 0
  std::vector<double> latency;   // seconds, >= 0

  // `rate` > 0, `delay` >= 0. Returns its number; the first one is 0.
  std::uint32_t add(BytesPerSecond rate, Seconds delay) {
    REGATTA_CHECK(rate.value > 0 && delay.value >= 0);
    capacity.push_back(rate.value);
    latency.push_back(delay.value);
    return static_cast<std::uint32_t>(capacity.size() - 1);
  }
};

// Paths through the network, each with its links in order, each link at most once; many flows may
// share a path. A path without links is inside a server and costs nothing.
class Paths {
 public:
  std::uint32_t add(std::span<const std::uint32_t> links);
  // A path over many links at once: `amounts` of each byte cross them (> 0; 0.5: every other byte;
  // 8: one flow for eight alike). Bytes arrive `latency` after they are sent.
  std::uint32_t add(std::span<const std::uint32_t> links, std::span<const double> amounts,
                    Seconds latency);
  std::span<const std::uint32_t> links(std::uint32_t path) const {
    return std::span(links_).subspan(first_[path], first_[path + 1] - first_[path]);
  }
  std::size_t size() const { return first_.size() - 1; }

  // Whether some path has amounts.
  bool has_amounts() const { return !amounts_.empty(); }
  double amount(std::uint32_t path, std::uint32_t hop) const {
    return amounts_.empty() ? 1 : amounts_[first_[path] + hop];
  }
  // From one end to the other, in seconds.
  double latency(std::uint32_t path, const Links& of) const;

  // Switches hold up to `bytes` that a sender has sent and that have not arrived, so that what
  // waits for After::kSent may begin before: the rest then takes path `rest`, this one without its
  // first link.
  struct SendAhead {
    std::uint32_t rest = 0;
    double bytes = 0;  // > 0
  };
  void set_send_ahead(std::uint32_t path, const SendAhead& ahead);
  // Null: what waits begins once all has arrived but for the latency.
  const SendAhead* send_ahead(std::uint32_t path) const {
    if (path >= send_aheads_.size() || send_aheads_[path].bytes <= 0) return nullptr;
    return &send_aheads_[path];
  }

  // Packets get lost by chance and are sent again: the amounts hold all of them, but the last one
  // arrives later.
  struct PacketLoss {
    double share = 0;        // of the packets, below 1
    double packet = 4096;    // bytes, > 0
    double again_after = 0;  // seconds
    double until = 0;        // seconds: from then on none is lost
  };
  void set_packet_loss(std::uint32_t path, const PacketLoss& loss) { losses_[path] = loss; }
  void end_packet_loss(std::uint32_t path, double time) { losses_.at(path).until = time; }
  // By how many seconds the last byte of a flow arrives later that was sent at `now`, as the last
  // of `bytes` at `rate` bytes per second.
  double loss_delay(std::uint32_t path, double bytes, double rate, double now) const;

 private:
  std::vector<std::uint32_t> first_ = {0};
  std::vector<std::uint32_t> links_;
  std::vector<double> amounts_;              // beside links_; empty: all 1
  std::map<std::uint32_t, double> latency_;  // of paths with amounts
  std::vector<SendAhead> send_aheads_;       // per path; without bytes: none
  std::map<std::uint32_t, PacketLoss> losses_;
};

// A dependent flow waits until a flow has left its sender, or has arrived (later by the latency of
// its path).
enum class After : std::uint8_t { kSent, kArrived };

class FlowGraph {
 public:
  // Sends `bytes` >= 0 over a path, `delay` >= 0 after all its dependencies. Returns its number;
  // the first one is 0, and there are fewer than 2^31.
  std::uint32_t add(std::uint32_t path, Bytes bytes, Seconds delay = Seconds{});
  // `flow` waits for `before`. A cycle of flows that wait for each other never starts.
  void depend(std::uint32_t flow, std::uint32_t before, After after = After::kArrived);
  void reserve(std::size_t flows, std::size_t waits);

  struct Flow {
    double bytes = 0;
    double delay = 0;  // seconds
    std::uint32_t path = 0;
    std::uint32_t pending_dependencies = 0;  // how many
  };
  struct Dependency {
    std::uint32_t before;
    std::uint32_t flow_and_after;  // 2 flow + After
  };
  const std::vector<Flow>& flows() const { return flows_; }
  const std::vector<Dependency>& dependencies() const { return dependencies_; }

 private:
  std::vector<Flow> flows_;
  std::vector<Dependency> dependencies_;
};

// ECMP as Linux routes: a switch chooses the next hop of a connection by a hash of its 5-tuple and
// the switch's seed.
//
// As kernels from 6.11 on compute it with net.ipv4.fib_multipath_hash_seed (not 0), on
// little-endian machines, for routes with several next hops, with or without weights, and without
// resilient groups. Sources: RFC 2992 (ranges of the hash); Aumasson and Bernstein, "SipHash: a
// fast short-input PRF", 2012; Jenkins, lookup3, 2006; compared with a running kernel.

// Addresses and ports in host order: 10.0.0.1 is 0x0a000001.
struct FiveTuple {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint8_t protocol = 17;  // UDP; 6: TCP

  friend auto operator<=>(const FiveTuple&, const FiveTuple&) = default;
};

// Values of net.ipv4.fib_multipath_hash_policy that use the 5-tuple.
enum class HashPolicy : std::uint8_t {
  kLayer4 = 1,  // a packet that the machine itself sends or receives may carry another hash
  kFields = 3,  // with fib_multipath_hash_fields 0x37: no other hash. The lab's switches.
};

// The hash of a flow; equal for both directions of a connection.
std::uint32_t ecmp_hash(const FiveTuple& flow, std::uint32_t seed, HashPolicy policy);

// The index in the route of the one of `hops` >= 1 next hops for this hash.
std::size_t ecmp_choice(std::uint32_t hash, std::size_t hops);

// The same where next hop i has `weights[i]` >= 1: its range of the hash is proportional. A gateway
// that is named twice has two ranges.
std::size_t ecmp_choice(std::uint32_t hash, std::span<const int> weights);

// For Routes::path(): each switch hashes with its own seed.
struct EcmpNextHop {
  FiveTuple flow;
  std::span<const std::uint32_t> seeds;  // by NodeId
  HashPolicy policy = HashPolicy::kFields;
  std::size_t operator()(NodeId node, std::size_t hops) const {
    return ecmp_choice(ecmp_hash(flow, seeds[node.index()], policy), hops);
  }
};

// SipHash-2-4 of whole 8-byte words.
std::uint64_t siphash(std::span<const std::uint64_t> words, std::uint64_t key0, std::uint64_t key1);

// Pairs of NICs, each joined by connections; their ports determine their paths through switches
// that hash.

inline constexpr std::uint16_t kRoceV2Port = 4791;
inline constexpr std::uint16_t kFirstFreePort = 49152;  // of the dynamic ports of the IANA
inline constexpr std::uint32_t kFreePorts = 16384;

// NICs by their links (topo::nic_link()). The same NIC twice: inside a server, without a cable.
struct NicPair {
  LinkId from;
  LinkId to;
};

// The paths of a FlowGraph are indices of pairs where a level of simulation chooses paths itself.
struct NicPairs {
  std::vector<NicPair> pairs;
  std::uint32_t connections = 1;     // of each pair; a message is divided evenly among them
  std::vector<std::uint16_t> ports;  // source ports: pair * connections + connection

  // Adds a pair with ports that differ among connections like ephemeral ports of a kernel. Returns
  // its number.
  std::uint32_t add(LinkId from, LinkId to) {
    const auto number = static_cast<std::uint32_t>(pairs.size());
    pairs.push_back({from, to});
    for (std::uint32_t i = 0; i < connections; ++i) {
      const std::uint32_t at = (number * connections + i) * 2654435761U >> 18U;  // golden ratio
      ports.push_back(static_cast<std::uint16_t>(kFirstFreePort + at % kFreePorts));
    }
    return number;
  }

  FiveTuple tuple(std::uint32_t pair, std::uint32_t connection) const {
    REGATTA_CHECK(connection < connections);
    return {.from = topo::address_of(pairs[pair].from),
            .to = topo::address_of(pairs[pair].to),
            .from_port = ports[std::size_t{pair} * connections + connection],
            .to_port = kRoceV2Port,
            .protocol = 17};
  }
};

// Pairs of the patterns of planning and simulation, and of a file (docs/formats/pairs.md).

// Each server sends to the next one, the last one to the first, by all NICs that both have: a ring
// of each rail.
NicPairs ring_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                    std::uint32_t connections);

// A random permutation of the servers for each NIC: each sends to one other and receives from one.
// Servers with other NICs than the first one do not take part.
NicPairs permutation_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                           std::uint32_t connections, std::uint64_t seed);

// The pairs of `text`, a line each: two NICs like s0.nic1. Fails with kInvalidInput naming `file`,
// line and remedy.
Result<NicPairs> parse_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                             std::uint32_t connections, std::string_view text,
                             const std::string& file);

// "s0.nic1" for the link of a NIC.
std::string nic_name(const topo::Graph& graph, LinkId nic);

// The flows of collective algorithms, with their dependencies. Ranks are numbers from 0, at least
// one; path(from, to) returns the number of a path between two of them. Bytes that do not divide
// are rounded down for each message. As all flows, those of a collective are fewer than 2^31.

// Ring all-reduce of `bytes` on each of `ranks`, 0 -> 1 -> ... -> 0: in each of 2 (ranks - 1) steps
// a rank sends a chunk of bytes / ranks to the next one, once it has received and sent the chunks
// of the step before. Flow number: step * ranks + rank.
template <typename Path>
void add_ring_all_reduce(FlowGraph& traffic, std::uint32_t ranks, Bytes bytes, Path&& path) {
  const std::uint32_t steps = ranks < 2 ? 0 : 2 * (ranks - 1);
  const auto base = static_cast<std::uint32_t>(traffic.flows().size());
  traffic.reserve(base + std::size_t{steps} * ranks,
                  traffic.dependencies().size() + 2 * std::size_t{steps} * ranks);
  std::vector<std::uint32_t> paths;
  for (std::uint32_t rank = 0; rank < ranks && steps != 0; ++rank)
    paths.push_back(path(rank, (rank + 1) % ranks));
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t flow = traffic.add(paths[rank], {bytes.value / ranks});
      if (step == 0) continue;
      const std::uint32_t before = base + (step - 1) * ranks;
      traffic.depend(flow, before + rank, After::kSent);
      traffic.depend(flow, before + (rank + ranks - 1) % ranks, After::kArrived);
    }
  }
}

// All-to-all: each of `ranks` sends bytes / ranks to each other one at once.
template <typename Path>
void add_all_to_all(FlowGraph& traffic, std::uint32_t ranks, Bytes bytes, Path&& path) {
  traffic.reserve(traffic.flows().size() + std::size_t{ranks} * (ranks - 1),
                  traffic.dependencies().size());
  for (std::uint32_t from = 0; from < ranks; ++from)
    for (std::uint32_t to = 0; to < ranks; ++to)
      if (from != to) traffic.add(path(from, to), {bytes.value / ranks});
}

// All-reduce by halving and doubling: log2(ranks) exchanges of halves, quarters, ..., and back.
// `ranks` is a power of two. Source: Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", 2005, section 4.4. Flow number: step * ranks + rank.
template <typename Path>
void add_halving_doubling(FlowGraph& traffic, std::uint32_t ranks, Bytes bytes, Path&& path) {
  REGATTA_CHECK(std::has_single_bit(ranks));
  const auto levels = static_cast<std::uint32_t>(std::countr_zero(ranks));
  const auto base = static_cast<std::uint32_t>(traffic.flows().size());
  for (std::uint32_t step = 0; step < 2 * levels; ++step) {
    const auto distance = [levels](std::uint32_t at) {
      return 1U << (at < levels ? levels - 1 - at : at - levels);
    };
    const long long part = bytes.value * distance(step) / ranks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t flow = traffic.add(path(rank, rank ^ distance(step)), {part});
      if (step == 0) continue;
      const std::uint32_t before = base + (step - 1) * ranks;
      traffic.depend(flow, before + rank, After::kSent);
      traffic.depend(flow, before + (rank ^ distance(step - 1)), After::kArrived);
    }
  }
}

}  // namespace regatta::fabric
