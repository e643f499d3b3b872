// sharing/internal/swap/cuda_swap.h: a swap device by the virtual memory functions of the CUDA
// driver. Homes are contexts. Copies of a home alternate between two streams of its own, so that
// the link is never idle between two of them. Source: CUDA driver API, "Virtual Memory Management",
// "Stream Management", "Event Management".
#pragma once

#include <array>
#include <map>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "regatta/gpu/sharing/internal/swap/swap_device.h"

namespace regatta::sharing {

// The driver's own functions, not the hook's; those with `may` are null where the driver lacks
// them.
struct SwapCalls {
  CUresult (*address_reserve)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr,
                              unsigned long long) = nullptr;
  CUresult (*address_free)(CUdeviceptr, std::size_t) = nullptr;
  CUresult (*create)(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                     unsigned long long) = nullptr;
  CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult (*map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,
                  unsigned long long) = nullptr;
  CUresult (*unmap)(CUdeviceptr, std::size_t) = nullptr;
  CUresult (*set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) = nullptr;
  CUresult (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
  CUresult (*host_free)(void*) = nullptr;
  CUresult (*copy_to_device)(CUdeviceptr, const void*, std::size_t, CUstream) = nullptr;
  CUresult (*copy_to_host)(void*, CUdeviceptr, std::size_t, CUstream) = nullptr;
  CUresult (*stream_create)(CUstream*, unsigned) = nullptr;
  CUresult (*stream_destroy)(CUstream) = nullptr;
  CUresult (*event_create)(CUevent*, unsigned) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_wait)(CUevent) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*context_wait)() = nullptr;
  CUresult (*may_exchange_capture_mode)(int*) = nullptr;
};

class CudaSwap : public SwapDevice {
 public:
  CudaSwap(const SwapCalls& calls, CUdevice device) : calls_(calls), device_(device) {}

  std::optional<std::uint64_t> reserve(std::uint64_t bytes) override;
  void unreserve(std::uint64_t address, std::uint64_t bytes) override;
  bool map(std::uint64_t address, std::uint64_t bytes) override;
  void unmap(std::uint64_t address, std::uint64_t bytes) override;
  void* pin(Home home, std::uint64_t bytes) override;
  void unpin(Home home, void* memory) override;
  CopyHandle copy(Home home, To to, std::uint64_t address, void* host,
                  std::uint64_t bytes) override;
  bool wait(Home home, CopyHandle ticket) override;
  bool drain(Home home) override;

  // Call before a context is destroyed, after its memory was freed.
  void forget(Home home);

 private:
  struct Lane {
    std::array<CUstream, 2> streams{};
    unsigned next = 0;
  };
  Lane* lane_of(CUcontext context);

  const SwapCalls calls_;
  const CUdevice device_;
  Mutex mutex_;
  std::map<CUcontext, Lane> lanes_ REGATTA_GUARDED_BY(mutex_);
};

}  // namespace regatta::sharing
