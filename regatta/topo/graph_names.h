// topo/graph_names.h: the nodes and links of a graph by the names that people use for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "regatta/core/ids.h"
#include "regatta/topo/graph.h"

namespace regatta::topo {

// None where the graph has none of that name.
std::optional<LinkId> find_link(const Graph& graph, std::string_view name);
std::optional<NodeId> find_node(const Graph& graph, std::string_view name);

// "leaf0-spine1 from leaf0 to spine1".
std::string to_string(const Graph& graph, DirectedLink link);

}  // namespace regatta::topo
