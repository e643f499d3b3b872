// tests/standin/api_graph.h: the functions of the driver about captures and graphs.
#pragma once

#include "regatta/gpu/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
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
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS*);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode* nodes, std::size_t* count);
CUresult cuGraphNodeGetType(CUgraphNode, int* type);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphUpload(CUgraphExec, CUstream);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
}
// NOLINTEND(readability-identifier-naming)
