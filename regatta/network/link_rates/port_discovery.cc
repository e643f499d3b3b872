#include "regatta/network/link_rates/port_discovery.h"

#include <algorithm>
#include <set>
#include <variant>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/link_rates/internal/nic_load.h"
#include "regatta/network/link_rates/internal/train_messages.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kLookedAt = 1024;  // waiting flows by one call

// Switches on the shortest paths between two NICs; none: there is no path.
std::optional<std::size_t> switches_between(const fabric::Routes& routes, LinkId from, LinkId to) {
  const auto links = routes.path(from, to, [](NodeId, std::size_t) { return 0; });
  if (!links || links->size() < 2) return std::nullopt;
  return links->size() - 1;
}

}  // namespace

PortDiscovery::PortDiscovery(const topo::Graph& graph, const fabric::Routes& routes,
                             const PortDiscoveryOptions& options)
    : graph_(graph),
      routes_(routes),
      options_(options),
      has_agent_(graph.nodes.size()),
      server_free_at_(graph.nodes.size(), Seconds{-1e18}),
      crossed_(2 * graph.links.size()) {
  for (TrainPath& flow : candidate_flows(graph, {.ports = options.ports})) {
    const auto routers = switches_between(routes, flow.from, flow.to);
    if (!routers || *routers > kTracedRoutersMost) continue;
    const NodeId server = graph.links[flow.from.index()].a;
    waiting_.push_back({.path = std::move(flow), .server = server, .routers = *routers});
  }
}

void PortDiscovery::add_agent(NodeId server) {
  has_agent_[server.index()] = true;
}

const std::vector<std::uint32_t>& PortDiscovery::links_between(LeafPair leaves) {
  const auto [found, is_new] = between_.try_emplace(leaves);
  if (is_new) found->second = links_between_leaves(graph_, routes_, leaves.first, leaves.second);
  return found->second;
}

bool PortDiscovery::may_help(const Flow& flow) {
  const auto lacks = [this](std::uint32_t link) {
    return crossed_[link] < options_.paths_per_link;
  };
  if (lacks(fabric::number_of({flow.path.from, true})) ||
      lacks(fabric::number_of({flow.path.to, false})))
    return true;
  const auto leaf = [this](LinkId nic) { return graph_.links[nic.index()].b; };
  const LeafPair leaves{leaf(flow.path.from), leaf(flow.path.to)};
  return leaves.first != leaves.second && std::ranges::any_of(links_between(leaves), lacks);
}

std::vector<RateSession::Order> PortDiscovery::due_orders(Seconds now) {
  std::erase_if(on_their_way_, [&](auto& one) {
    auto& [flow, since] = one.second;
    if (now - since < options_.patience) return false;
    if (flow.tries < options_.tries)
      waiting_.push_back(flow);
    else
      ++unanswered_;
    return true;
  });
  std::vector<RateSession::Order> orders;
  const std::size_t looks = std::min(waiting_.size(), kLookedAt);
  for (std::size_t i = 0; i < looks; ++i) {
    Flow flow = std::move(waiting_.front());
    waiting_.pop_front();
    if (!may_help(flow)) continue;  // nor will it ever
    const NodeId server = flow.server;
    if (!has_agent_[server.index()] || server_free_at_[server.index()] > now) {
      waiting_.push_back(std::move(flow));
      continue;
    }
    server_free_at_[server.index()] = now + options_.server_period;
    ++flow.tries;
    ++traced_;
    const PathOrder order{
        .number = next_number_, .flow = flow.path.flow, .routers = static_cast<int>(flow.routers)};
    orders.push_back({server, order_line(order)});
    on_their_way_.emplace(next_number_++, std::pair{std::move(flow), now});
  }
  return orders;
}

Status PortDiscovery::accept(NodeId server, std::string_view line, Seconds) {
  REGATTA_TRY(report, parse_agent_report(line));
  const auto* const traced = std::get_if<PathTraced>(&report);
  if (traced == nullptr) return {};
  const auto found = on_their_way_.find(traced->number);
  if (found == on_their_way_.end() || found->second.first.server != server) return {};
  Flow flow = std::move(found->second.first);
  on_their_way_.erase(found);
  if (auto links = links_of_trace(flow, traced->routers)) {
    flow.path.links = std::move(*links);
    add_known(std::move(flow.path));
  } else if (flow.tries < options_.tries) {
    waiting_.push_back(std::move(flow));
  } else {
    ++unanswered_;
  }
  return {};
}

void PortDiscovery::add_known(TrainPath path) {
  for (const std::uint32_t link : path.links)
    ++crossed_[link];
  known_.push_back(std::move(path));
}

// Each router has to answer with the address of the port at which the packet arrived.
std::optional<std::vector<std::uint32_t>> PortDiscovery::links_of_trace(
    const Flow& flow, std::span<const std::uint32_t> routers) const {
  if (routers.size() != flow.routers) return std::nullopt;
  std::vector<std::uint32_t> links;
  NodeId at = flow.server;
  for (const std::uint32_t router : routers) {
    const auto cable = topo::link_of(router);
    if (!cable || cable->index() >= graph_.links.size()) return std::nullopt;
    const bool is_forward = router == topo::address_of(*cable, /*is_end_b=*/true);
    const std::uint32_t link = fabric::number_of({*cable, is_forward});
    if (fabric::tail_of(graph_, link) != at) return std::nullopt;
    at = fabric::head_of(graph_, link);
    links.push_back(link);
  }
  if (at != graph_.links[flow.path.to.index()].b ||
      links.front() != fabric::number_of({flow.path.from, true}))
    return std::nullopt;
  links.push_back(fabric::number_of({flow.path.to, false}));
  return links;
}

bool PortDiscovery::is_done() const {
  return waiting_.empty() && on_their_way_.empty();
}

std::vector<std::uint32_t> PortDiscovery::thin_links() const {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < crossed_.size(); ++link)
    if (crossed_[link] < options_.paths_per_link) links.push_back(link);
  return links;
}

}  // namespace regatta::link_rates
