// fabric/test_sharing.h: flows and links drawn at random, for tests and comparisons.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "regatta/network/fabric/internal/max_min.h"

namespace regatta::fabric {

struct SharingShape {
  bool has_weights = false;
  bool has_amounts = false;
  bool has_limits = false;
  int most_links = 60;
  int most_flows = 300;
};

// Capacities, weights and limits over four orders of magnitude; now and then a capacity that many
// links have alike. A flow crosses 1 to 6 links.
inline Sharing draw_sharing(std::mt19937_64& random, const SharingShape& shape) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  const auto size = [&] {
    return std::pow(10.0, std::uniform_real_distribution(-1.0, 3.0)(random));
  };
  Sharing sharing;
  const int links = number(1, shape.most_links);
  for (int i = 0; i < links; ++i)
    sharing.add_link(number(0, 3) == 0 ? 1e10 : 1e9 * size());
  const int flows = number(1, shape.most_flows);
  for (int i = 0; i < flows; ++i) {
    std::vector<std::uint32_t> over(static_cast<std::size_t>(number(1, 6)));
    for (std::uint32_t& link : over)
      link = static_cast<std::uint32_t>(number(0, links - 1));
    std::ranges::sort(over);
    over.erase(std::unique(over.begin(), over.end()), over.end());
    sharing.add_flow(over);
    if (shape.has_weights) sharing.weights.push_back(size());
    if (shape.has_limits) sharing.limits.push_back(number(0, 3) == 0 ? kNoLimit : 1e8 * size());
  }
  for (std::size_t i = 0; i < sharing.links.size() && shape.has_amounts; ++i)
    sharing.amounts.push_back(number(1, 40));
  return sharing;
}

}  // namespace regatta::fabric
