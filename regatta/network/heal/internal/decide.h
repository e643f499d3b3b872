// heal/internal/decide.h: next hops that the switches of a fabric should avoid while parts of it
// are broken: each switch keeps the best paths left, never none.
//
// Every switch keeps, for each destination leaf, those of its shortest next hops whose paths have
// the least harm; only shortest paths count, as with equal-cost BGP in a CLOS (RFC 7938), so that
// no loop can arise. If every path is broken the least broken all stay, as without a healer, and so
// does the first of them that is repaired: a withdrawal that would cut a leaf off is refused and
// reported.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::heal {

enum class Harm : std::uint8_t {
  kLoss,       // some packets
  kBlackHole,  // all packets, of all flows or of some
  kNoCarrier,  // it is down, as one of its ends reports
};

enum class Place : std::uint8_t {
  kLink,    // one direction of a link
  kSwitch,  // everything that crosses it
  kHop,     // one direction of a link, for traffic to one leaf: all that is known of the path
};

struct Fault {
  Place place = Place::kLink;
  std::uint32_t link = 0;  // kLink, kHop: by fabric::number_of()
  NodeId node;             // kSwitch: itself; kHop: the destination leaf
  Harm harm = Harm::kBlackHole;

  // The same place, whatever its harm.
  bool is_at(const Fault& other) const {
    return place == other.place && link == other.link && node == other.node;
  }
  friend auto operator<=>(const Fault&, const Fault&) = default;
};

// The paths of a fabric as they are meant to be.
struct FabricPaths {
  explicit FabricPaths(const topo::Graph& graph);

  fabric::Routes routes;
  std::vector<NodeId> start_of;               // per directed link
  std::vector<NodeId> end_of;                 // per directed link
  std::vector<std::vector<NodeId>> switches;  // per leaf of routes.leaves(): those with a path
                                              // there, nearest first
};

// `node` should send traffic to `leaf` by these next hops only: some of those of routes, in their
// order.
struct Withdrawal {
  NodeId node;
  NodeId leaf;
  std::vector<std::uint32_t> left;

  friend bool operator==(const Withdrawal&, const Withdrawal&) = default;
};

// Traffic between two leaves has no path that avoids this fault.
struct RefusedWithdrawal {
  NodeId from;
  NodeId to;
  std::size_t fault = 0;  // place in what decide() was given

  friend bool operator==(const RefusedWithdrawal&, const RefusedWithdrawal&) = default;
};

// A fault that keeps out paths on which probes lose less than on those left in use, of which the
// broken one may not have been named yet.
struct CostlyFault {
  std::size_t fault = 0;  // place in what decide() was given
  double in_use = 0;      // the largest share lost on paths in use instead,
  double if_used = 0;     // and on the path that it keeps out

  friend bool operator==(const CostlyFault&, const CostlyFault&) = default;
};

struct Decision {
  std::vector<Withdrawal> withdrawals;  // by (leaf, node), only where a hop is missing
  std::vector<RefusedWithdrawal> refusals;
  std::vector<CostlyFault> costly;  // by their place in the list
};

class PathLosses;

// `faults`: oldest first; a refusal names the youngest of equal harm. `losses`: what probes lose on
// each link; null: nothing is known. Time: switches x leaves x next hops.
Decision decide(const FabricPaths& paths, std::span<const Fault> faults,
                const PathLosses* losses = nullptr);

// "leaf0-spine1 from leaf0 to spine1", "switch spine0", "leaf0-spine1 from leaf0 towards leaf2".
std::string to_string(const topo::Graph& graph, const Fault& fault);

}  // namespace regatta::heal
