// diag/internal/counter_evidence.h: what the counters of ports say about verdicts on links, and
// links whose counters show errors without a verdict. Pure.
//
// Packets that arrive broken and carriers that go are signs of a fault, of a bad cable or port.
// Packets that are dropped without an error wait for no cable: queues are full. They are reported
// and change nothing. A switch that forwards before it has read a packet to its end passes broken
// ones on; what it may have received in that state does not count against its own links.
// Idea: Zhuo et al., "Understanding and mitigating packet corruption in data center networks",
// SIGCOMM 2017.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/observation.h"

namespace regatta::diag {

// The counts of a port in a span of time.
struct PortGrowth {
  PortNumber port = 0;
  Seconds span;
  std::optional<std::uint64_t> in_packets;
  std::optional<std::uint64_t> in_errors;
  std::optional<std::uint64_t> in_drops;
  std::optional<std::uint64_t> out_errors;
  std::optional<std::uint64_t> out_drops;
};

enum class CounterOpinion : std::uint8_t {
  kNone,       // too little is known, or the culprit is no cable
  kAgrees,     // packets arrive broken over the cable
  kDisagrees,  // none did, of so many that some were due
};

struct CounterFindings {
  CounterOpinion opinion = CounterOpinion::kNone;
  std::vector<PortGrowth> ports;  // at both ends of its links, as far as they have readings
  std::uint64_t errors = 0;       // of packets that arrived over its links
};

// No verdict: probes have seen nothing.
struct CounterSuspicion {
  Culprit culprit;    // one direction of a cable
  PortGrowth growth;  // of the port at its end
};

// A switch or server whose readings have stopped, or have come again.
struct CounterSilence {
  NodeId node;
  bool is_stale = false;
  Seconds silence;  // since its last reading; 0 when they have come again
};

// Holds at most 36 readings of each port: those of the last 10 s a second apart or more, older ones
// five, of the last two minutes or the last four readings. A port whose readings have stopped for
// longer than three times what lay between its last two, at least 15 s and at most 5 min, gives no
// evidence.
class CounterEvidence {
 public:
  // The graph must outlive this.
  explicit CounterEvidence(const topo::Graph& graph);

  // Ignores ports that no cable has. A port begins anew where time goes back, a counter where it
  // decreases.
  void add(const PortReading& reading);

  // Directed links over which packets arrive broken that were not so before: in the 10 s before the
  // last reading, or since the one before. Ascending.
  std::vector<std::uint32_t> links_with_errors(Seconds now) const;
  // About a culprit that has lost `loss_share` of its packets since `since`: what its ports have
  // counted from then on, or from the reading before it.
  CounterFindings about(const Culprit& culprit, double loss_share, Seconds since,
                        Seconds now) const;
  // A link over which packets go on arriving broken and which no active fault or alternative of one
  // crosses, each once in ten minutes at most. Looks once a second.
  std::optional<CounterSuspicion> consume_suspicion(std::span<const FaultVerdict> active,
                                                    Seconds now);
  std::vector<CounterSilence> consume_silences(Seconds now);

 private:
  static constexpr std::size_t kKinds = 5;  // of counters, in the order of PortReading
  struct Sums {
    Seconds at;
    Seconds after;  // when the one before it was read, which may be held no more
    std::array<std::uint64_t, kKinds> counts{};  // since the first reading
    std::array<bool, kKinds> is_known{};         // to this reading
  };
  struct Port {
    std::array<std::optional<std::uint64_t>, kKinds> raw;  // as last read
    std::vector<Sums> sums;  // ascending; the last one is the last reading
    Seconds interval{30};    // between the last two readings

    Seconds silent_after() const;
  };
  struct Node {
    Seconds last{-1};  // reading
    Seconds silent_after;
    bool is_stale = false;
  };

  void hold(Port& port, Sums sums);
  bool is_fresh(PortNumber port, Seconds now) const;
  PortGrowth growth_since(PortNumber port, Seconds since) const;
  std::uint64_t errors_at(PortNumber port, Seconds since, Seconds now) const;
  std::uint64_t own_errors(std::uint32_t link, Seconds since, Seconds now) const;
  std::uint64_t recent_errors(std::uint32_t link, Seconds now) const;
  bool goes_on(PortNumber port) const;
  bool is_suspect(PortNumber port, Seconds now) const;

  const topo::Graph& graph_;
  std::vector<Port> ports_;                     // by number
  std::set<PortNumber> erring_;                 // those that have counted errors of late
  std::map<NodeId, Node> nodes_;                // those with readings
  std::map<std::uint32_t, Seconds> suspected_;  // when, by directed link
  Seconds next_look_{-1e9};
};

}  // namespace regatta::diag
