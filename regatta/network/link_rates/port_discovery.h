// link_rates/port_discovery.h: source ports chosen by tracing, where the hash of the switches is
// not known: flows are traced one after the other until enough of them cross each link. Pure: the
// caller carries the lines, and passes the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_session.h"

namespace regatta::link_rates {

struct PortDiscoveryOptions {
  std::size_t paths_per_link = 6;  // known ones, in each direction
  std::uint16_t ports = 32;        // of each pair of NICs at most, from the first one on
  int tries = 3;                   // traces of a flow that a router leaves unanswered
  Seconds server_period{0.2};      // between two traces from one server: routers answer slowly
  Seconds patience{2};             // until a trace counts as lost
};

class PortDiscovery {
 public:
  // Both must outlive this.
  PortDiscovery(const topo::Graph& graph, const fabric::Routes& routes,
                const PortDiscoveryOptions& options = {});

  void add_agent(NodeId server);
  // A line of an agent. kInvalidInput for one that no agent of this version sends; other lines than
  // about traces are ignored.
  Status accept(NodeId server, std::string_view line, Seconds now);
  std::vector<RateSession::Order> due_orders(Seconds now);
  // Every link has its paths, or no flow is left that could cross one that has not.
  bool is_done() const;

  const std::vector<TrainPath>& paths() const { return known_; }
  std::size_t traced() const { return traced_; }
  std::size_t unanswered() const { return unanswered_; }  // flows that were given up
  // Directed links that fewer paths cross than are wanted.
  std::vector<std::uint32_t> thin_links() const;

 private:
  struct Flow {
    TrainPath path;  // without links
    NodeId server;
    std::size_t routers = 0;
    int tries = 0;
  };
  using LeafPair = std::pair<NodeId, NodeId>;

  void add_known(TrainPath path);
  bool may_help(const Flow& flow);
  const std::vector<std::uint32_t>& links_between(LeafPair leaves);
  std::optional<std::vector<std::uint32_t>> links_of_trace(
      const Flow& flow, std::span<const std::uint32_t> routers) const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  const PortDiscoveryOptions options_;
  std::deque<Flow> waiting_;
  std::map<std::uint32_t, std::pair<Flow, Seconds>> on_their_way_;  // by number, and since when
  std::uint32_t next_number_ = 1;
  std::vector<bool> has_agent_;          // by NodeId
  std::vector<Seconds> server_free_at_;  // by NodeId
  std::map<LeafPair, std::vector<std::uint32_t>> between_;
  std::vector<std::size_t> crossed_;  // by directed link: known paths
  std::vector<TrainPath> known_;
  std::size_t traced_ = 0;
  std::size_t unanswered_ = 0;
};

}  // namespace regatta::link_rates
