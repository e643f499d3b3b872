// diag/internal/path_crossing.h: whether a path crosses what a fault breaks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/diag/fault_verdict.h"

namespace regatta::diag {

// links_to_avoid(), ascending.
inline std::vector<std::uint32_t> sorted_links(const topo::Graph& graph, const Culprit& culprit) {
  std::vector<std::uint32_t> links = links_to_avoid(graph, culprit);
  std::ranges::sort(links);
  return links;
}

// `links`: ascending.
inline bool crosses_any(std::span<const std::uint32_t> path, std::span<const std::uint32_t> links) {
  return std::ranges::any_of(
      path, [&](std::uint32_t link) { return std::ranges::binary_search(links, link); });
}

}  // namespace regatta::diag
