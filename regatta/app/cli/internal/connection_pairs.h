// cli/internal/connection_pairs.h: which two ends of connections belong together. The same two
// ports may serve several connections, one after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/probe/flow_counters.h"

namespace regatta::cli {

// `End` has `Seconds first`, when it was seen first. Ends outlive this.
template <typename End>
class ConnectionPairs {
 public:
  void add(const probe::Connection& name, const End& end) { ends_[name].push_back(&end); }

  // The watched end opposite to `end` of `name`: each was first seen nearest in time to the other.
  // Null where there is none.
  const End* paired_end(const probe::Connection& name, const End& end) const {
    const auto there = ends_.find(probe::reversed(name));
    const auto here = ends_.find(name);
    if (there == ends_.end() || here == ends_.end()) return nullptr;
    const End* const other = nearest(there->second, end);
    return nearest(here->second, *other) == &end ? other : nullptr;
  }

  const std::map<probe::Connection, std::vector<const End*>>& by_name() const { return ends_; }

 private:
  static const End* nearest(const std::vector<const End*>& ends, const End& to) {
    return *std::ranges::min_element(
        ends, {}, [&](const End* one) { return std::abs((one->first - to.first).value); });
  }

  std::map<probe::Connection, std::vector<const End*>> ends_;  // none is empty
};

}  // namespace regatta::cli
