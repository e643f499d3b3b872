// A CUDA runtime library of our own, for the stand-in driver: so much of NVIDIA's as the program
// needs, by the documentation, and with the driver called as NVIDIA's was seen to call it:
// functions by the search with versions and flags, the primary context and modules by its table,
// the functions of before CUDA 11 where it still uses those. It does not ask whose driver it is.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "tests/cudart/runtime_api.h"
#include "tests/standin/api.h"
#include "tests/standin/export_table.h"

namespace {

using namespace regatta::standin;

void* search(const char* name, int version, std::uint64_t flags) {
  static auto* const first = reinterpret_cast<decltype(&::cuGetProcAddress)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress"));
  void* found = nullptr;
  if (first == nullptr || first(name, &found, version, flags) != CUDA_SUCCESS) return nullptr;
  return found;
}
// CU(cuMemAlloc_v2, "cuMemAlloc", 3020)(&address, bytes)
template <typename Function>
Function* found_once(std::atomic<Function*>& place, const char* name, int version) {
  Function* function = place.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(search(name, version, 0));
    place.store(function, std::memory_order_release);
  }
  return function;
}
#define CU(type, name, version)                    \
  ([] {                                            \
    static std::atomic<decltype(&::type)> place{}; \
    return found_once(place, name, version);       \
  }())

struct Binary {
  const void* wrapper = nullptr;
  CUmodule module = nullptr;  // in the primary context
};
struct Kernel {
  Binary* binary = nullptr;
  std::string name;
  CUfunction function = nullptr;
};
struct State {
  std::mutex mutex;
  bool is_started = false;
  CUcontext context = nullptr;
  std::uint64_t generation = 1;  // of the context
  std::map<const void*, Kernel> kernels;
};
State& state() {
  static auto* const only = new State;
  return *only;
}

cudaError_t& last_error() {
  static thread_local cudaError_t last = cudaSuccess;
  return last;
}
cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

template <typename Function>
Function* runtime_slot(std::size_t slot) {
  const void* table = nullptr;
  if (CU(cuGetExportTable, "cuGetExportTable", 3000)(&table, &kRuntimeTable) != CUDA_SUCCESS)
    return nullptr;
  return reinterpret_cast<Function*>(
      const_cast<void*>(static_cast<const void* const*>(table)[slot]));
}

// Under the lock.
CUresult start() {
  if (state().is_started) return CUDA_SUCCESS;
  auto* const init = CU(cuInit, "cuInit", 2000);
  const CUresult result = init == nullptr ? CUDA_ERROR_NOT_FOUND : init(0);
  state().is_started = result == CUDA_SUCCESS;
  return result;
}

// The primary context becomes current where the thread has not yet this one.
CUresult enter() {
  static thread_local std::uint64_t entered = 0;
  const std::lock_guard lock(state().mutex);
  if (const CUresult result = start(); result != CUDA_SUCCESS) return result;
  if (state().context == nullptr) {
    auto* const retain = runtime_slot<CUresult(CUcontext*, CUdevice)>(kRuntimeGetPrimary);
    if (retain == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (const CUresult result = retain(&state().context, 0); result != CUDA_SUCCESS) return result;
  }
  if (entered == state().generation) return CUDA_SUCCESS;
  entered = state().generation;
  return CU(cuCtxSetCurrent, "cuCtxSetCurrent", 4000)(state().context);
}

// In the primary context.
template <typename Call>
cudaError_t in_context(Call&& call) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return note(result);
  return note(call());
}

template <typename Call>
cudaError_t on_driver(Call&& call) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult result = start(); result != CUDA_SUCCESS) return note(result);
  return note(call());
}

CUdeviceptr at(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

// Under the lock.
CUresult find_function(Kernel& kernel) {
  if (kernel.function != nullptr) return CUDA_SUCCESS;
  Binary& binary = *kernel.binary;
  if (binary.module == nullptr) {
    using Load = CUresult(CUmodule*, const void*, void*, void*, unsigned);
    auto* const load = runtime_slot<Load>(kRuntimeLoadMore);
    if (const CUresult result = load(&binary.module, binary.wrapper, nullptr, nullptr, 0);
        result != CUDA_SUCCESS)
      return result;
  }
  return CU(cuModuleGetFunction, "cuModuleGetFunction", 2000)(&kernel.function, binary.module,
                                                              kernel.name.c_str());
}

CUDA_MEMCPY2D box(void* to, const void* from, int kind) {
  CUDA_MEMCPY2D made{};
  made.srcMemoryType = kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  made.dstMemoryType = kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  made.srcHost = from;
  made.srcDevice = at(from);
  made.dstHost = to;
  made.dstDevice = at(to);
  return made;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the library's
extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 11080;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error(), cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  const char* text = "unknown error";
  CU(cuGetErrorString, "cuGetErrorString", 6000)(error, &text);
  return text;
}

// No context is made for these.
cudaError_t cudaGetDeviceCount(int* count) {
  return on_driver([&] { return CU(cuDeviceGetCount, "cuDeviceGetCount", 2000)(count); });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return on_driver([&] {
    const CUresult named =
        CU(cuDeviceGetName, "cuDeviceGetName", 2000)(properties->name, 256, device);
    if (named != CUDA_SUCCESS) return named;
    CU(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000)(&properties->warpSize, 10, device);
    return CU(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020)(&properties->totalGlobalMem, device);
  });
}
cudaError_t cudaSetDevice(int device) {
  return on_driver([&] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
cudaError_t cudaDeviceSynchronize() {
  return in_context([] { return CU(cuCtxSynchronize, "cuCtxSynchronize", 2000)(); });
}
cudaError_t cudaDeviceReset() {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return note(result);
  const std::lock_guard lock(state().mutex);
  state().context = nullptr;
  ++state().generation;
  for (auto& [host, kernel] : state().kernels)
    kernel.function = nullptr, kernel.binary->module = nullptr;
  return note(CU(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000)(0));
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return in_context([&] { return CU(cuMemGetInfo_v2, "cuMemGetInfo", 3020)(free, total); });
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return in_context([&] {
    return CU(cuMemAlloc_v2, "cuMemAlloc", 3020)(reinterpret_cast<CUdeviceptr*>(address), bytes);
  });
}
cudaError_t cudaFree(void* address) {
  return in_context([&] { return CU(cuMemFree_v2, "cuMemFree", 3020)(at(address)); });
}
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  return in_context([&] {
    return CU(cuMemAllocAsync, "cuMemAllocAsync", 11020)(reinterpret_cast<CUdeviceptr*>(address),
                                                         bytes, stream);
  });
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return in_context(
      [&] { return CU(cuMemFreeAsync, "cuMemFreeAsync", 11020)(at(address), stream); });
}
cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return in_context([&] { return CU(cuMemHostAlloc, "cuMemHostAlloc", 2020)(address, bytes, 0); });
}
cudaError_t cudaFreeHost(void* address) {
  return in_context([&] { return CU(cuMemFreeHost, "cuMemFreeHost", 2000)(address); });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return in_context([&] {
    if (kind == cudaMemcpyHostToDevice)
      return CU(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020)(at(to), from, bytes);
    if (kind == cudaMemcpyDeviceToHost)
      return CU(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020)(to, at(from), bytes);
    return CU(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020)(at(to), at(from), bytes);
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind,
                            cudaStream_t stream) {
  return in_context([&] {
    if (kind == cudaMemcpyHostToDevice)
      return CU(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020)(at(to), from, bytes, stream);
    if (kind == cudaMemcpyDeviceToHost)
      return CU(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020)(to, at(from), bytes, stream);
    return CU(cuMemcpyAsync, "cuMemcpyAsync", 4000)(at(to), at(from), bytes, stream);
  });
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, int kind) {
  return in_context([&] {
    CUDA_MEMCPY2D copy = box(to, from, kind);
    copy.srcPitch = from_pitch;
    copy.dstPitch = to_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return CU(cuMemcpy2DUnaligned_v2, "cuMemcpy2DUnaligned", 3020)(&copy);
  });
}
cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  return in_context([&] {
    return CU(cuMemsetD8_v2, "cuMemsetD8", 3020)(at(address), static_cast<unsigned char>(value),
                                                 bytes);
  });
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  return in_context([&] {
    return CU(cuMemsetD8Async, "cuMemsetD8Async", 3020)(
        at(address), static_cast<unsigned char>(value), bytes, stream);
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return in_context([&] { return CU(cuStreamCreate, "cuStreamCreate", 2000)(stream, flags); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return in_context([&] { return CU(cuStreamDestroy_v2, "cuStreamDestroy", 4000)(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_context([&] { return CU(cuStreamSynchronize, "cuStreamSynchronize", 2000)(stream); });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return in_context([&] { return CU(cuEventCreate, "cuEventCreate", 2000)(event, 0); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_context([&] { return CU(cuEventDestroy_v2, "cuEventDestroy", 4000)(event); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return in_context([&] { return CU(cuEventRecord, "cuEventRecord", 2000)(event, stream); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_context([&] { return CU(cuEventSynchronize, "cuEventSynchronize", 2000)(event); });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return in_context(
      [&] { return CU(cuEventElapsedTime, "cuEventElapsedTime", 2000)(ms, begin, end); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
  return in_context(
      [&] { return CU(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010)(stream, mode); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return in_context(
      [&] { return CU(cuStreamEndCapture, "cuStreamEndCapture", 10000)(stream, graph); });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, void* error_node,
                                 char* log, std::size_t log_bytes) {
  return in_context([&] {
    return CU(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000)(
        executable, graph, static_cast<CUgraphNode*>(error_node), log, log_bytes);
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return in_context([&] { return CU(cuGraphLaunch, "cuGraphLaunch", 10000)(executable, stream); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return in_context(
      [&] { return CU(cuGraphExecDestroy, "cuGraphExecDestroy", 10000)(executable); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return in_context([&] { return CU(cuGraphDestroy, "cuGraphDestroy", 10000)(graph); });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters,
                             std::size_t shared_bytes, cudaStream_t stream) {
  return in_context([&] {
    CUfunction found = nullptr;
    {
      const std::lock_guard lock(state().mutex);
      const auto kernel = state().kernels.find(function);
      if (kernel == state().kernels.end()) return cudaErrorInvalidDeviceFunction;
      if (const CUresult result = find_function(kernel->second); result != CUDA_SUCCESS)
        return result;
      found = kernel->second.function;
    }
    return CU(cuLaunchKernel, "cuLaunchKernel", 4000)(
        found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
        static_cast<unsigned>(shared_bytes), stream, parameters, nullptr);
  });
}

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new Binary{wrapper, nullptr});
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** binary, const char* host_function, char*,
                            const char* device_name, int, void*, void*, dim3*, dim3*, int*) {
  const std::lock_guard lock(state().mutex);
  state().kernels[host_function] = {reinterpret_cast<Binary*>(binary), device_name, nullptr};
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
