// fabric/test_max_min_problem.h: flows and links drawn at random, for tests and comparisons.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"

namespace regatta::fabric {

struct MaxMinProblemShape {
  bool has_weights = false;
  bool has_amounts = false;
  bool has_limits = false;
  int most_links = 60;
  int most_flows = 300;
};

// Capacities, weights and limits over four orders of magnitude; about a quarter of the links have
// the same capacity. A flow crosses 1 to 6 links.
inline MaxMinProblem random_max_min_problem(std::mt19937_64& random,
                                            const MaxMinProblemShape& shape) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  const auto size = [&] {
    return std::pow(10.0, std::uniform_real_distribution(-1.0, 3.0)(random));
  };
  MaxMinProblem max_min_problem;
  const int links = number(1, shape.most_links);
  for (int i = 0; i < links; ++i)
    max_min_problem.add_link(number(0, 3) == 0 ? 1e10 : 1e9 * size());
  const int flows = number(1, shape.most_flows);
  for (int i = 0; i < flows; ++i) {
    std::vector<std::uint32_t> over(static_cast<std::size_t>(number(1, 6)));
    for (std::uint32_t& link : over)
      link = static_cast<std::uint32_t>(number(0, links - 1));
    std::ranges::sort(over);
    over.erase(std::unique(over.begin(), over.end()), over.end());
    max_min_problem.add_flow(over);
    if (shape.has_weights) max_min_problem.weights.push_back(size());
    if (shape.has_limits)
      max_min_problem.limits.push_back(number(0, 3) == 0 ? kNoLimit : 1e8 * size());
  }
  for (std::size_t i = 0; i < max_min_problem.links.size() && shape.has_amounts; ++i)
    max_min_problem.amounts.push_back(number(1, 40));
  return max_min_problem;
}

}  // namespace regatta::fabric
