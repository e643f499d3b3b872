// tests/standin/graph.h: what the files about graphs share; all of it under the lock.
#pragma once

#include <cstddef>

#include "tests/standin/process.h"

namespace regatta::standin {

CUgraph make_graph();
void drop_graph(CUgraph graph);
bool is_graph(CUgraph graph);
bool has_node(const CUgraph_st& graph, CUgraphNode node);
// Adds a node that does `work` after others of the graph.
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  Work work);

// Takes the memory of a graph that is launched; CUDA_ERROR_INVALID_VALUE while what it allocated
// before is not free.
CUresult begin_graph_memory(const GraphAddresses& addresses);
// False when no launch allocated it. The device's bytes stay the graph's until they are trimmed.
bool free_graph_memory(CUdeviceptr address);

}  // namespace regatta::standin
