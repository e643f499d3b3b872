// comm/internal/watch/link_utilization.h: which link holds an operation up that moves, but slowly?
// All links of a ring carry the same bytes in the same time, so rates alone tell nothing: the slow
// link is the one that always has more to send, while the others wait for it. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

// One direction between two ranks of the world, over the last seconds.
struct LinkUtilization {
  int from = -1;
  int to = -1;
  BytesPerSecond rate;
  double busy = 0;  // share of the time in which bytes waited to be sent, [0, 1]
};

// The pace of one link from samples at even times.
class LinkUtilizationMeter {
 public:
  // bytes: sent so far; is_busy: more wait.
  void sample(Seconds now, long long bytes, bool is_busy);
  // Nothing before 0.7 s have been seen.
  std::optional<LinkUtilization> utilization() const;

 private:
  struct Sample {
    Seconds at;
    long long bytes = 0;
    bool is_busy = false;
  };
  static constexpr std::size_t kSamples = 12;
  std::array<Sample, kSamples> samples_{};
  std::size_t count_ = 0;
};

// The links that are busy at least 80 % of the time and move less than half of what most of the
// others would, busy all the time. Nothing where there is none, or nothing to compare with.
std::optional<Verdict> find_slow_links(const std::vector<LinkUtilization>& utilizations,
                                       const std::vector<std::string>& names);

}  // namespace regatta::comm
