// Parameters of nodes, and changes to them in graphs; for executable graphs see graph_exec.cc.
#include <utility>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"

using namespace regatta::standin;

namespace {

CUresult check_node(CUgraphNode node, int type, const void* parameters) {
  return parameters != nullptr && is_node(node) && node->body.type == type
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

template <typename Parameters>
CUresult read_parameters(CUgraphNode node, int type, Parameters* into,
                         Parameters NodeBody::*member) {
  const std::lock_guard lock(process().mutex);
  const CUresult result = check_node(node, type, into);
  if (result == CUDA_SUCCESS) *into = node->body.*member;
  return result;
}

template <typename Parameters>
CUresult write_parameters(CUgraphNode node, int type, const Parameters* parameters,
                          CUresult (*make)(const Parameters*, NodeBody*)) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult result = check_node(node, type, parameters); result != CUDA_SUCCESS)
    return result;
  NodeBody body;
  const CUresult made = make(parameters, &body);
  if (made == CUDA_SUCCESS) node->body = std::move(body);
  return made;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

// The parameters stay the node's.
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* launch) {
  const std::lock_guard lock(process().mutex);
  const CUresult result = check_node(node, CU_GRAPH_NODE_TYPE_KERNEL, launch);
  if (result != CUDA_SUCCESS) return result;
  if (node->body.kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *launch = node->body.kernel->launch;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* launch) {
  return write_parameters(node, CU_GRAPH_NODE_TYPE_KERNEL, launch, &kernel_body);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  return read_parameters(node, CU_GRAPH_NODE_TYPE_MEMCPY, copy, &NodeBody::copy);
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return write_parameters(node, CU_GRAPH_NODE_TYPE_MEMCPY, copy, &copy_body);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* set) {
  return read_parameters(node, CU_GRAPH_NODE_TYPE_MEMSET, set, &NodeBody::set);
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set) {
  return write_parameters(node, CU_GRAPH_NODE_TYPE_MEMSET, set, &set_body);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) {
  return read_parameters(node, CU_GRAPH_NODE_TYPE_HOST, host, &NodeBody::host);
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  return write_parameters(node, CU_GRAPH_NODE_TYPE_HOST, host, &host_body);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* alloc) {
  return read_parameters(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, alloc, &NodeBody::alloc);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return read_parameters(node, CU_GRAPH_NODE_TYPE_MEM_FREE, address, &NodeBody::address);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
