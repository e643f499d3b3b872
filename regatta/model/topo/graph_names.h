// topo/graph_names.h: the nodes and links of a graph by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"

namespace regatta::topo {

// Nothing when the graph has none of that name.
std::optional<LinkId> find_link(const Graph& graph, std::string_view name);
std::optional<NodeId> find_node(const Graph& graph, std::string_view name);

// "leaf0-spine1 up", "down": the direction from a link's end `a` is twice its number, the reverse
// direction one more.
std::string directed_link_name(const Graph& graph, std::uint32_t directed_link);
// "leaf0-spine1 from leaf0 to spine1".
std::string to_string(const Graph& graph, DirectedLink link);

}  // namespace regatta::topo
