// Graphs: made node by node or by captures.
#include "tests/standin/graph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "tests/standin/api.h"
#include "tests/standin/copy.h"
#include "tests/standin/launch.h"
#include "tests/standin/module.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

std::set<CUgraph>& graphs() {
  static auto* const all = new std::set<CUgraph>;
  return *all;
}

// The body that was made, or the reason why there is none.
CUresult add_made(CUresult made, CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                  std::size_t count, const NodeBody& body) {
  return made == CUDA_SUCCESS ? add_node(node, graph, after, count, body) : made;
}

CUresult add_event_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                        std::size_t count, CUevent event, int type) {
  const std::lock_guard lock(process().mutex);
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_VALUE;
  return add_node(node, graph, after, count, {.type = type, .event = event});
}

}  // namespace

CUgraph make_graph() {
  auto* const graph = new CUgraph_st;
  graphs().insert(graph);
  return graph;
}

void drop_graph(CUgraph graph) {
  graphs().erase(graph);
  for (const auto& node : graph->nodes)
    if (node->body.child != nullptr) drop_graph(node->body.child);
  delete graph;
}

bool is_graph(CUgraph graph) {
  return graphs().contains(graph);
}

bool is_whole(CUgraph graph) {
  return graphs().contains(graph) && graph->capture_id == 0;
}

bool has_node(const CUgraph_st& graph, CUgraphNode node) {
  return std::ranges::any_of(graph.nodes, [&](const auto& own) { return own.get() == node; });
}

bool is_node(CUgraphNode node) {
  return std::ranges::any_of(graphs(), [&](CUgraph graph) { return has_node(*graph, node); });
}

CUgraph clone_graph(const CUgraph_st& graph) {
  const bool has_memory = std::ranges::any_of(graph.nodes, [](const auto& node) {
    return node->body.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
           node->body.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  });
  if (has_memory) return nullptr;
  CUgraph const clone = make_graph();
  std::map<CUgraphNode, CUgraphNode> twins;
  for (const auto& node : graph.nodes) {
    auto twin = std::make_unique<CUgraphNode_st>();
    twin->graph = clone;
    twin->body = node->body;
    twin->original = node.get();
    if (node->body.child != nullptr) twin->body.child = clone_graph(*node->body.child);
    twins[node.get()] = twin.get();
    clone->nodes.push_back(std::move(twin));
  }
  for (const auto& node : graph.nodes)
    for (const CUgraphNode before : node->after)
      twins[node.get()]->after.push_back(twins[before]);
  return clone;
}

std::vector<CUgraphNode> ordered_nodes(const CUgraph_st& graph) {
  std::vector<CUgraphNode> order;
  std::set<CUgraphNode> done;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const auto& node : graph.nodes) {
      if (done.contains(node.get())) continue;
      if (!std::ranges::all_of(node->after, [&](CUgraphNode own) { return done.contains(own); }))
        continue;
      done.insert(node.get());
      order.push_back(node.get());
      goes_on = true;
    }
  }
  return order;
}

CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  NodeBody body) {
  if (node == nullptr || !graphs().contains(graph) || (count > 0 && after == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUgraphNode_st>();
  for (std::size_t i = 0; i < count; ++i) {
    if (!has_node(*graph, after[i])) return CUDA_ERROR_INVALID_VALUE;
    made->after.push_back(after[i]);
  }
  made->graph = graph;
  made->body = std::move(body);
  *node = made.get();
  graph->nodes.push_back(std::move(made));
  return CUDA_SUCCESS;
}

CUresult capture_body(CUstream_st& stream, NodeBody body) {
  if (stream.capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode node = nullptr;
  const CUresult added = add_node(&node, stream.capture, stream.frontier.data(),
                                  stream.frontier.size(), std::move(body));
  if (added == CUDA_SUCCESS) stream.frontier = {node};
  return added;
}

std::shared_ptr<const KernelNode> keep_launch(const CUDA_KERNEL_NODE_PARAMS& launch) {
  auto kept = std::make_shared<KernelNode>();
  kept->launch = launch;
  CUfunction function = nullptr;
  if (launch.kernelParams == nullptr || find_function(launch.func, &function) != CUDA_SUCCESS)
    return kept;
  for (std::size_t i = 0; i < function->parameters.size(); ++i) {
    const auto* const value = static_cast<const std::byte*>(launch.kernelParams[i]);
    kept->values.emplace_back(value, value + function->parameters[i].bytes);
  }
  for (auto& value : kept->values)
    kept->pointers.push_back(value.data());
  kept->launch.kernelParams = kept->pointers.data();
  return kept;
}

CUresult kernel_body(const CUDA_KERNEL_NODE_PARAMS* launch, NodeBody* body) {
  if (launch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Shape shape{{launch->gridDimX, launch->gridDimY, launch->gridDimZ},
                    {launch->blockDimX, launch->blockDimY, launch->blockDimZ},
                    launch->sharedMemBytes,
                    launch->kernelParams,
                    launch->extra};
  *body = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  const CUresult result = kernel_work(launch->func, shape, &body->work);
  if (result == CUDA_SUCCESS) body->kernel = keep_launch(*launch);
  return result;
}

CUresult copy_body(const CUDA_MEMCPY3D* copy, NodeBody* body) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *body = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *copy};
  Copy rows;
  const CUresult result = copy_box(*copy, &rows);
  return result == CUDA_SUCCESS ? copy_work(rows, &body->work) : result;
}

CUresult set_body(const CUDA_MEMSET_NODE_PARAMS* set, NodeBody* body) {
  if (set == nullptr || set->width == 0 || set->height == 0) return CUDA_ERROR_INVALID_VALUE;
  *body = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .set = *set};
  const Copy rows{.to = {.pitch = set->height > 1 ? set->pitch : 0},
                  .width = set->width,
                  .height = set->height};
  return set_work(set->dst, set->value, set->elementSize, rows, &body->work);
}

CUresult host_body(const CUDA_HOST_NODE_PARAMS* host, NodeBody* body) {
  if (host == nullptr || host->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *body = {.type = CU_GRAPH_NODE_TYPE_HOST,
           .work = {.kind = OpKind::kCall, .action = [call = *host] { call.fn(call.userData); }},
           .host = *host};
  return CUDA_SUCCESS;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  *graph = make_graph();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  const std::lock_guard lock(process().mutex);
  if (!is_whole(graph)) return CUDA_ERROR_INVALID_VALUE;
  drop_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  const std::lock_guard lock(process().mutex);
  if (clone == nullptr || !is_whole(graph)) return CUDA_ERROR_INVALID_VALUE;
  CUgraph const made = clone_graph(*graph);
  if (made == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  *clone = made;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS* launch) {
  const std::lock_guard lock(process().mutex);
  NodeBody body;
  return add_made(kernel_body(launch, &body), node, graph, after, count, body);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMCPY3D* copy, CUcontext) {
  const std::lock_guard lock(process().mutex);
  NodeBody body;
  return add_made(copy_body(copy, &body), node, graph, after, count, body);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  const std::lock_guard lock(process().mutex);
  NodeBody body;
  return add_made(set_body(set, &body), node, graph, after, count, body);
}

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            std::size_t count, const CUDA_HOST_NODE_PARAMS* host) {
  const std::lock_guard lock(process().mutex);
  NodeBody body;
  return add_made(host_body(host, &body), node, graph, after, count, body);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                             std::size_t count) {
  const std::lock_guard lock(process().mutex);
  return add_node(node, graph, after, count, {});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  std::size_t count, CUgraph child) {
  const std::lock_guard lock(process().mutex);
  if (!is_whole(child) || child == graph) return CUDA_ERROR_INVALID_VALUE;
  CUgraph const own = clone_graph(*child);
  if (own == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult added =
      add_node(node, graph, after, count, {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = own});
  if (added != CUDA_SUCCESS) drop_graph(own);
  return added;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, CUevent event) {
  return add_event_node(node, graph, after, count, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 std::size_t count, CUevent event) {
  return add_event_node(node, graph, after, count, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
