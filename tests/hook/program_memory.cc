// Allocates and frees device memory by every function. After each step it prints a line and waits
// for one, so that the test can compare the ledger with the device.
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "regatta/gpu/device/abi/nvml.h"
#include "tests/hook/program.h"
#include "tests/hook/program_steps.h"

namespace regatta::hook_test {
namespace {

constexpr std::size_t kMiB = 1 << 20;
#define EXPECT_OK(call) expect((call) == CUDA_SUCCESS, #call)

CUdeviceptr take(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_OK(CU(cuMemAlloc_v2)(&address, bytes));
  return address;
}

void blocks() {
  const CUdeviceptr first = take(512);
  step("a small block");
  const CUdeviceptr second = take(100'000);
  step("another one beside it");
  const CUdeviceptr large = take(3 * kMiB);
  step("3 MiB");
  CUdeviceptr pitched = 0;
  std::size_t pitch = 0;
  EXPECT_OK(CU(cuMemAllocPitch_v2)(&pitched, &pitch, 1000, 3000, 4));
  step("pitched");
  CUdeviceptr managed = 0;
  EXPECT_OK(CU(cuMemAllocManaged)(&managed, 5 * kMiB, 1));
  step("managed");
  EXPECT_OK(CU(cuMemFree_v2)(first));
  step("one of two small blocks freed");
  for (const CUdeviceptr address : {second, large, pitched, managed})
    EXPECT_OK(CU(cuMemFree_v2)(address));
  EXPECT(CU(cuMemFree_v2)(large) != CUDA_SUCCESS);
  EXPECT_OK(CU(cuMemFree_v2)(0));
  step("all blocks freed");
}

void physical() {
  const CUmemAllocationProp here = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle again = 0;
  CUdeviceptr range = 0;
  EXPECT_OK(CU(cuMemCreate)(&handle, 4 * kMiB, &here, 0));
  step("memory without an address");
  EXPECT_OK(CU(cuMemAddressReserve)(&range, 8 * kMiB, 0, 0, 0));
  EXPECT_OK(CU(cuMemMap)(range, 4 * kMiB, 0, handle, 0));
  EXPECT_OK(CU(cuMemRelease)(handle));
  step("released and still mapped");
  EXPECT_OK(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(range)));
  EXPECT(again == handle);
  EXPECT_OK(CU(cuMemUnmap)(range, 4 * kMiB));
  step("not mapped and still held");
  EXPECT_OK(CU(cuMemRelease)(again));
  EXPECT(CU(cuMemRelease)(again) != CUDA_SUCCESS);
  EXPECT(CU(cuMemCreate)(&handle, 4 * kMiB + 1, &here, 0) != CUDA_SUCCESS);
  EXPECT_OK(CU(cuMemAddressFree)(range, 8 * kMiB));
  step("all of it released");
}

void arrays() {
  CUarray flat = nullptr;
  CUarray deep = nullptr;
  CUmipmappedArray levels = nullptr;
  const CUDA_ARRAY_DESCRIPTOR square = {1000, 1000, CU_AD_FORMAT_FLOAT, 4};
  const CUDA_ARRAY3D_DESCRIPTOR cube = {100, 100, 100, CU_AD_FORMAT_UNSIGNED_INT8, 2, 0};
  EXPECT_OK(CU(cuArrayCreate_v2)(&flat, &square));
  step("an array");
  EXPECT_OK(CU(cuArray3DCreate_v2)(&deep, &cube));
  EXPECT_OK(CU(cuMipmappedArrayCreate)(&levels, &cube, 5));
  step("more arrays");
  CUmipmappedArray layers = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR sheets = {300, 200, 6, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_LAYERED};
  EXPECT_OK(CU(cuMipmappedArrayCreate)(&layers, &sheets, 4'000'000'000U));  // as many as there are
  step("a mipmap of layers to the last level");
  EXPECT_OK(CU(cuMipmappedArrayDestroy)(layers));
  EXPECT_OK(CU(cuArrayDestroy)(flat));
  EXPECT_OK(CU(cuArrayDestroy)(deep));
  EXPECT_OK(CU(cuMipmappedArrayDestroy)(levels));
  EXPECT(CU(cuArrayDestroy)(flat) != CUDA_SUCCESS);
  step("no array");
}

void pools() {
  CUstream stream = nullptr;
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  EXPECT_OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(CU(cuMemAllocAsync)(&first, 5 * kMiB, stream));
  const auto allocate_own =
      reinterpret_cast<decltype(&::cuMemAllocAsync)>(driver_symbol("cuMemAllocAsync_ptsz"));
  EXPECT_OK(allocate_own(&second, 7 * kMiB, nullptr));
  step("of the pool");
  EXPECT_OK(CU(cuMemFreeAsync)(first, stream));
  EXPECT_OK(CU(cuMemFree_v2)(second));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  step("back to the pool, and from there to the device");

  CUmemoryPool pool = nullptr;
  const CUmemPoolProps here = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  std::uint64_t keep = 100 * kMiB;
  EXPECT_OK(CU(cuMemPoolCreate)(&pool, &here));
  EXPECT_OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  EXPECT_OK(CU(cuMemAllocFromPoolAsync)(&first, 6 * kMiB, pool, stream));
  EXPECT_OK(CU(cuMemAllocFromPoolAsync)(&second, 9 * kMiB, pool, stream));
  EXPECT_OK(CU(cuMemFreeAsync)(first, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  step("kept by a pool of our own");
  EXPECT_OK(CU(cuMemPoolTrimTo)(pool, 0));
  step("trimmed");
  EXPECT_OK(CU(cuMemPoolDestroy)(pool));
  step("destroyed with something in it");
  EXPECT_OK(CU(cuMemFreeAsync)(second, stream));
  EXPECT_OK(CU(cuCtxSynchronize)());
  EXPECT_OK(CU(cuStreamDestroy_v2)(stream));
  step("no pool");
}

// Under a quota of 100 MiB of which a context has 10: as a device of that size would, a pool uses
// again what it has.
void full_pool() {
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  EXPECT_OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(CU(cuMemAllocAsync)(&address, 60 * kMiB, stream));
    EXPECT_OK(CU(cuMemFreeAsync)(address, stream));
  }
  EXPECT_OK(CU(cuMemAllocAsync)(&address, 60 * kMiB, stream));
  CUdeviceptr more = 0;
  EXPECT(CU(cuMemAllocAsync)(&more, 60 * kMiB, stream) == CUDA_ERROR_OUT_OF_MEMORY);
  step("a full pool");
  EXPECT_OK(CU(cuMemFreeAsync)(address, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  EXPECT_OK(CU(cuStreamDestroy_v2)(stream));
  step("an empty pool");
}

void graphs() {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode end = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS memory{};
  memory.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  memory.bytesize = 50 * kMiB;
  EXPECT_OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(CU(cuGraphCreate)(&graph, 0));
  EXPECT_OK(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &memory));
  EXPECT_OK(CU(cuGraphAddMemFreeNode)(&end, graph, &node, 1, memory.dptr));
  EXPECT_OK(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  step("a graph that is not launched");
  for (int i = 0; i < 5; ++i)
    EXPECT_OK(CU(cuGraphLaunch)(executable, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  step("a graph that was launched");
  const CUdeviceptr rest = take(30 * kMiB);
  EXPECT_OK(CU(cuGraphLaunch)(executable, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  EXPECT_OK(CU(cuDeviceGraphMemTrim)(0));
  step("trimmed");
  const CUdeviceptr more = take(20 * kMiB);
  EXPECT(CU(cuGraphLaunch)(executable, stream) == CUDA_ERROR_OUT_OF_MEMORY);
  step("a graph that finds no room");
  EXPECT_OK(CU(cuMemFree_v2)(more));
  EXPECT_OK(CU(cuMemFree_v2)(rest));
  EXPECT_OK(CU(cuGraphLaunch)(executable, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  EXPECT_OK(CU(cuGraphExecDestroy)(executable));
  EXPECT_OK(CU(cuGraphDestroy)(graph));
  EXPECT_OK(CU(cuDeviceGraphMemTrim)(0));
  EXPECT_OK(CU(cuStreamDestroy_v2)(stream));
  step("no graph");
}

// Allocations that were captured: what a launch leaves, the next one frees, where it is told to.
void captured_graphs() {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphExec other = nullptr;
  CUdeviceptr kept = 0;
  CUdeviceptr freed = 0;
  EXPECT_OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(CU(cuMemAllocAsync)(&kept, 7 * kMiB, stream));
  EXPECT_OK(CU(cuMemAllocAsync)(&freed, 9 * kMiB, stream));
  EXPECT_OK(CU(cuMemsetD8Async)(kept, 1, 100, stream));
  EXPECT_OK(CU(cuMemFreeAsync)(freed, stream));
  step("allocations in a capture");
  EXPECT_OK(CU(cuStreamEndCapture)(stream, &graph));
  EXPECT_OK(CU(cuGraphInstantiateWithFlags)(&executable, graph,
                                            CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  for (int i = 0; i < 3; ++i)
    EXPECT_OK(CU(cuGraphLaunch)(executable, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  step("launched three times, with what is left freed");
  EXPECT_OK(CU(cuDeviceGraphMemTrim)(0));
  step("trimmed to what is in use");
  EXPECT_OK(CU(cuMemFreeAsync)(kept, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  EXPECT_OK(CU(cuDeviceGraphMemTrim)(0));
  step("freed outside of the graph");
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  parameters.flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  EXPECT_OK(CU(cuGraphInstantiateWithParams)(&other, graph, &parameters));
  EXPECT_OK(CU(cuGraphExecDestroy)(executable));
  EXPECT_OK(CU(cuGraphLaunch)(other, stream));
  EXPECT_OK(CU(cuGraphLaunch)(other, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  step("by another one of the same graph");
  EXPECT_OK(CU(cuMemFreeAsync)(kept, stream));
  EXPECT_OK(CU(cuStreamSynchronize)(stream));
  EXPECT_OK(CU(cuGraphExecDestroy)(other));
  EXPECT_OK(CU(cuGraphDestroy)(graph));
  step("its graphs gone, its memory not");
  EXPECT_OK(CU(cuDeviceGraphMemTrim)(0));
  EXPECT_OK(CU(cuStreamDestroy_v2)(stream));
  step("nothing left of graphs");
}

void threads(CUcontext context) {
  std::vector<std::thread> all;
  for (unsigned i = 0; i < 8; ++i) {
    all.emplace_back([=] {
      EXPECT_OK(CU(cuCtxSetCurrent)(context));
      std::mt19937 random(i);
      std::vector<CUdeviceptr> held;
      for (int round = 0; round < 400; ++round) {
        CUdeviceptr address = 0;
        const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 5 * kMiB : 3000);
        const CUresult result = random() % 2 == 0 ? CU(cuMemAlloc_v2)(&address, bytes)
                                                  : CU(cuMemAllocAsync)(&address, bytes, nullptr);
        EXPECT(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        if (result == CUDA_SUCCESS) held.push_back(address);
        while (held.size() > 20 || (!held.empty() && random() % 3 == 0)) {
          EXPECT_OK(CU(cuMemFree_v2)(held.back()));
          held.pop_back();
        }
      }
      while (!held.empty()) {
        EXPECT_OK(CU(cuMemFree_v2)(held.back()));
        held.pop_back();
      }
      EXPECT_OK(CU(cuCtxSetCurrent)(nullptr));
    });
  }
  for (std::thread& thread : all)
    thread.join();
  EXPECT_OK(CU(cuCtxSynchronize)());
  step("after eight threads");
}

void refusals() {
  CUdeviceptr address = 0;
  EXPECT(CU(cuMemAlloc_v2)(&address, 100 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(CU(cuMemAlloc_v2)(&address, ~0ULL) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(CU(cuMemAlloc_v2)(&address, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(CU(cuMemAlloc_v2)(nullptr, 10) == CUDA_ERROR_INVALID_VALUE);
  const CUmemAllocationProp here = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT(CU(cuMemCreate)(&handle, 100 * kMiB, &here, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(CU(cuMemAllocManaged)(&address, 100 * kMiB, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(CU(cuMemAllocAsync)(&address, 100 * kMiB, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  step("nothing but refusals");
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(CU(cuMemGetInfo_v2)(&free, &total));
  EXPECT(total == 100 * kMiB && free == 90 * kMiB);
  EXPECT_OK(CU(cuMemGetInfo_v2)(nullptr, nullptr));
  EXPECT_OK(CU(cuDeviceTotalMem_v2)(&total, 0));
  EXPECT(total == 100 * kMiB);
  // All of what is free, and not a block more.
  address = take(free);
  CUdeviceptr more = 0;
  EXPECT(CU(cuMemAlloc_v2)(&more, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(CU(cuMemGetInfo_v2)(&free, nullptr));
  EXPECT(free == 0);
  step("full");
  EXPECT_OK(CU(cuMemFree_v2)(address));
  step("empty");
}

void nvml() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const auto find = [&](const char* name) { return dlsym(library, name); };
  const auto init = reinterpret_cast<nvmlReturn_t (*)()>(find("nvmlInit_v2"));
  const auto get = reinterpret_cast<nvmlReturn_t (*)(unsigned, nvmlDevice_t*)>(
      find("nvmlDeviceGetHandleByIndex_v2"));
  const auto info = reinterpret_cast<nvmlReturn_t (*)(nvmlDevice_t, nvmlMemory_t*)>(
      find("nvmlDeviceGetMemoryInfo"));
  const auto info_v2 = reinterpret_cast<nvmlReturn_t (*)(nvmlDevice_t, nvmlMemory_v2_t*)>(
      find("nvmlDeviceGetMemoryInfo_v2"));
  nvmlDevice_t device = nullptr;
  nvmlMemory_t memory{};
  nvmlMemory_v2_t memory_v2{.version = sizeof(nvmlMemory_v2_t) | 2U << 24};
  EXPECT(init() == NVML_SUCCESS && get(0, &device) == NVML_SUCCESS);
  EXPECT(info(device, &memory) == NVML_SUCCESS && info_v2(device, &memory_v2) == NVML_SUCCESS);
  EXPECT(memory.total == 100 * kMiB && memory.used == 10 * kMiB && memory.free == 90 * kMiB);
  EXPECT(memory_v2.total == 100 * kMiB && memory_v2.used == 10 * kMiB);
  EXPECT(memory_v2.free + memory_v2.used + memory_v2.reserved == memory_v2.total);
}

}  // namespace

int take_memory_in_every_way() {
  CUcontext context = nullptr;
  CUcontext primary = nullptr;
  EXPECT_OK(CU(cuInit)(0));
  step("no context");
  CUdeviceptr address = 0;
  EXPECT(CU(cuMemAlloc_v2)(&address, 512) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  step("a context");
  refusals();
  nvml();
  blocks();
  physical();
  arrays();
  pools();
  full_pool();
  graphs();
  captured_graphs();
  threads(context);
  for (int i = 0; i < 20; ++i)
    take(300'000);
  EXPECT_OK(CU(cuMemAllocAsync)(&address, 5 * kMiB, nullptr));
  step("left in a context");
  EXPECT_OK(CU(cuCtxDestroy_v2)(context));
  step("its context destroyed");
  EXPECT_OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
  EXPECT_OK(CU(cuCtxSetCurrent)(primary));
  take(20 * kMiB);
  step("in the primary context");
  EXPECT_OK(CU(cuDevicePrimaryCtxReset_v2)(0));
  step("reset");
  EXPECT_OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
  EXPECT_OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
  EXPECT_OK(CU(cuCtxSetCurrent)(primary));
  take(20 * kMiB);
  EXPECT_OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
  step("released once of twice");
  EXPECT_OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
  step("released");
  return failures == 0 ? 0 : 1;
}

int take_all(std::size_t bytes) {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  CUresult result = CU(cuInit)(0);
  if (result == CUDA_SUCCESS) result = CU(cuCtxCreate_v2)(&context, 0, 0);
  int count = 0;
  while (result == CUDA_SUCCESS && (result = CU(cuMemAlloc_v2)(&address, bytes)) == CUDA_SUCCESS)
    ++count;
  std::printf("%d, then %d\n", count, result);
  step("full");
  return 0;
}

}  // namespace regatta::hook_test
