// diag/fault_verdict.h: what is broken in the network of a cluster, as data: the culprit, what
// speaks for it, and how sure that is.
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
  kSwitch,  // whatever goes through it suffers
  kNic,     // both directions of its cable: the NIC, the port that it hangs on, or the cable
  kServer,  // is dead, or all its NICs suffer
  // No fault of the network: the server was too busy to send, answer or look. Told, never blamed.
  kHostNoise,
};

struct Culprit {
  CulpritKind kind = CulpritKind::kNone;
  LinkId link;            // kLink, kNic
  bool forward = false;   // kLink: from link.a to link.b suffers
  bool backward = false;  // kLink: from link.b to link.a suffers; both may
  NodeId node;            // kSwitch; kServer, kNic and kHostNoise: the server

  friend auto operator<=>(const Culprit&, const Culprit&) = default;
};

Culprit link_culprit(topo::DirectedLink link);
Culprit both_directions_culprit(LinkId link);
Culprit nic_culprit(const topo::Graph& graph, LinkId link);
// Both directions of a cable: of a NIC where it is one's.
Culprit cable_culprit(const topo::Graph& graph, LinkId link);
Culprit switch_culprit(NodeId node);
Culprit server_culprit(NodeId node);
Culprit host_noise_culprit(NodeId node);

enum class Symptom : std::uint8_t {
  kLoss,       // some packets of every flow
  kBlackHole,  // all packets
  kSomeFlows,  // all packets of some flows, none of others: the forwarding plane has lost its path
  kNoCarrier,  // one end says so
  kSilent,     // a server whose prober says nothing any more
  kLate,       // host noise
};

// Counts of probes whose path leads over the culprit. A probe and its answer are two paths where
// both ends told what they saw.
struct Evidence {
  std::uint32_t paths = 0;      // different 5-tuples
  std::uint32_t paths_hit = 0;  // of these, those that lost something
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
};

struct FaultVerdict {
  Culprit culprit;
  Symptom symptom = Symptom::kLoss;
  double loss_share = 0;  // of what crosses the culprit, as estimated
  Evidence evidence;
  // That this, or one of `alternatives` which looks the same to probes, is the culprit rather than
  // the next best explanation, including none: 0 to 1.
  double confidence = 0;
  Seconds since;  // of the observations: the first loss that it explains
  Seconds at;     // when the verdict was reached
  // What the same observations would look like; empty when the probes tell it apart.
  std::vector<Culprit> alternatives;
};

// Whether somebody should act: neither kNone nor kHostNoise.
bool is_fault(const FaultVerdict& verdict);

// Directed links that should not be used while the culprit is as it is, by number
// (fabric::number_of); none for host noise.
std::vector<std::uint32_t> links_to_avoid(const topo::Graph& graph, const Culprit& culprit);

std::string_view to_string(CulpritKind kind);  // "link", "host noise"
std::string_view to_string(Symptom symptom);   // "loss", "black hole"
// "link leaf0-spine1 from leaf0 to spine1", "nic s3.nic0", "switch spine0", "server s2".
std::string to_string(const topo::Graph& graph, const Culprit& culprit);
// "switch spine0: loss 4.8 %, 37 of 771 probes on 12 of 40 paths, confidence 0.999".
std::string to_string(const topo::Graph& graph, const FaultVerdict& verdict);

}  // namespace regatta::diag
