#include "regatta/runtime/bench/timing.h"

#include <algorithm>

#include "regatta/base/core/stats.h"

namespace regatta::bench {

Seconds Timing::median() const {
  return {regatta::median(batches_s)};
}

Seconds Timing::least() const {
  return {*std::min_element(batches_s.begin(), batches_s.end())};
}

Seconds Timing::largest() const {
  return {*std::max_element(batches_s.begin(), batches_s.end())};
}

void append(Contender& all, const Contender& round) {
  for (std::size_t size = 0; size < all.timings.size(); ++size) {
    auto& batches = all.timings[size].batches_s;
    const Timing& added = round.timings[size];
    batches.insert(batches.end(), added.batches_s.begin(), added.batches_s.end());
    all.timings[size].wrong += added.wrong;
  }
}

}  // namespace regatta::bench
