#include "regatta/planning/replay/internal/simplex_search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace regatta::replay {
namespace {

class SimplexSearch {
 public:
  SimplexSearch(const std::function<double(const Point&)>& miss, const SimplexOptions& options)
      : miss_(miss), options_(options) {}

  Point run(Point best) {
    if (best.empty()) return best;
    for (int restart = 0; restart < options_.restarts; ++restart) {
      begin(best);
      for (int step = 0; step < options_.steps && !is_done(); ++step)
        move();
      best = std::min_element(corners_.begin(), corners_.end(), is_better)->at;
    }
    return best;
  }

 private:
  struct Corner {
    Point at;
    double miss;
  };
  static bool is_better(const Corner& a, const Corner& b) { return a.miss < b.miss; }

  Corner corner(Point at) const {
    const double miss = miss_(at);
    return {std::move(at), miss};
  }

  void begin(const Point& from) {
    corners_ = {corner(from)};
    for (std::size_t i = 0; i < from.size(); ++i) {
      Point point = from;
      point[i] += options_.side;
      corners_.push_back(corner(std::move(point)));
    }
  }

  bool is_done() const {
    if (options_.tolerance <= 0) return false;
    const auto [best, worst] = std::minmax_element(corners_.begin(), corners_.end(), is_better);
    return worst->miss - best->miss < options_.tolerance;
  }

  // A point on the line from the worst corner through the middle of the others.
  Corner beyond(const Point& middle, double factor) const {
    Point point(middle.size());
    for (std::size_t i = 0; i < middle.size(); ++i)
      point[i] = middle[i] + factor * (middle[i] - corners_.back().at[i]);
    return corner(std::move(point));
  }

  void move() {
    std::sort(corners_.begin(), corners_.end(), is_better);
    const std::size_t size = corners_.size() - 1;
    Point middle(size);
    for (std::size_t one = 0; one < size; ++one)
      for (std::size_t i = 0; i < size; ++i)
        middle[i] += corners_[one].at[i] / static_cast<double>(size);
    const Corner reflected = beyond(middle, 1);
    if (is_better(reflected, corners_.front())) {
      const Corner expanded = beyond(middle, 2);
      corners_.back() = is_better(expanded, reflected) ? expanded : reflected;
      return;
    }
    if (is_better(reflected, corners_[size - 1])) {
      corners_.back() = reflected;
      return;
    }
    const Corner contracted = beyond(middle, -0.5);
    if (is_better(contracted, corners_.back()))
      corners_.back() = contracted;
    else
      shrink();
  }

  void shrink() {
    for (std::size_t one = 1; one < corners_.size(); ++one) {
      Point point = corners_[one].at;
      for (std::size_t i = 0; i < point.size(); ++i)
        point[i] = (point[i] + corners_.front().at[i]) / 2;
      corners_[one] = corner(std::move(point));
    }
  }

  const std::function<double(const Point&)>& miss_;
  const SimplexOptions& options_;
  std::vector<Corner> corners_;
};

}  // namespace

Point least_point(const std::function<double(const Point&)>& miss, Point from,
                  const SimplexOptions& options) {
  return SimplexSearch(miss, options).run(std::move(from));
}

}  // namespace regatta::replay
