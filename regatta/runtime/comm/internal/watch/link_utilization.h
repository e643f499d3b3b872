// comm/internal/watch/link_utilization.h: finds the link that slows an operation down. All links of
// a ring carry the same bytes in the same time, so their rates are equal: the slow link is the one
// that always has more to send, while the others wait for it. Pure.
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

// The utilization of one link, from samples at even intervals.
class LinkUtilizationMeter {
 public:
  // bytes: sent so far; is_busy: more bytes wait to be sent.
  void sample(Seconds now, long long bytes, bool is_busy);
  // Nothing before the samples span 0.7 s.
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

// The links that are busy at least 80 % of the time and move less than half of what the median of
// the others would if it were always busy. Nothing where there is none, or no other to compare
// with.
std::optional<Verdict> find_slow_links(const std::vector<LinkUtilization>& utilizations,
                                       const std::vector<std::string>& names);

}  // namespace regatta::comm
