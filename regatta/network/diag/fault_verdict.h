// diag/fault_verdict.h: a fault of a cluster's network as data: the culprit, the evidence, and the
// confidence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"

namespace regatta::diag {

enum class CulpritKind : std::uint8_t {
  kNone,
  kLink,    // a cable between switches or, in one direction, of a NIC
  kSwitch,  // everything that crosses it suffers
  kNic,     // both directions of its cable: the NIC, the port that it hangs on, or the cable
  kServer,  // is dead, or all its NICs suffer
  // No fault of the network: the server was too busy to send, answer or read. Reported, never
  // blamed.
  kHostNoise,
  // Nothing is broken, but set up wrongly: reported, never routed around.
  kCabling,    // two cables are plugged in at each other's ports
  kAddresses,  // two NICs have one address
};

struct Culprit {
  CulpritKind kind = CulpritKind::kNone;
  LinkId link;            // kLink, kNic
  bool forward = false;   // kLink: from link.a to link.b suffers
  bool backward = false;  // kLink: from link.b to link.a suffers; both may be set
  NodeId node;            // kSwitch; kServer, kNic and kHostNoise: the server
  // kCabling: `link` is the cable of the smaller number, `other` the second one. kAddresses: `link`
  // is the cable of the NIC that the address is planned for, `node` the server that has it too, and
  // `other` the cable of that server's NIC where that is known.
  LinkId other{};

  friend auto operator<=>(const Culprit&, const Culprit&) = default;
};

Culprit link_culprit(topo::DirectedLink link);
Culprit both_directions_culprit(LinkId link);
Culprit nic_culprit(const topo::Graph& graph, LinkId link);
// Both directions of a cable: kNic if the cable belongs to a NIC.
Culprit cable_culprit(const topo::Graph& graph, LinkId link);
Culprit switch_culprit(NodeId node);
Culprit server_culprit(NodeId node);
Culprit host_noise_culprit(NodeId node);
Culprit cabling_culprit(LinkId one, LinkId other);

enum class Symptom : std::uint8_t {
  kLoss,       // some packets of every flow
  kBlackHole,  // all packets
  kSomeFlows,  // all packets of some flows, none of others: the forwarding plane has lost its path
  kNoCarrier,  // one end reports it
  kSilent,     // a server whose prober has stopped reporting
  kLate,       // host noise
  kLargePackets,  // all large packets of some or all flows, while small ones get through
  kUserPackets,   // the same of packets with the users' type of service, while probes get through
  kSwapped,       // kCabling
  kUsedTwice,     // kAddresses
};

// Whether packets of one variant only are lost (observation.h): kLargePackets, kUserPackets.
bool is_of_variant(Symptom symptom);

// Counts of probes whose path crosses the culprit. A probe and its answer are two paths where both
// ends reported their counts.
struct Evidence {
  std::uint32_t paths = 0;      // different 5-tuples
  std::uint32_t paths_hit = 0;  // those that lost something
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
};

struct FaultVerdict {
  Culprit culprit;
  Symptom symptom = Symptom::kLoss;
  double loss_share = 0;  // estimated, of the packets that cross the culprit
  Evidence evidence;
  // Probability, 0 to 1, that this or one of `alternatives`, which look the same to probes, is the
  // culprit rather than the next best explanation, including none.
  double confidence = 0;
  Seconds since;  // time of the first observed loss that it explains
  Seconds at;     // when the verdict was reached
  // Culprits that would cause the same observations; empty when the probes tell it apart.
  std::vector<Culprit> alternatives;
};

struct FaultChanges {
  std::vector<FaultVerdict> begun;  // includes host noise
  std::vector<FaultVerdict> over;
  std::vector<FaultVerdict> changed;  // last with another symptom than was reported
  bool is_empty() const { return begun.empty() && over.empty() && changed.empty(); }
};

// Whether the verdict calls for action: neither kNone nor kHostNoise.
bool is_fault(const FaultVerdict& verdict);
// Whether people have to correct it and nothing is to be routed around: kCabling, kAddresses.
bool is_misconfiguration(const Culprit& culprit);

// Numbers (fabric::number_of) of the directed links to avoid while the fault lasts; none for host
// noise and misconfigurations.
std::vector<std::uint32_t> links_to_avoid(const topo::Graph& graph, const Culprit& culprit);

std::string_view to_string(CulpritKind kind);  // "link", "host noise"
std::string_view to_string(Symptom symptom);   // "loss", "black hole"
// "link leaf0-spine1 from leaf0 to spine1", "nic s3.nic0", "switch spine0", "server s2",
// "cables leaf0-spine1 and leaf1-spine1", "address 10.64.0.0 of s0.nic0 and s4.nic0".
std::string to_string(const topo::Graph& graph, const Culprit& culprit);
// An instruction that would tell the culprit from this alternative: "read the error and drop
// counters of leaf0-spine1 at both ends: ...". Empty where both are the same.
std::string distinguishing_check(const topo::Graph& graph, const Culprit& culprit,
                                 const Culprit& alternative);
// "switch spine0: loss 4.8 %, 37 of 771 probes on 12 of 40 paths, confidence 0.999".
std::string to_string(const topo::Graph& graph, const FaultVerdict& verdict);

}  // namespace regatta::diag
