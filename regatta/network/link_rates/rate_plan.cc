#include "regatta/network/link_rates/rate_plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "regatta/model/topo/addresses.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kPartnersMost = 12;    // of a NIC
constexpr std::size_t kCandidatesMost = 96;  // of a link
constexpr std::size_t kFlowsMost = 400'000;  // of large fabrics, by fewer source ports
constexpr std::size_t kPortsLeast = 2;

// NICs by their links, those that reach each other.
using Rails = std::vector<std::vector<LinkId>>;

Rails rails_of(const topo::Graph& graph) {
  std::map<int, std::vector<LinkId>> by_nic;
  for (std::size_t i = 0; i < graph.links.size(); ++i)
    if (graph.links[i].a_nic >= 0)
      by_nic[graph.links[i].a_nic].push_back(LinkId{static_cast<int>(i)});
  Rails rails;
  for (auto& [nic, links] : by_nic)
    rails.push_back(std::move(links));
  return rails;
}

// The next ones in the order of the servers, which are near, and others evenly spread.
std::vector<LinkId> partners_of(const std::vector<LinkId>& rail, std::size_t own) {
  const std::size_t others = rail.size() - 1;
  const std::size_t count = std::min(others, kPartnersMost);
  std::vector<LinkId> partners;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_near = i < count / 3;
    const std::size_t step = is_near ? i + 1 : 1 + i * others / count;
    const LinkId partner = rail[(own + step) % rail.size()];
    if (std::ranges::find(partners, partner) == partners.end()) partners.push_back(partner);
  }
  return partners;
}

// A path of a flow and the position on it of the link in question.
struct Candidate {
  std::uint32_t path = 0;
  std::size_t position = 0;
};

class RatePlanner {
 public:
  RatePlanner(const topo::Graph& graph, const RatePlanOptions& options)
      : graph_(graph),
        options_(options),
        candidates_(2 * graph.links.size()),
        chosen_(2 * graph.links.size()) {}

  void add(TrainPath path) {
    for (std::size_t i = 0; i < path.links.size(); ++i) {
      std::vector<Candidate>& of_link = candidates_[path.links[i]];
      if (of_link.size() < kCandidatesMost)
        of_link.push_back({static_cast<std::uint32_t>(paths_.size()), i});
    }
    paths_.push_back(std::move(path));
  }

  RatePlan plan() {
    RatePlan plan;
    for (std::uint32_t link = 0; link < candidates_.size(); ++link) {
      const std::vector<TrainPath> paths = paths_to(link);
      if (paths.empty()) plan.missing.push_back(link);
      plan.paths.insert(plan.paths.end(), paths.begin(), paths.end());
    }
    return plan;
  }

 private:
  // Lower is better: links before this one that are narrower, senders and their links that already
  // have much to do.
  std::tuple<double, int, std::size_t, int> cost(const Candidate& one, std::uint32_t link,
                                                 const std::map<LinkId, int>& senders) const {
    const TrainPath& path = paths_[one.path];
    double narrowest = graph_.links[link / 2].rate.value;
    for (std::size_t i = 0; i < one.position; ++i)
      narrowest = std::min(narrowest, graph_.links[path.links[i] / 2].rate.value);
    const auto used = senders.find(path.from);
    int load = 0;
    for (std::size_t i = 0; i <= one.position; ++i)
      load += chosen_[path.links[i]];
    return {-narrowest, used == senders.end() ? 0 : used->second, one.position, load};
  }

  std::vector<TrainPath> paths_to(std::uint32_t link) {
    std::vector<TrainPath> paths;
    std::map<LinkId, int> senders;
    std::vector<Candidate> left = candidates_[link];
    while (!left.empty() && paths.size() < options_.paths_per_link) {
      const auto best = std::ranges::min_element(
          left, {}, [&](const Candidate& one) { return cost(one, link, senders); });
      TrainPath path = paths_[best->path];
      path.loaded = best->position + 1;
      left.erase(best);
      ++senders[path.from];
      for (const std::uint32_t loaded : path.loaded_links())
        ++chosen_[loaded];
      paths.push_back(std::move(path));
    }
    return paths;
  }

  const topo::Graph& graph_;
  const RatePlanOptions& options_;
  std::vector<TrainPath> paths_;
  std::vector<std::vector<Candidate>> candidates_;  // by directed link
  std::vector<int> chosen_;                         // paths that load it, by directed link
};

}  // namespace

BytesPerSecond described_rate(const topo::Graph& graph, const TrainPath& path) {
  BytesPerSecond narrowest = graph.links[path.links.front() / 2].rate;
  for (const std::uint32_t link : path.loaded_links())
    narrowest = std::min(narrowest, graph.links[link / 2].rate);
  return narrowest;
}

std::vector<TrainPath> candidate_flows(const topo::Graph& graph, const RatePlanOptions& options) {
  std::vector<TrainPath> of_port;
  for (const std::vector<LinkId>& rail : rails_of(graph))
    for (std::size_t own = 0; own < rail.size(); ++own)
      for (const LinkId to : partners_of(rail, own))
        of_port.push_back({.from = rail[own],
                           .to = to,
                           .flow = {.from = topo::address_of(rail[own]),
                                    .to = topo::address_of(to),
                                    .from_port = 0,
                                    .to_port = kTrainPort,
                                    .protocol = 17},
                           .links = {},
                           .loaded = 0});
  const std::size_t most = kFlowsMost / std::max<std::size_t>(1, of_port.size());
  const std::size_t ports = std::min<std::size_t>(options.ports, std::max(most, kPortsLeast));
  std::vector<TrainPath> flows;
  flows.reserve(ports * of_port.size());
  for (std::size_t port = 0; port < ports; ++port)
    for (TrainPath flow : of_port) {
      flow.flow.from_port = static_cast<std::uint16_t>(kFirstTrainSourcePort + port);
      flows.push_back(std::move(flow));
    }
  return flows;
}

RatePlan plan_rates(const topo::Graph& graph, std::span<const TrainPath> known,
                    const RatePlanOptions& options) {
  RatePlanner planner(graph, options);
  for (const TrainPath& path : known)
    planner.add(path);
  return planner.plan();
}

RatePlan plan_rates(const topo::Graph& graph, const fabric::Routes& routes,
                    std::span<const std::uint32_t> seeds, const RatePlanOptions& options) {
  std::vector<TrainPath> known;
  for (TrainPath& path : candidate_flows(graph, options)) {
    auto links =
        routes.path(path.from, path.to, fabric::EcmpNextHop{path.flow, seeds, options.policy});
    if (!links || links->size() < 2) continue;
    path.links = std::move(*links);
    known.push_back(std::move(path));
  }
  return plan_rates(graph, known, options);
}

}  // namespace regatta::link_rates
