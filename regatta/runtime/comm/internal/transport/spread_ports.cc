#include "regatta/runtime/comm/internal/transport/spread_ports.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace regatta::comm {
namespace {

// The number of chosen connections on each path, a sequence of routers from the nearest one.
class Load {
 public:
  void add(const std::vector<std::string>& routers) {
    for (const std::vector<std::string>& path : paths(routers))
      ++count_[path];
  }

  // The connections that a further one would share the first router with, the second, ...
  std::vector<int> met_by(const std::vector<std::string>& routers) const {
    std::vector<int> met;
    for (const std::vector<std::string>& path : paths(routers)) {
      const auto found = count_.find(path);
      met.push_back(found == count_.end() ? 0 : found->second);
    }
    return met;
  }

 private:
  static std::vector<std::vector<std::string>> paths(const std::vector<std::string>& routers) {
    std::vector<std::vector<std::string>> paths;
    for (std::size_t length = 1; length <= routers.size(); ++length)
      paths.emplace_back(routers.begin(), routers.begin() + static_cast<std::ptrdiff_t>(length));
    return paths;
  }

  std::map<std::vector<std::string>, int> count_;
};

}  // namespace

std::vector<std::size_t> spread_ports(const std::vector<TracedPort>& candidates, std::size_t taken,
                                      std::size_t count) {
  Load load;
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i < taken)
      load.add(candidates[i].routers);
    else
      left.push_back(i);
  }
  std::vector<std::size_t> chosen;
  while (chosen.size() < count && !left.empty()) {
    const auto best = std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
      return load.met_by(candidates[a].routers) < load.met_by(candidates[b].routers);
    });
    load.add(candidates[*best].routers);
    chosen.push_back(*best);
    left.erase(best);
  }
  return chosen;
}

}  // namespace regatta::comm
