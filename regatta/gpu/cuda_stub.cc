// For tests: a CUDA driver without devices. Memory of its two devices cannot be touched by the
// host, as little as that of real ones without managed memory, and copies happen as late as they
// may: when somebody waits for them. What a test sees is then what it has waited for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/gpu/abi/cuda.h"

struct CUctx_st {
  CUdevice device;
};
struct CUevent_st {
  std::uint64_t task = 0;  // done when this many tasks of the stream are
  CUstream stream = nullptr;
};
struct CUstream_st {
  std::deque<std::function<void()>> tasks;
  std::uint64_t given = 0;
  std::uint64_t done = 0;
};

namespace {

constexpr CUresult kInvalidValue = 1;
constexpr CUresult kOutOfMemory = 2;
constexpr CUresult kInvalidDevice = 101;
constexpr CUresult kInvalidContext = 201;
constexpr int kDevices = 2;

struct Region {
  std::size_t bytes = 0;
  CUdevice device = 0;
  int fd = -1;
  std::byte* content = nullptr;
};

std::mutex mutex;
std::map<CUdeviceptr, Region> regions;
CUctx_st contexts[kDevices] = {{0}, {1}};
thread_local std::deque<CUcontext> current;

// Addresses that nobody may touch stand for the device's.
CUdeviceptr add_region(int fd, std::size_t bytes, CUdevice device) {
  void* const address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const content = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const auto base = reinterpret_cast<CUdeviceptr>(address);
  regions[base] = {bytes, device, fd, static_cast<std::byte*>(content)};
  return base;
}

CUresult drop_region(CUdeviceptr base) {
  const auto at = regions.find(base);
  if (at == regions.end()) return kInvalidValue;
  munmap(reinterpret_cast<void*>(base), at->second.bytes);
  munmap(at->second.content, at->second.bytes);
  close(at->second.fd);
  regions.erase(at);
  return CUDA_SUCCESS;
}

// The region that an address lies in, or the end.
auto find_region(CUdeviceptr address) {
  auto at = regions.upper_bound(address);
  if (at == regions.begin()) return regions.end();
  --at;
  return address < at->first + at->second.bytes ? at : regions.end();
}

// Where the bytes of an address really are; host memory is itself.
std::byte* content_of(CUdeviceptr address) {
  const auto at = find_region(address);
  if (at == regions.end()) return reinterpret_cast<std::byte*>(address);
  return at->second.content + (address - at->first);
}

CUresult copy_later(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return kInvalidContext;
  stream->tasks.emplace_back([=] { std::memmove(content_of(to), content_of(from), bytes); });
  ++stream->given;
  return CUDA_SUCCESS;
}

void run_until(CUstream stream, std::uint64_t task) {
  for (; stream->done < task; ++stream->done) {
    stream->tasks.front()();
    stream->tasks.pop_front();
  }
}

struct Shown {
  pid_t pid;
  int fd;
  std::size_t bytes;
  CUdevice device;
};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
  *text = result == kOutOfMemory     ? "out of memory"
          : result == kInvalidDevice ? "invalid device ordinal"
                                     : "invalid argument";
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (device < 0 || device >= kDevices) return kInvalidDevice;
  *context = &contexts[device];
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  current.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr address) {
  const std::lock_guard lock(mutex);
  const auto at = find_region(address);
  if (at == regions.end()) return kInvalidValue;
  const int value = attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE
                        ? static_cast<int>(CU_MEMORYTYPE_DEVICE)
                        : at->second.device;
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(mutex);
  const auto at = find_region(address);
  if (at == regions.end()) return kInvalidValue;
  *base = at->first;
  *bytes = at->second.bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return kInvalidContext;
  const int fd = memfd_create("device", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  *address = add_region(fd, bytes, current.back()->device);
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::lock_guard lock(mutex);
  return drop_region(address);
}
CUresult cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  if (current.empty()) return kInvalidContext;
  *memory = std::malloc(bytes);
  return *memory == nullptr ? kOutOfMemory : CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_later(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return copy_later(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_later(to, from, bytes, stream);
}
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  const std::lock_guard lock(mutex);
  run_until(stream, stream->given);
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  const std::lock_guard lock(mutex);
  *event = {.task = stream->given, .stream = stream};
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) {
  const std::lock_guard lock(mutex);
  run_until(event->stream, event->task);
  return CUDA_SUCCESS;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr base) {
  const std::lock_guard lock(mutex);
  const auto at = regions.find(base);
  if (at == regions.end()) return kInvalidValue;
  const Shown shown{getpid(), at->second.fd, at->second.bytes, at->second.device};
  std::memcpy(handle->reserved, &shown, sizeof shown);
  return CUDA_SUCCESS;
}
// As the driver: not in the process that shows it.
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* base, CUipcMemHandle handle, unsigned) {
  const std::lock_guard lock(mutex);
  Shown shown{};
  std::memcpy(&shown, handle.reserved, sizeof shown);
  if (shown.pid == getpid()) return kInvalidContext;
  const std::string path = "/proc/" + std::to_string(shown.pid) + "/fd/" + std::to_string(shown.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kInvalidValue;
  *base = add_region(fd, shown.bytes, shown.device);
  return CUDA_SUCCESS;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr base) {
  const std::lock_guard lock(mutex);
  return drop_region(base);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
