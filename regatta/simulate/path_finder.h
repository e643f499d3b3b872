// simulate/path_finder.h: the way of each pair and connection under given routes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/fabric/routes.h"
#include "regatta/simulate/scenario.h"
#include "regatta/simulate/work.h"

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
  PathFinder(const Work& work, const Routing& routing);

  // Ways are numbered: pair * ways_of_pair() + connection; then the rings.
  std::uint32_t ways_of_pair() const { return ways_of_pair_; }
  std::uint32_t first_ring() const { return first_ring_; }
  std::uint32_t count() const;

  // None: no way leads there under these routes, or for a ring: for one of its pairs.
  std::optional<Way> find(const fabric::Routes& routes, std::uint32_t number) const;

 private:
  std::optional<Way> of_pair(const fabric::Routes& routes, std::uint32_t pair,
                             std::uint32_t connection) const;
  std::optional<Way> spread(const fabric::Routes& routes, LinkId from, LinkId to) const;
  std::optional<Way> of_ring(const fabric::Routes& routes, std::uint32_t ring) const;

  const Work& work_;
  const Routing& routing_;
  std::vector<std::uint32_t> seeds_;
  std::vector<std::size_t> place_;  // of each NIC's server among those of its leaf, by link
  std::uint32_t ways_of_pair_ = 1;
  std::uint32_t first_ring_ = 0;
};

}  // namespace regatta::simulate
