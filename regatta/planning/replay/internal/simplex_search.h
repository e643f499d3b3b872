// replay/internal/simplex_search.h: the least of a function of a few numbers without its
// derivatives: Nelder and Mead, The Computer Journal 7, 1965. Deterministic.
#pragma once

#include <functional>
#include <vector>

namespace regatta::replay {

using Point = std::vector<double>;

struct SimplexOptions {
  int restarts = 3;  // each begins with a new simplex at the best point so far
  int steps = 250;   // of each restart
  double side = 0.25;
  double tolerance = 0;  // a restart ends when the corners differ by less; 0: only after its steps
};

Point least_point(const std::function<double(const Point&)>& miss, Point from,
                  const SimplexOptions& options = {});

}  // namespace regatta::replay
