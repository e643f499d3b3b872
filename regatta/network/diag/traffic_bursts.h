// diag/traffic_bursts.h: peaks and bursts that averages over a second hide, in traffic that is
// counted at short intervals. Pure.
// Source: Zhang, Liu, Zeng and Krishnamurthy, High-resolution measurement of data center
// microbursts, IMC 2017: a burst is a run of intervals above half of the link's capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/network/diag/internal/flow_series.h"

namespace regatta::diag {

// Sum of the flows `which`, by interval. A flow may be named once.
std::vector<double> sum_of(const TrafficSeries& traffic, const std::vector<std::uint32_t>& which);

// Bytes by directed link (fabric::number_of) and interval. `paths`: by flow, the links that it
// crosses. Links that no flow crosses have an empty series.
std::vector<std::vector<double>> bytes_of_links(
    const TrafficSeries& traffic, const std::vector<std::vector<std::uint32_t>>& paths,
    std::size_t directed_links);

struct ServerBytes {
  NodeId server;
  std::vector<double> sent;
  std::vector<double> received;
};
// Servers that sent or received anything, by number.
std::vector<ServerBytes> bytes_of_servers(const TrafficSeries& traffic);

// Peak rates of the same traffic at two resolutions.
struct Peaks {
  BytesPerSecond mean;
  BytesPerSecond peak;         // in one interval
  BytesPerSecond peak_coarse;  // in one coarse interval, at any offset

  // 1 when nothing was sent.
  double to_mean() const;
  double to_mean_coarse() const;
};
// If the series is shorter than `coarse`, all of it is one coarse interval.
Peaks peaks_of(Series bytes, Seconds interval, Seconds coarse = Seconds{1.0});

struct Burst {
  std::size_t begin = 0;  // intervals [begin, end)
  std::size_t end = 0;
  Bytes bytes;
  BytesPerSecond peak;
  // No coarse interval that overlaps it reaches the threshold: sampling once a second misses it.
  bool is_hidden = false;
};

struct BurstLimits {
  BytesPerSecond threshold;  // 0: half of the peak
  std::size_t gap_most = 1;  // up to so many intervals below it do not end a burst
  Seconds coarse{1.0};
};
// In order; none if nothing was sent.
std::vector<Burst> find_bursts(Series bytes, Seconds interval, const BurstLimits& limits = {});

}  // namespace regatta::diag
