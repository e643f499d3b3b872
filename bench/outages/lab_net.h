// outages/lab_net.h: the lab under test, and sockets inside its servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/lab/lab.h"

namespace regatta::outages {

struct LabNet {
  lab::LabInfo lab;
  topo::Graph graph;
  heal::FabricPaths paths;
  std::vector<std::uint32_t> seeds;  // by node

  NodeId leaf_of(int server) const {
    return graph.links[topo::nic_link(graph, ServerId{server}, 0).index()].b;
  }
};

// One direction of traffic between two servers on fixed ports; its way while all is well.
struct Flow {
  int from = 0;
  int to = 0;
  fabric::FiveTuple tuple;
  std::vector<std::uint32_t> way;  // directed links
  os::UniqueFd sender;
  os::UniqueFd receiver;
};

// A flow from `from` to port `to_port` of `to`, its source port >= `first_port` such that its way
// is accepted; nothing when none of 4,000 is.
template <typename Accept>
std::optional<Flow> find_flow(const LabNet& net, Flow flow, std::uint16_t first_port,
                              Accept&& accept) {
  const LinkId from = topo::nic_link(net.graph, ServerId{flow.from}, 0);
  const LinkId to = topo::nic_link(net.graph, ServerId{flow.to}, 0);
  for (std::uint16_t port = first_port; port < first_port + 4000; ++port) {
    flow.tuple.from_port = port;
    const auto way = net.paths.routes.path(from, to, fabric::EcmpNextHop{flow.tuple, net.seeds});
    if (!way || !accept(*way)) continue;
    flow.way = *way;
    return flow;
  }
  return std::nullopt;
}

// Opens both ends inside the servers; the receiver notes the kernel's time of each arrival.
Status open_sockets(const LabNet& net, Flow& flow);
// A flow of server 0 to itself over its loopback.
Result<Flow> open_control(const LabNet& net, std::uint16_t port);

std::int64_t now_ns();           // CLOCK_REALTIME, as the kernel's times of arrival
void take_priority();            // real time, where allowed: of the calling thread
void sleep_until(std::int64_t);  // by now_ns()

}  // namespace regatta::outages
