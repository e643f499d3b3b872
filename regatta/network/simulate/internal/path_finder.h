// simulate/internal/path_finder.h: the way of each pair and connection under given routes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "regatta/network/fabric/routes.h"
#include "regatta/network/simulate/internal/link_fold.h"
#include "regatta/network/simulate/internal/spread.h"
#include "regatta/network/simulate/internal/stand_ins.h"
#include "regatta/network/simulate/internal/work.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

// Links, and how much of each byte crosses them.
struct Way {
  std::vector<std::uint32_t> links;
  std::vector<double> amounts;  // empty: 1 everywhere
  double latency = -1;          // seconds, with amounts
  friend bool operator==(const Way&, const Way&) = default;
};

class PathFinder {
 public:
  // The references outlive it.
  PathFinder(const Work& work, const Routing& routing, const StandIns& stand_ins);

  // Ways are numbered: pair * ways_of_pair() + connection; then the rings; then the bundles.
  std::uint32_t ways_of_pair() const { return ways_of_pair_; }
  std::uint32_t first_ring() const { return first_ring_; }
  std::uint32_t first_bundle() const {
    return first_ring_ + static_cast<std::uint32_t>(work_.rings.size());
  }
  std::uint32_t count() const;
  // Of a way: some ranks at its ends.
  RankPair ranks_of(std::uint32_t number) const;

  // Under these routes from now on; they outlive that.
  void take(const fabric::Routes& routes);
  // None: no way leads there, or for a ring: for one of its pairs. Those of bundles take what all
  // their messages take, at their ends from StandIns.
  std::optional<Way> find(std::uint32_t number);

  // Tells `fold` what is sprayed from which leaf to which one under the routes that were taken.
  void show_spreads(LinkFold& fold);
  // From now on ways have the first of links that are alike in place of all of them.
  void fold(std::vector<std::uint32_t> first_alike) { first_alike_ = std::move(first_alike); }

 private:
  using Leaves = std::pair<NodeId, NodeId>;

  std::optional<Way> of_pair(std::uint32_t pair, std::uint32_t connection);
  std::optional<Way> spread(LinkId from, LinkId to);
  std::optional<Way> of_ring(std::uint32_t ring);
  std::optional<Way> of_bundle(const Bundle& bundle);
  Leaves leaves_of(LinkId from, LinkId to) const;
  LinkId nic_of(std::uint32_t group) const;  // that stands for those of its ranks
  const std::optional<Spread>& between(Leaves leaves);

  const Work& work_;
  const Routing& routing_;
  const StandIns& stand_ins_;
  const fabric::Routes* routes_ = nullptr;
  std::vector<std::uint32_t> seeds_;
  std::vector<std::size_t> place_;  // of each NIC's server among those of its leaf, by link
  std::uint32_t ways_of_pair_ = 1;
  std::uint32_t first_ring_ = 0;
  Spreader spreader_;
  std::vector<std::uint32_t> first_alike_;           // empty: all links are told apart
  std::map<Leaves, std::optional<Spread>> between_;  // under these routes, folded
};

}  // namespace regatta::simulate
