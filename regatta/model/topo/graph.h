// topo/graph.h: the network of a cluster as nodes and links, with its equal-cost routes. The
// generator of the rail-optimised CLOS: build_graph() derives every switch and cable from
// topo::Fabric. The links that join servers to scale-up domains (topo::ScaleUp) are no part of it:
// what devices of one domain send to each other crosses none of these cables.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::topo {

enum class NodeKind { kServer, kLeaf, kSpine, kSuperSpine };

struct Node {
  NodeKind kind = NodeKind::kServer;
  std::string name;  // "s3", "leaf0", "spine1", "super0": also the name of its lab namespace
  int rail = -1;     // leaves; spines serve all rails of their group and keep -1
  int group = -1;    // leaves and spines
};

// A cable, full duplex: `rate` holds in each direction. For a server's link, `a` is the server.
struct Link {
  NodeId a;
  NodeId b;
  int a_nic = -1;  // the NIC index when `a` is a server
  BytesPerSecond rate;
  Seconds latency;
  // "s3.nic0-leaf1", "leaf0-spine1", "leaf0-spine1.1" for the second of several such cables; `lab
  // fault` and messages use it.
  std::string name;
};

struct Graph {
  std::vector<Node> nodes;  // servers first: NodeId value == ServerId value
  std::vector<Link> links;
  std::vector<std::vector<LinkId>> links_of;  // per node
};

// The CLOS of the cluster: server s, NIC i is cabled to leaf (s / servers_per_leaf, rail i %
// rails). Requires a validated cluster.
Graph build_graph(const Cluster& cluster);

// The link of NIC `nic` of `server`; REGATTA_CHECKs that it exists.
LinkId nic_link(const Graph& graph, ServerId server, int nic);

// A direction of a link: forward = from link.a to link.b.
struct DirectedLink {
  LinkId link;
  bool forward = true;

  friend auto operator<=>(const DirectedLink&, const DirectedLink&) = default;
};

// The share of a flow's bytes on one directed link, 0 < share <= 1.
struct LinkShare {
  DirectedLink link;
  double share = 1;
};

// Shortest paths from NIC `from_nic` of `from` to NIC `to_nic` of `to`, split evenly over
// equal-cost next hops at every node, as ECMP spreads many connections. Empty when from == to.
// Fails with kNotFound when no path exists.
Result<std::vector<LinkShare>> ecmp_shares(const Graph& graph, ServerId from, int from_nic,
                                           ServerId to, int to_nic);

// Links crossed on a shortest path between the two NICs (0 when from == to): times hop latency.
Result<int> hop_count(const Graph& graph, ServerId from, int from_nic, ServerId to, int to_nic);

// Links from every switch to the switch `target`, kUnreachable when there is no path, and for
// servers, which do not forward. By node.
inline constexpr int kUnreachable = std::numeric_limits<int>::max();
std::vector<int> distances_to(const Graph& graph, NodeId target);

// The links of switch `node` that lead one step nearer to the target of `distance`, in id order.
std::vector<LinkId> next_hop_links(const Graph& graph, NodeId node,
                                   const std::vector<int>& distance);

// The equal-cost next hops of `node` towards NIC `to_nic` of `to`: links in id order; empty at the
// destination or when unreachable. This is the routing table that the lab installs.
std::vector<LinkId> next_hops(const Graph& graph, NodeId node, ServerId to, int to_nic);

}  // namespace regatta::topo
