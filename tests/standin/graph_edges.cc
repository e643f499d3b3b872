// Nodes of a graph, and the edges between them.
#include <algorithm>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"

using namespace regatta::standin;

namespace {

using Nodes = std::vector<CUgraphNode>;

// With nowhere to write, how many there are; else as many as there is room for, and null beyond.
CUresult give(const Nodes& present, CUgraphNode* into, CUgraphEdgeData* edges, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (into != nullptr)
    for (std::size_t i = 0; i < *count; ++i)
      into[i] = i < present.size() ? present[i] : nullptr;
  const std::size_t given = into == nullptr ? present.size() : std::min(*count, present.size());
  if (edges != nullptr) std::fill_n(edges, given, CUgraphEdgeData{});
  *count = given;
  return CUDA_SUCCESS;
}

Nodes nodes_of(const CUgraph_st& graph, bool roots_only) {
  Nodes nodes;
  for (const auto& node : graph.nodes)
    if (!roots_only || node->after.empty()) nodes.push_back(node.get());
  return nodes;
}

Nodes dependents_of(CUgraphNode node) {
  Nodes nodes;
  for (const auto& own : node->graph->nodes)
    if (std::ranges::find(own->after, node) != own->after.end()) nodes.push_back(own.get());
  return nodes;
}

bool has_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  if (!is_graph(graph) || (count > 0 && (from == nullptr || to == nullptr))) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (!has_node(*graph, from[i]) || !has_node(*graph, to[i]) || from[i] == to[i]) return false;
  return true;
}

bool is_edge(CUgraphNode from, CUgraphNode to) {
  return std::ranges::find(to->after, from) != to->after.end();
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  const std::lock_guard lock(process().mutex);
  if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
  return give(nodes_of(*graph, false), nodes, nullptr, count);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  const std::lock_guard lock(process().mutex);
  if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
  return give(nodes_of(*graph, true), nodes, nullptr, count);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edges, std::size_t* count) {
  const std::lock_guard lock(process().mutex);
  if (!is_graph(graph) || count == nullptr || (from == nullptr) != (to == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  Nodes sources;
  Nodes targets;
  for (const auto& node : graph->nodes)
    for (const CUgraphNode before : node->after) {
      sources.push_back(before);
      targets.push_back(node.get());
    }
  std::size_t again = *count;
  if (to != nullptr) give(targets, to, nullptr, &again);
  return give(sources, from, edges, count);
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                       std::size_t* count) {
  const std::lock_guard lock(process().mutex);
  if (!is_node(node)) return CUDA_ERROR_INVALID_VALUE;
  return give(node->after, nodes, edges, count);
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                         CUgraphEdgeData* edges, std::size_t* count) {
  const std::lock_guard lock(process().mutex);
  if (!is_node(node)) return CUDA_ERROR_INVALID_VALUE;
  return give(dependents_of(node), nodes, edges, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, std::size_t count) {
  const std::lock_guard lock(process().mutex);
  if (!has_edges(graph, from, to, count)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (is_edge(from[i], to[i])) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    to[i]->after.push_back(from[i]);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, std::size_t count) {
  const std::lock_guard lock(process().mutex);
  if (!has_edges(graph, from, to, count)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (!is_edge(from[i], to[i])) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    std::erase(to[i]->after, from[i]);
  return CUDA_SUCCESS;
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

// Memory of graphs there is once: its nodes stay.
CUresult cuGraphDestroyNode(CUgraphNode node) {
  const std::lock_guard lock(process().mutex);
  if (!is_node(node)) return CUDA_ERROR_INVALID_VALUE;
  if (node->body.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
      node->body.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUgraph_st& graph = *node->graph;
  for (const auto& own : graph.nodes)
    std::erase(own->after, node);
  if (node->body.child != nullptr) drop_graph(node->body.child);
  std::erase_if(graph.nodes, [&](const auto& own) { return own.get() == node; });
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, int* type) {
  const std::lock_guard lock(process().mutex);
  if (type == nullptr || !is_node(node)) return CUDA_ERROR_INVALID_VALUE;
  *type = node->body.type;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  const std::lock_guard lock(process().mutex);
  if (node == nullptr || !is_graph(clone)) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& own : clone->nodes)
    if (own->original == original) {
      *node = own.get();
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  const std::lock_guard lock(process().mutex);
  if (graph == nullptr || !is_node(node) || node->body.child == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *graph = node->body.child;
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
