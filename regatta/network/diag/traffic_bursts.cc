#include "regatta/network/diag/traffic_bursts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace regatta::diag {
namespace {

void add(std::vector<double>& sum, Series bytes) {
  if (sum.size() < bytes.size()) sum.resize(bytes.size(), 0.0);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum[i] += bytes[i];
}

std::size_t intervals_in(Seconds time, Seconds interval, std::size_t most) {
  const double count = std::round(time / interval);
  return std::clamp(count > 1 ? static_cast<std::size_t>(count) : std::size_t{1}, std::size_t{1},
                    std::max(most, std::size_t{1}));
}

// Most bytes in one window of `width` intervals that touches [begin, end).
double most_in_window(const std::vector<double>& before, std::size_t width, std::size_t begin,
                      std::size_t end) {
  const std::size_t size = before.size() - 1;
  double most = 0;
  const std::size_t first = begin + 1 > width ? begin + 1 - width : 0;
  for (std::size_t at = first; at < end && at + width <= size; ++at)
    most = std::max(most, before[at + width] - before[at]);
  return most;
}

// before[i]: bytes of all intervals before i.
std::vector<double> running_sum(Series bytes) {
  std::vector<double> before(bytes.size() + 1, 0.0);
  std::partial_sum(bytes.begin(), bytes.end(), before.begin() + 1);
  return before;
}

double ratio(BytesPerSecond peak, BytesPerSecond mean) {
  return mean.value > 0 ? peak / mean : 1.0;
}

}  // namespace

std::vector<double> sum_of(const TrafficSeries& traffic, const std::vector<std::uint32_t>& which) {
  std::vector<double> sum;
  for (const std::uint32_t flow : which)
    add(sum, traffic.flows[flow].bytes);
  return sum;
}

std::vector<std::vector<double>> bytes_of_links(
    const TrafficSeries& traffic, const std::vector<std::vector<std::uint32_t>>& paths,
    std::size_t directed_links) {
  std::vector<std::vector<double>> links(directed_links);
  for (std::size_t flow = 0; flow < paths.size(); ++flow)
    for (const std::uint32_t link : paths[flow])
      add(links[link], traffic.flows[flow].bytes);
  return links;
}

std::vector<ServerBytes> bytes_of_servers(const TrafficSeries& traffic) {
  std::map<NodeId, ServerBytes> servers;
  for (const FlowSeries& flow : traffic.flows) {
    add(servers[flow.from].sent, flow.bytes);
    add(servers[flow.to].received, flow.bytes);
  }
  std::vector<ServerBytes> out;
  for (auto& [server, bytes] : servers) {
    bytes.server = server;
    out.push_back(std::move(bytes));
  }
  return out;
}

double Peaks::to_mean() const {
  return ratio(peak, mean);
}

double Peaks::to_mean_coarse() const {
  return ratio(peak_coarse, mean);
}

Peaks peaks_of(Series bytes, Seconds interval, Seconds coarse) {
  Peaks peaks;
  if (bytes.empty()) return peaks;
  const std::vector<double> before = running_sum(bytes);
  const std::size_t width = intervals_in(coarse, interval, bytes.size());
  peaks.mean = {before.back() / (static_cast<double>(bytes.size()) * interval.value)};
  peaks.peak = {*std::ranges::max_element(bytes) / interval.value};
  peaks.peak_coarse = {most_in_window(before, width, 0, bytes.size()) /
                       (static_cast<double>(width) * interval.value)};
  return peaks;
}

std::vector<Burst> find_bursts(Series bytes, Seconds interval, const BurstLimits& limits) {
  std::vector<Burst> bursts;
  if (bytes.empty()) return bursts;
  const double peak = *std::ranges::max_element(bytes);
  const double threshold =
      limits.threshold.value > 0 ? limits.threshold.value * interval.value : peak / 2;
  if (!(peak > 0)) return bursts;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] < threshold) continue;
    if (!bursts.empty() && i - bursts.back().end <= limits.gap_most)
      bursts.back().end = i + 1;
    else
      bursts.push_back({.begin = i, .end = i + 1});
  }
  const std::vector<double> before = running_sum(bytes);
  const std::size_t width = intervals_in(limits.coarse, interval, bytes.size());
  for (Burst& burst : bursts) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(burst.begin);
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(burst.end);
    burst.bytes = {std::llround(before[burst.end] - before[burst.begin])};
    burst.peak = {*std::max_element(begin, end) / interval.value};
    burst.is_hidden = most_in_window(before, width, burst.begin, burst.end) <
                      threshold * static_cast<double>(width);
  }
  return bursts;
}

}  // namespace regatta::diag
