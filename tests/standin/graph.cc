// Graphs: made node by node or by captures. A launch runs the nodes one after the other,
// in an order that their dependencies allow.
#include "tests/standin/graph.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/standin/api.h"
#include "tests/standin/launch.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

std::set<CUgraph>& graphs() {
  static auto* const all = new std::set<CUgraph>;
  return *all;
}
std::set<CUgraphExec>& executables() {
  static auto* const all = new std::set<CUgraphExec>;
  return *all;
}

// A graph that no capture still adds to.
bool is_whole(CUgraph graph) {
  return graphs().contains(graph) && graph->capture_id == 0;
}

CUresult add_locked(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                    Work work) {
  const std::lock_guard lock(process().mutex);
  return add_node(node, graph, after, count, std::move(work));
}

template <typename Value>
Work fill_work(CUdeviceptr to, Value value, std::size_t width, std::size_t height,
               std::size_t pitch) {
  const std::size_t row = width * sizeof value;
  const auto fill = [=] {
    const std::lock_guard lock(process().mutex);
    for (std::size_t y = 0; y < height; ++y)
      for_each_part(to + y * pitch, row, [&](std::byte* part, std::uint64_t size) {
        std::fill_n(reinterpret_cast<Value*>(part), size / sizeof value, value);
      });
  };
  return {.kind = OpKind::kCopy, .engine = Engine::kWithin, .bytes = row * height, .action = fill};
}

}  // namespace

namespace regatta::standin {

CUgraph make_graph() {
  auto* const graph = new CUgraph_st;
  graphs().insert(graph);
  return graph;
}

void drop_graph(CUgraph graph) {
  graphs().erase(graph);
  delete graph;
}

bool is_graph(CUgraph graph) {
  return graphs().contains(graph);
}

bool has_node(const CUgraph_st& graph, CUgraphNode node) {
  return std::ranges::any_of(graph.nodes, [&](const auto& own) { return own.get() == node; });
}

// What a node comes after is in the graph before it: the order of making is one that is allowed.
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  Work work) {
  if (node == nullptr || !graphs().contains(graph) || (count > 0 && after == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUgraphNode_st>();
  for (std::size_t i = 0; i < count; ++i) {
    if (!has_node(*graph, after[i])) return CUDA_ERROR_INVALID_VALUE;
    made->after.push_back(after[i]);
  }
  made->type = node_type(work);
  made->work = [work = std::move(work)] { return work; };
  *node = made.get();
  graph->nodes.push_back(std::move(made));
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

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  const Shape shape{{kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ},
                    {kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ},
                    kernel->sharedMemBytes,
                    kernel->kernelParams,
                    kernel->extra};
  const std::lock_guard lock(process().mutex);
  const CUresult result = kernel_work(kernel->func, shape, &work);
  return result == CUDA_SUCCESS ? add_node(node, graph, after, count, work) : result;
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  if (set == nullptr || set->width == 0 || set->height == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto made = [&](auto value) {
    return fill_work(set->dst, value, set->width, set->height, set->pitch);
  };
  switch (set->elementSize) {
    case 1:
      return add_locked(node, graph, after, count, made(static_cast<std::uint8_t>(set->value)));
    case 2:
      return add_locked(node, graph, after, count, made(static_cast<std::uint16_t>(set->value)));
    case 4:
      return add_locked(node, graph, after, count, made(set->value));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            std::size_t count, const CUDA_HOST_NODE_PARAMS* host) {
  if (host == nullptr || host->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_locked(node, graph, after, count,
                    {.kind = OpKind::kCall, .action = [call = *host] { call.fn(call.userData); }});
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                             std::size_t count) {
  return add_locked(node, graph, after, count, {});
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  const std::lock_guard lock(process().mutex);
  if (count == nullptr || !graphs().contains(graph)) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t present = graph->nodes.size();
  if (nodes != nullptr)
    for (std::size_t i = 0; i < *count; ++i)
      nodes[i] = i < present ? graph->nodes[i].get() : nullptr;
  *count = nodes == nullptr ? present : std::min(*count, present);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, int* type) {
  const std::lock_guard lock(process().mutex);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  const std::lock_guard lock(process().mutex);
  if (executable == nullptr || !is_whole(graph)) return CUDA_ERROR_INVALID_VALUE;
  *executable = new CUgraphExec_st;
  for (const auto& node : graph->nodes)
    (*executable)->works.push_back(node->work);
  (*executable)->addresses = graph->addresses;
  executables().insert(*executable);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  const std::lock_guard lock(process().mutex);
  if (executables().erase(executable) == 0) return CUDA_ERROR_INVALID_VALUE;
  delete executable;
  return CUDA_SUCCESS;
}

// Nothing has to be brought to this device.
CUresult cuGraphUpload(CUgraphExec executable, CUstream handle) {
  const std::lock_guard lock(process().mutex);
  if (!executables().contains(executable)) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = nullptr;
  return find_stream(handle, &stream);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  std::vector<std::function<Work()>> works;
  {
    const std::lock_guard lock(process().mutex);
    if (!executables().contains(executable)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult begun = begin_graph_memory(executable->addresses); begun != CUDA_SUCCESS)
      return begun;
    works = executable->works;
  }
  for (const auto& work : works)
    if (const CUresult result = enqueue(stream, work()); result != CUDA_SUCCESS) return result;
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
