// tests/standin/graph.h: graphs, their nodes and what is instantiated of them; all of it under the
// lock.
#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "tests/standin/process.h"

namespace regatta::standin {

// A launch as a node keeps it, with parameters of its own.
struct KernelNode {
  CUDA_KERNEL_NODE_PARAMS launch{};
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> pointers;
};

// The type of a node and its parameters; the type says which of them count.
struct NodeBody {
  int type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work{};
  std::shared_ptr<const KernelNode> kernel{};
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS set{};
  CUDA_HOST_NODE_PARAMS host{};
  CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
  CUdeviceptr address = 0;  // allocated or freed
  CUevent event = nullptr;
  CUgraph child = nullptr;  // the node's own
};

// Bodies of nodes; they fail as the calls do.
CUresult kernel_body(const CUDA_KERNEL_NODE_PARAMS* launch, NodeBody* body);
CUresult copy_body(const CUDA_MEMCPY3D* copy, NodeBody* body);
CUresult set_body(const CUDA_MEMSET_NODE_PARAMS* set, NodeBody* body);
CUresult host_body(const CUDA_HOST_NODE_PARAMS* host, NodeBody* body);
std::shared_ptr<const KernelNode> keep_launch(const CUDA_KERNEL_NODE_PARAMS& launch);

CUgraph make_graph();
void drop_graph(CUgraph graph);
bool is_graph(CUgraph graph);
// A graph that no capture still adds to.
bool is_whole(CUgraph graph);
bool is_node(CUgraphNode node);
bool has_node(const CUgraph_st& graph, CUgraphNode node);
// Null: it has memory of its own, which there is once.
CUgraph clone_graph(const CUgraph_st& graph);
// Nodes in an order that their dependencies allow; fewer than there are when some form a circle.
std::vector<CUgraphNode> ordered_nodes(const CUgraph_st& graph);

CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  NodeBody body);
// Nodes of memory, also for captures; `alloc->dptr` is set.
CUresult add_alloc_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                        std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* alloc);
CUresult add_free_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                       std::size_t count, CUdeviceptr address);
// The node that a captured stream's work becomes comes after what the stream did.
CUresult capture_body(CUstream_st& stream, NodeBody body);

// Allocations and frees of a launch of a graph, in its order.
struct GraphAddresses {
  std::vector<CUdeviceptr> allocated;
  std::vector<CUdeviceptr> freed;
};
// Takes the memory of a graph that is launched; CUDA_ERROR_INVALID_VALUE while what it allocated
// before is not free, unless it is to be freed now.
CUresult begin_graph_memory(const GraphAddresses& addresses, bool frees_first);
// False when no launch allocated it. The device's bytes stay the graph's until they are trimmed.
bool free_graph_memory(CUdeviceptr address);

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
struct CUgraphNode_st {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> after;
  regatta::standin::NodeBody body;
  CUgraphNode original = nullptr;  // of a node of a clone
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  // Number of its capture while that is in progress; 0: none is.
  std::uint64_t capture_id = 0;
  int capture_mode = 0;
  std::thread::id capture_thread;
  bool is_made_by_capture = false;
  bool is_invalid = false;
};
// NOLINTEND(readability-identifier-naming)
