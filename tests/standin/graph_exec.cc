// Executable graphs: copies whose nodes can be updated, and launched repeatedly. A launch runs the
// nodes one after the other, in an order that their dependencies allow.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

struct ExecNode {
  CUgraphNode source = nullptr;  // by which it is named; the graph may be gone
  NodeBody body;
  std::vector<std::size_t> after;  // by their places
  std::vector<ExecNode> child;
  bool is_enabled = true;
};

}  // namespace
}  // namespace regatta::standin

// NOLINTNEXTLINE(readability-identifier-naming): the name is the driver's
struct CUgraphExec_st {
  std::vector<regatta::standin::ExecNode> nodes;
  regatta::standin::GraphAddresses addresses;
  unsigned long long flags = 0;
};

namespace {

constexpr unsigned long long kFlags = 15;

std::set<CUgraphExec>& executables() {
  static auto* const all = new std::set<CUgraphExec>;
  return *all;
}

// Empty for a graph that has nodes: they form a circle.
std::vector<ExecNode> exec_nodes(const CUgraph_st& graph) {
  const std::vector<CUgraphNode> order = ordered_nodes(graph);
  if (order.size() != graph.nodes.size()) return {};
  std::map<CUgraphNode, std::size_t> places;
  std::vector<ExecNode> nodes;
  for (const CUgraphNode node : order) {
    ExecNode made{.source = node, .body = node->body, .after = {}, .child = {}};
    for (const CUgraphNode before : node->after)
      made.after.push_back(places.at(before));
    std::ranges::sort(made.after);
    if (node->body.child != nullptr) made.child = exec_nodes(*node->body.child);
    made.body.child = nullptr;  // the graph's own, which may end before this
    places[node] = nodes.size();
    nodes.push_back(std::move(made));
  }
  return nodes;
}

GraphAddresses addresses_of(const std::vector<ExecNode>& nodes) {
  GraphAddresses addresses;
  for (const ExecNode& node : nodes) {
    if (node.body.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
      addresses.allocated.push_back(node.body.address);
    if (node.body.type == CU_GRAPH_NODE_TYPE_MEM_FREE) addresses.freed.push_back(node.body.address);
  }
  return addresses;
}

CUresult instantiate(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  if (executable == nullptr || !is_whole(graph) || flags > kFlags) return CUDA_ERROR_INVALID_VALUE;
  std::vector<ExecNode> nodes = exec_nodes(*graph);
  if (nodes.size() != graph->nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  *executable = new CUgraphExec_st{.nodes = std::move(nodes), .addresses = {}, .flags = flags};
  (*executable)->addresses = addresses_of((*executable)->nodes);
  executables().insert(*executable);
  return CUDA_SUCCESS;
}

ExecNode* find_node(CUgraphExec executable, CUgraphNode source) {
  if (!executables().contains(executable)) return nullptr;
  const auto at = std::ranges::find(executable->nodes, source, &ExecNode::source);
  return at == executable->nodes.end() ? nullptr : &*at;
}

// The kinds of memory that a copy is between must stay.
bool may_become(const NodeBody& now, const NodeBody& wanted) {
  return now.type == wanted.type && (now.type != CU_GRAPH_NODE_TYPE_MEMCPY ||
                                     (now.copy.srcMemoryType == wanted.copy.srcMemoryType &&
                                      now.copy.dstMemoryType == wanted.copy.dstMemoryType));
}

template <typename Parameters>
CUresult write_parameters(CUgraphExec executable, CUgraphNode source, const Parameters* parameters,
                          CUresult (*make)(const Parameters*, NodeBody*)) {
  const std::lock_guard lock(process().mutex);
  ExecNode* const node = find_node(executable, source);
  NodeBody body;
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult made = make(parameters, &body); made != CUDA_SUCCESS) return made;
  if (!may_become(node->body, body)) return CUDA_ERROR_INVALID_VALUE;
  node->body = std::move(body);
  return CUDA_SUCCESS;
}

// Where two graphs differ in more than what their nodes are told.
CUgraphExecUpdateResultInfo compare(const std::vector<ExecNode>& now,
                                    const std::vector<ExecNode>& wanted) {
  if (now.size() != wanted.size())
    return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].body.type != wanted[i].body.type)
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, wanted[i].source, nullptr};
    if (now[i].after != wanted[i].after)
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, wanted[i].source, nullptr};
    if (!may_become(now[i].body, wanted[i].body))
      return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, wanted[i].source, nullptr};
    // Memory has its addresses from the nodes.
    if (now[i].body.address != wanted[i].body.address)
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, wanted[i].source, nullptr};
    const auto child = compare(now[i].child, wanted[i].child);
    if (child.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return child;
  }
  return {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
}

void take_over(std::vector<ExecNode>& now, std::vector<ExecNode>&& wanted) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    now[i].body = std::move(wanted[i].body);
    take_over(now[i].child, std::move(wanted[i].child));
  }
}

CUresult run(const std::vector<ExecNode>& nodes, CUstream stream) {
  for (const ExecNode& node : nodes) {
    if (!node.is_enabled) continue;
    CUresult result = CUDA_SUCCESS;
    switch (node.body.type) {
      case CU_GRAPH_NODE_TYPE_GRAPH:
        result = run(node.child, stream);
        break;
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        result = cuEventRecord(node.body.event, stream);
        break;
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        result = cuStreamWaitEvent(stream, node.body.event, 0);
        break;
      default:
        result = enqueue(stream, node.body.work);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// A launch that is captured: its nodes become nodes of the other graph.
CUresult capture_nodes(const std::vector<ExecNode>& nodes, CUstream_st& stream) {
  for (const ExecNode& node : nodes) {
    const CUresult result = node.body.type == CU_GRAPH_NODE_TYPE_GRAPH
                                ? capture_nodes(node.child, stream)
                                : capture_body(stream, node.body);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

// It has nothing to say of a graph that it refuses.
CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                            char* log, std::size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) *log = '\0';
  return instantiate(executable, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                               char* log, std::size_t log_bytes) {
  return cuGraphInstantiate(executable, graph, error_node, log, log_bytes);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                     unsigned long long flags) {
  return instantiate(executable, graph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = instantiate(executable, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out = result == CUDA_SUCCESS ? 0 : 1;
  return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec executable, std::uint64_t* flags) {
  const std::lock_guard lock(process().mutex);
  if (flags == nullptr || !executables().contains(executable)) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  const std::lock_guard lock(process().mutex);
  if (executables().erase(executable) == 0) return CUDA_ERROR_INVALID_VALUE;
  delete executable;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                              CUgraphExecUpdateResultInfo* info) {
  const std::lock_guard lock(process().mutex);
  if (info == nullptr || !executables().contains(executable) || !is_whole(graph))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<ExecNode> wanted = exec_nodes(*graph);
  *info = compare(executable->nodes, wanted);
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  take_over(executable->nodes, std::move(wanted));
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                           int* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult updated = cuGraphExecUpdate_v2(executable, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return updated;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* launch) {
  return write_parameters(executable, node, launch, &kernel_body);
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMCPY3D* copy, CUcontext) {
  return write_parameters(executable, node, copy, &copy_body);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  return write_parameters(executable, node, set, &set_body);
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* host) {
  return write_parameters(executable, node, host, &host_body);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode source,
                                            CUgraph child) {
  const std::lock_guard lock(process().mutex);
  ExecNode* const node = find_node(executable, source);
  if (node == nullptr || node->body.type != CU_GRAPH_NODE_TYPE_GRAPH || !is_whole(child))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<ExecNode> wanted = exec_nodes(*child);
  if (compare(node->child, wanted).result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
    return CUDA_ERROR_INVALID_VALUE;
  take_over(node->child, std::move(wanted));
  return CUDA_SUCCESS;
}

// Kernels, copies and sets can be left out.
CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode source, unsigned is_enabled) {
  const std::lock_guard lock(process().mutex);
  ExecNode* const node = find_node(executable, source);
  if (node == nullptr || node->body.type > CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  node->is_enabled = is_enabled != 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode source, unsigned* is_enabled) {
  const std::lock_guard lock(process().mutex);
  const ExecNode* const node = find_node(executable, source);
  if (node == nullptr || is_enabled == nullptr || node->body.type > CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  *is_enabled = node->is_enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

// Nothing has to be brought to this device.
CUresult cuGraphUpload(CUgraphExec executable, CUstream handle) {
  const std::lock_guard lock(process().mutex);
  if (!executables().contains(executable)) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = nullptr;
  return find_stream(handle, &stream);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  std::vector<ExecNode> nodes;
  {
    const std::lock_guard lock(process().mutex);
    if (!executables().contains(executable)) return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = nullptr;
    CUresult result = find_stream(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->capture != nullptr)
      return executable->addresses.allocated.empty() ? capture_nodes(executable->nodes, *stream)
                                                     : CUDA_ERROR_NOT_SUPPORTED;
    const bool frees_first =
        (executable->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    result = begin_graph_memory(executable->addresses, frees_first);
    if (result != CUDA_SUCCESS) return result;
    nodes = executable->nodes;
  }
  return run(nodes, handle);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
