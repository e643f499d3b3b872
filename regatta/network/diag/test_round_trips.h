// diag/test_round_trips.h: paths of probes and answers in a fabric of two tiers, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

// Adds the path from a server to another over this spine, and the one back over the same.
inline void add_round_trip(const fabric::TestFabric& fabric, std::uint32_t from, std::uint32_t to,
                           std::size_t spine, fabric::Paths& paths) {
  const auto over = [&](NodeId, std::size_t) { return spine; };
  paths.add(*fabric.routes.path(fabric.nics[from], fabric.nics[to], over));
  paths.add(*fabric.routes.path(fabric.nics[to], fabric.nics[from], over));
}

struct TestRoundTrips {
  // Between all servers below different leaves, over each spine; two servers below a leaf.
  explicit TestRoundTrips(const fabric::TestFabric& fabric, std::size_t spines = 2) {
    const auto servers = static_cast<std::uint32_t>(fabric.nics.size());
    for (std::uint32_t from = 0; from < servers; ++from)
      for (std::uint32_t to = 0; to < servers; ++to)
        for (std::size_t spine = 0; spine < spines && from / 2 != to / 2; ++spine) {
          add_round_trip(fabric, from, to, spine, paths);
          ends.emplace_back(from, to);
        }
  }

  fabric::Paths paths;                                    // 2k there and 2k + 1 back
  std::vector<std::pair<std::size_t, std::size_t>> ends;  // of each round trip: servers
};

}  // namespace regatta::diag
