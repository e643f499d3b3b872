// simulate/internal/path_finder.h: the path of each pair and connection under given routes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "regatta/network/fabric/routes.h"
#include "regatta/network/simulate/internal/aggregate_links.h"
#include "regatta/network/simulate/internal/link_classes.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/internal/sprayed_path.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

// Links, and how much of each byte crosses them.
struct WeightedPath {
  std::vector<std::uint32_t> links;
  std::vector<double> amounts;  // empty: 1 everywhere
  double latency = -1;          // seconds, with amounts
  double lost = 0;              // share of the packets
  friend bool operator==(const WeightedPath&, const WeightedPath&) = default;
};

class PathFinder {
 public:
  // The references outlive it.
  PathFinder(const ScenarioWorkload& workload, const Routing& routing,
             const AggregateLinks& aggregate_links);

  // Paths are numbered: pair * paths_of_pair() + connection; then the rings; then the bundles.
  std::uint32_t paths_of_pair() const { return paths_of_pair_; }
  std::uint32_t first_ring() const { return first_ring_; }
  std::uint32_t first_bundle() const {
    return first_ring_ + static_cast<std::uint32_t>(workload_.rings.size());
  }
  std::uint32_t count() const;
  // Some ranks at the ends of a path.
  EndpointPair ranks_of(std::uint32_t number) const;

  // Finds paths under these routes from now on; they outlive their use.
  void set_routes(const fabric::Routes& routes);
  // Cables that are dead from now on, for sprayed paths: those on one path stand still.
  void set_dead(const std::vector<bool>& is_dead);
  // None: no path leads there, or for a ring: for one of its pairs. The path of a bundle takes of
  // its links what all its messages take; its end links are from AggregateLinks.
  std::optional<WeightedPath> find(std::uint32_t number);

  // Adds to `classes` the sprayed paths between leaves under the current routes.
  void add_sprayed_paths(LinkClasses& classes);
  // From now on paths have the representative of each class of links in place of the others.
  void merge_links(std::vector<std::uint32_t> link_representatives) {
    link_representatives_ = std::move(link_representatives);
  }

 private:
  using Leaves = std::pair<NodeId, NodeId>;

  std::optional<WeightedPath> of_pair(std::uint32_t pair, std::uint32_t connection);
  std::optional<WeightedPath> sprayed(LinkId from, LinkId to);
  std::optional<WeightedPath> of_ring(std::uint32_t ring);
  std::optional<WeightedPath> of_bundle(const Bundle& bundle);
  Leaves leaves_of(LinkId from, LinkId to) const;
  LinkId nic_of(std::uint32_t group) const;  // that stands for those of its ranks
  const std::optional<SprayedPath>& between(Leaves leaves);

  const ScenarioWorkload& workload_;
  const Routing& routing_;
  const AggregateLinks& aggregate_links_;
  const fabric::Routes* routes_ = nullptr;
  std::vector<std::uint32_t> seeds_;
  std::vector<std::size_t> place_;  // of each NIC's server among those of its leaf, by link
  std::uint32_t paths_of_pair_ = 1;
  std::uint32_t first_ring_ = 0;
  SprayedPathFinder sprayed_path_finder_;
  std::vector<std::uint32_t> link_representatives_;       // empty: all links are told apart
  std::map<Leaves, std::optional<SprayedPath>> between_;  // under these routes, folded
};

}  // namespace regatta::simulate
