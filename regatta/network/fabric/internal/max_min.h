// fabric/internal/max_min.h: the rates of flows that share links, max-min fair: no flow could go
// faster without slowing down one that is not faster than it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace regatta::fabric {

// Links and flows by number; the vectors are flat, for there may be millions of flows.
struct MaxMinProblem {
  // Per link, in bytes per second; >= 0, may be infinite.
  std::vector<double> capacity;
  // Flow f crosses links[first[f]] to links[first[f + 1] - 1], each at most once.
  std::vector<std::uint32_t> first = {0};
  std::vector<std::uint32_t> links;
  // What a flow takes of a link for each byte per second of its rate, beside `links`; > 0. Empty: 1
  // everywhere. More than 1 stands for several flows alike.
  std::vector<double> amounts;
  // Per flow, > 0: flows held back by one link get rates in these ratios. Empty: 1 everywhere.
  std::vector<double> weights;
  // Per flow, the most it could use, in bytes per second; >= 0. Empty: no limits.
  std::vector<double> limits;

  std::size_t flows() const { return first.size() - 1; }
  std::uint32_t add_link(double bytes_per_second) {
    capacity.push_back(bytes_per_second);
    return static_cast<std::uint32_t>(capacity.size() - 1);
  }
  template <typename Links>
  std::uint32_t add_flow(const Links& over) {
    links.insert(links.end(), over.begin(), over.end());
    first.push_back(static_cast<std::uint32_t>(links.size()));
    return static_cast<std::uint32_t>(flows() - 1);
  }
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The rate of each flow in bytes per second; kNoLimit where nothing holds it back. Vectors that are
// not empty have the lengths above. Progressive filling: Bertsekas and Gallager, "Data Networks",
// 1992, section 6.5.2. The level at which a link is full only rises while flows are fixed below it,
// so a heap of them is corrected as it is read: O((crossings + links) log links) steps, and those
// of sorting the limits.
std::vector<double> max_min_rates(const MaxMinProblem& max_min_problem);

}  // namespace regatta::fabric
