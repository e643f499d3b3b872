// tests/standin/api_graph.h: the functions of the driver about captures and graphs.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
CUresult cuStreamBeginCapture(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int mode);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuStreamIsCapturing(CUstream, int* status);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode* after,
                                     const CUgraphEdgeData*, std::size_t count, int mode);
CUresult cuStreamGetCaptureInfo(CUstream, int* status, std::uint64_t* id);
CUresult cuStreamGetCaptureInfo_v2(CUstream, int* status, std::uint64_t* id, CUgraph*,
                                   const CUgraphNode** after, std::size_t* count);
CUresult cuStreamGetCaptureInfo_v3(CUstream, int* status, std::uint64_t* id, CUgraph*,
                                   const CUgraphNode** after, const CUgraphEdgeData**,
                                   std::size_t* count);
CUresult cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode* after, std::size_t count,
                                           unsigned flags);
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream, CUgraphNode* after, const CUgraphEdgeData*,
                                              std::size_t count, unsigned flags);
CUresult cuThreadExchangeStreamCaptureMode(int* mode);
CUresult cuGraphCreate(CUgraph*, unsigned flags);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphAddKernelNode_v2(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphAddMemsetNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                              const CUDA_MEMSET_NODE_PARAMS*, CUcontext);
CUresult cuGraphAddHostNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                            const CUDA_HOST_NODE_PARAMS*);
CUresult cuGraphAddEmptyNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count);
CUresult cuGraphAddMemAllocNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS*);
CUresult cuGraphAddMemFreeNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                               CUdeviceptr);
CUresult cuDeviceGraphMemTrim(CUdevice);
CUresult cuDeviceGetGraphMemAttribute(CUdevice, int attribute, void* value);
CUresult cuDeviceSetGraphMemAttribute(CUdevice, int attribute, void* value);
CUresult cuGraphClone(CUgraph* clone, CUgraph);
CUresult cuGraphAddMemcpyNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                              const CUDA_MEMCPY3D*, CUcontext);
CUresult cuGraphAddChildGraphNode(CUgraphNode*, CUgraph, const CUgraphNode* after,
                                  std::size_t count, CUgraph child);
CUresult cuGraphAddEventRecordNode(CUgraphNode*, CUgraph, const CUgraphNode* after,
                                   std::size_t count, CUevent);
CUresult cuGraphAddEventWaitNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                                 CUevent);

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode, CUDA_MEMCPY3D*);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode, const CUDA_MEMCPY3D*);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode, CUDA_MEMSET_NODE_PARAMS*);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*);
CUresult cuGraphHostNodeGetParams(CUgraphNode, CUDA_HOST_NODE_PARAMS*);
CUresult cuGraphHostNodeSetParams(CUgraphNode, const CUDA_HOST_NODE_PARAMS*);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS*);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode, CUdeviceptr*);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph*);

CUresult cuGraphGetNodes(CUgraph, CUgraphNode* nodes, std::size_t* count);
CUresult cuGraphGetRootNodes(CUgraph, CUgraphNode* nodes, std::size_t* count);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode* from, CUgraphNode* to, std::size_t* count);
CUresult cuGraphGetEdges_v2(CUgraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData*,
                            std::size_t* count);
CUresult cuGraphNodeGetDependencies(CUgraphNode, CUgraphNode* nodes, std::size_t* count);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode, CUgraphNode* nodes, CUgraphEdgeData*,
                                       std::size_t* count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode, CUgraphNode* nodes, std::size_t* count);
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode, CUgraphNode* nodes, CUgraphEdgeData*,
                                         std::size_t* count);
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count);
CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, std::size_t count);
CUresult cuGraphRemoveDependencies(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count);
CUresult cuGraphRemoveDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, std::size_t count);
CUresult cuGraphDestroyNode(CUgraphNode);
CUresult cuGraphNodeGetType(CUgraphNode, int* type);
CUresult cuGraphNodeFindInClone(CUgraphNode*, CUgraphNode original, CUgraph clone);

CUresult cuGraphInstantiateWithParams(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*);
CUresult cuGraphExecGetFlags(CUgraphExec, std::uint64_t* flags);
CUresult cuGraphExecUpdate(CUgraphExec, CUgraph, CUgraphNode* error_node, int* result);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode,
                                           const CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*, CUcontext);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*,
                                        CUcontext);
CUresult cuGraphExecHostNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS*);
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec, CUgraphNode, CUgraph child);
CUresult cuGraphNodeSetEnabled(CUgraphExec, CUgraphNode, unsigned is_enabled);
CUresult cuGraphNodeGetEnabled(CUgraphExec, CUgraphNode, unsigned* is_enabled);
CUresult cuGraphInstantiate(CUgraphExec*, CUgraph, CUgraphNode* error_node, char* log,
                            std::size_t log_bytes);
CUresult cuGraphInstantiate_v2(CUgraphExec*, CUgraph, CUgraphNode* error_node, char* log,
                               std::size_t log_bytes);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphUpload(CUgraphExec, CUstream);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
}
// NOLINTEND(readability-identifier-naming)
