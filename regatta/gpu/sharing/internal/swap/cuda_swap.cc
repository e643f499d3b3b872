#include "regatta/gpu/sharing/internal/swap/cuda_swap.h"

#include "regatta/base/core/mutex.h"

namespace regatta::sharing {
namespace {

constexpr unsigned kPortable = 1;          // CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned kSwapBlockingSync = 1;  // CU_EVENT_BLOCKING_SYNC: wait without using a core
constexpr unsigned kNoTiming = CU_EVENT_DISABLE_TIMING;

// Makes the context current, and makes calls allowed beside the program's captures.
class In {
 public:
  In(const SwapCalls& calls, SwapDevice::Home home) : calls_(calls) {
    if (calls_.may_exchange_capture_mode != nullptr)
      is_exchanged_ = calls_.may_exchange_capture_mode(&mode_) == CUDA_SUCCESS;
    is_in_ = calls_.context_push(static_cast<CUcontext>(home)) == CUDA_SUCCESS;
  }
  In(const In&) = delete;
  In& operator=(const In&) = delete;
  ~In() {
    CUcontext popped = nullptr;
    if (is_in_) calls_.context_pop(&popped);
    if (is_exchanged_) calls_.may_exchange_capture_mode(&mode_);
  }
  explicit operator bool() const { return is_in_; }

 private:
  const SwapCalls& calls_;
  int mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool is_exchanged_ = false;
  bool is_in_ = false;
};

}  // namespace

std::optional<std::uint64_t> CudaSwap::reserve(std::uint64_t bytes) {
  CUdeviceptr address = 0;
  if (calls_.address_reserve(&address, bytes, 0, 0, 0) != CUDA_SUCCESS) return std::nullopt;
  return address;
}

void CudaSwap::unreserve(std::uint64_t address, std::uint64_t bytes) {
  calls_.address_free(address, bytes);
}

bool CudaSwap::map(std::uint64_t address, std::uint64_t bytes) {
  const CUmemLocation here{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_};
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = here;
  CUmemGenericAllocationHandle handle = 0;
  if (calls_.create(&handle, bytes, &properties, 0) != CUDA_SUCCESS) return false;
  const bool is_mapped = calls_.map(address, bytes, 0, handle, 0) == CUDA_SUCCESS;
  calls_.release(handle);  // the mapping keeps it
  if (!is_mapped) return false;
  const CUmemAccessDesc access{.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (calls_.set_access(address, bytes, &access, 1) == CUDA_SUCCESS) return true;
  calls_.unmap(address, bytes);
  return false;
}

void CudaSwap::unmap(std::uint64_t address, std::uint64_t bytes) {
  calls_.unmap(address, bytes);
}

void* CudaSwap::pin(Home home, std::uint64_t bytes) {
  const In in(calls_, home);
  void* memory = nullptr;
  return in && calls_.host_alloc(&memory, bytes, kPortable) == CUDA_SUCCESS ? memory : nullptr;
}

void CudaSwap::unpin(Home home, void* memory) {
  const In in(calls_, home);
  if (in) calls_.host_free(memory);
}

CudaSwap::Lane* CudaSwap::lane_of(CUcontext context) {
  const MutexLock lock(mutex_);
  Lane& lane = lanes_[context];
  for (CUstream& stream : lane.streams) {
    if (stream == nullptr && calls_.stream_create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
      return nullptr;
  }
  return &lane;
}

SwapDevice::CopyHandle CudaSwap::copy(Home home, To to, std::uint64_t address, void* host,
                                      std::uint64_t bytes) {
  const In in(calls_, home);
  Lane* const lane = in ? lane_of(static_cast<CUcontext>(home)) : nullptr;
  if (lane == nullptr) return nullptr;
  CUstream stream = lane->streams[lane->next++ % lane->streams.size()];
  CUevent event = nullptr;
  if (calls_.event_create(&event, kSwapBlockingSync | kNoTiming) != CUDA_SUCCESS) return nullptr;
  const CUresult result = to == To::kHost ? calls_.copy_to_host(host, address, bytes, stream)
                                          : calls_.copy_to_device(address, host, bytes, stream);
  if (result == CUDA_SUCCESS && calls_.event_record(event, stream) == CUDA_SUCCESS) return event;
  calls_.context_wait();  // a copy that cannot be waited for otherwise
  calls_.event_destroy(event);
  return nullptr;
}

bool CudaSwap::wait(Home home, CopyHandle ticket) {
  const In in(calls_, home);
  auto* const event = static_cast<CUevent>(ticket);
  const bool is_done = in && calls_.event_wait(event) == CUDA_SUCCESS;
  calls_.event_destroy(event);
  return is_done;
}

bool CudaSwap::drain(Home home) {
  const In in(calls_, home);
  return in && calls_.context_wait() == CUDA_SUCCESS;
}

void CudaSwap::forget(Home home) {
  const In in(calls_, home);
  const MutexLock lock(mutex_);
  const auto lane = lanes_.find(static_cast<CUcontext>(home));
  if (lane == lanes_.end()) return;
  for (CUstream stream : lane->second.streams)
    if (in && stream != nullptr) calls_.stream_destroy(stream);
  lanes_.erase(lane);
}

}  // namespace regatta::sharing
