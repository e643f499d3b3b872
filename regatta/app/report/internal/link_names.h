// report/internal/link_names.h: the names of directed links in lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/model/topo/graph_names.h"

namespace regatta::report {

// `name`: topo::directed_link_name(), or another text of a directed link.
inline std::vector<std::string> link_names(
    const topo::Graph& graph, const std::vector<std::uint32_t>& links,
    std::string (*name)(const topo::Graph&, std::uint32_t) = topo::directed_link_name) {
  std::vector<std::string> names;
  names.reserve(links.size());
  for (const std::uint32_t link : links)
    names.push_back(name(graph, link));
  return names;
}

}  // namespace regatta::report
