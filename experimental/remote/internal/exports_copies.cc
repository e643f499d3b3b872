// Copies between the program and the GPU, in pieces, and the program's own host memory.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "experimental/remote/internal/exports.h"
#include "regatta/base/core/mutex.h"

using namespace regatta::remote;  // NOLINT(google-build-using-namespace): nothing else is
                                  // here

namespace {

// Host memory that this library allocated, by its address.
struct HostMemory {
  regatta::Mutex mutex;
  std::map<CUdeviceptr, std::size_t> regions REGATTA_GUARDED_BY(mutex);
};
HostMemory& host_memory() {
  static auto* const memory = new HostMemory;
  return *memory;
}

CUdeviceptr number(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}
void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's way
}

bool is_host(CUdeviceptr address) {
  HostMemory& memory = host_memory();
  const regatta::MutexLock lock(memory.mutex);
  const auto after = memory.regions.upper_bound(address);
  if (after == memory.regions.begin()) return false;
  const auto at = std::prev(after);
  return address - at->first < at->second;
}

// Only the last piece waits, if the copy does; it returns the first error of all pieces.
CUresult copy_in(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream,
                 CopyMode route) {
  const bool waits = route == CopyMode::kNow || route == CopyMode::kNowOwnStream;
  if (from == nullptr && bytes > 0) return CUDA_ERROR_INVALID_VALUE;
  const auto* at = static_cast<const std::byte*>(from);
  do {
    const std::size_t piece = std::min<std::size_t>(bytes, kPiece);
    const bool is_last = piece == bytes;
    const bool wants_answer = is_last && (waits || RemoteSession::instance().is_blocking());
    RemoteSession::Message message(static_cast<std::uint16_t>(ControlMessage::kCopyIn),
                                   wants_answer);
    if (message.status() != CUDA_SUCCESS) return message.status();
    message.writer().put(CopyIn{to, reinterpret_cast<std::uint64_t>(stream), route});
    if (const CUresult sent = message.send_with(at, piece); sent != CUDA_SUCCESS) return sent;
    if (wants_answer || RemoteSession::instance().is_blocking()) {
      CallReplyHeader head;
      if (!message.receive_head(head) || head.bytes != 0) return message.lose();
      message.note_answer();
      if (head.status != CUDA_SUCCESS || is_last) return head.status;
    }
    at += piece;
    to += piece;
    bytes -= piece;
  } while (bytes > 0);
  return CUDA_SUCCESS;
}

CUresult copy_out(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, CopyMode route) {
  if (to == nullptr && bytes > 0) return CUDA_ERROR_INVALID_VALUE;
  RemoteSession::Message message(static_cast<std::uint16_t>(ControlMessage::kCopyOut), true);
  if (message.status() != CUDA_SUCCESS) return message.status();
  message.writer().put(CopyOut{from, bytes, reinterpret_cast<std::uint64_t>(stream), route});
  if (const CUresult sent = message.send_with(nullptr, 0); sent != CUDA_SUCCESS) return sent;
  auto* at = static_cast<std::byte*>(to);
  CallReplyHeader head;
  do {
    if (!message.receive_head(head) || head.bytes > bytes) return message.lose();
    if (head.status != CUDA_SUCCESS) break;
    if (!message.receive(at, head.bytes) || (head.bytes == 0 && bytes > 0)) return message.lose();
    at += head.bytes;
    bytes -= head.bytes;
  } while (bytes > 0);
  message.note_answer();
  return head.status;
}

// Between any addresses: an address that this library did not allocate as host memory is the GPU's.
template <CallNumber between>
CUresult copy_any(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CopyMode route) {
  if (is_host(to) && is_host(from)) {
    std::memmove(pointer(to), pointer(from), bytes);
    return CUDA_SUCCESS;
  }
  if (is_host(from)) return copy_in(to, pointer(from), bytes, nullptr, route);
  if (is_host(to)) return copy_out(pointer(to), from, bytes, nullptr, route);
  return call<between>(to, from, bytes);
}

template <CallNumber between>
CUresult copy_any_in(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream,
                     CopyMode route) {
  if (is_host(to) && is_host(from)) return kNotSupported;  // the stream is a handle of the server
  if (is_host(from)) return copy_in(to, pointer(from), bytes, stream, route);
  if (is_host(to)) return copy_out(pointer(to), from, bytes, stream, route);
  return call<between>(to, from, bytes, stream);
}

CUresult take_host_memory(void** address, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const regatta::MutexLock lock(host_memory().mutex);
  host_memory().regions[number(memory)] = bytes;
  *address = memory;
  return CUDA_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) {
  return take_host_memory(address, bytes);
}
CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  constexpr unsigned kMapped = 2;
  return (flags & kMapped) != 0 ? kNotSupported : take_host_memory(address, bytes);
}
CUresult cuMemFreeHost(void* address) {
  const regatta::MutexLock lock(host_memory().mutex);
  if (host_memory().regions.erase(number(address)) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(address);
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  constexpr unsigned kMapped = 2;
  if ((flags & kMapped) != 0) return kNotSupported;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const regatta::MutexLock lock(host_memory().mutex);
  constexpr CUresult kRegisteredAlready = 712;
  return host_memory().regions.emplace(number(address), bytes).second ? CUDA_SUCCESS
                                                                      : kRegisteredAlready;
}
CUresult cuMemHostUnregister(void* address) {
  const regatta::MutexLock lock(host_memory().mutex);
  constexpr CUresult kNotRegistered = 713;
  return host_memory().regions.erase(number(address)) == 0 ? kNotRegistered : CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
  if (value != nullptr && attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE && is_host(address)) {
    constexpr unsigned kHost = 1;
    std::memcpy(value, &kHost, sizeof kHost);
    return CUDA_SUCCESS;
  }
  return call<CallNumber::cuPointerGetAttribute>(value, attribute, address);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_any<CallNumber::cuMemcpyDtoD_v2>(to, from, bytes, CopyMode::kNow);
}
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_any<CallNumber::cuMemcpyDtoD_v2_ptds>(to, from, bytes, CopyMode::kNowOwnStream);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_any_in<CallNumber::cuMemcpyDtoDAsync_v2>(to, from, bytes, stream,
                                                       CopyMode::kInStream);
}
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_any_in<CallNumber::cuMemcpyDtoDAsync_v2_ptsz>(to, from, bytes, stream,
                                                            CopyMode::kInStreamOrOwn);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_in(to, from, bytes, nullptr, CopyMode::kNow);
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_in(to, from, bytes, nullptr, CopyMode::kNowOwnStream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return copy_in(to, from, bytes, stream, CopyMode::kInStream);
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, std::size_t bytes,
                                   CUstream stream) {
  return copy_in(to, from, bytes, stream, CopyMode::kInStreamOrOwn);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_out(to, from, bytes, nullptr, CopyMode::kNow);
}
CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_out(to, from, bytes, nullptr, CopyMode::kNowOwnStream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_out(to, from, bytes, stream, CopyMode::kInStream);
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_out(to, from, bytes, stream, CopyMode::kInStreamOrOwn);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
