// sharing/internal/hook/swap.h: memory of a tenant with over-commit, which the daemon may swap out:
// allocations of 1 MiB and more are reserved addresses with memory mapped to them (sharing/swap),
// and calls that use memory wait until it is resident. For other tenants a call costs a load and a
// branch.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "regatta/gpu/sharing/internal/swap/device_residency.h"

namespace regatta::sharing::hook {

// Whether this process ever had such memory.
extern std::atomic<bool> has_swappable;

// The residency of the device of the calling thread's context; null: its memory does not move.
DeviceResidency* find_residency();

// While it lives, the swappable memory of the calling thread's device is resident.
class ResidencyGuard {
 public:
  ResidencyGuard() {
    if (!has_swappable.load(std::memory_order_acquire)) [[likely]]
      return;
    residency_ = find_residency();
    if (residency_ != nullptr) residency_->enter();
  }
  ResidencyGuard(const ResidencyGuard&) = delete;
  ResidencyGuard& operator=(const ResidencyGuard&) = delete;
  ~ResidencyGuard() {
    if (residency_ != nullptr) residency_->leave();
  }

  // The call may write to any memory, or to the allocation at this address.
  void launches() const {
    if (residency_ != nullptr) residency_->launches();
  }
  void writes(CUdeviceptr address) const {
    if (residency_ != nullptr) residency_->writes(address);
  }

 private:
  DeviceResidency* residency_ = nullptr;
};

// As ResidencyGuard, for memory at given addresses on any devices; memory at `to` may be written.
class AddressResidencyGuard {
 public:
  AddressResidencyGuard(std::span<const CUdeviceptr> to, std::span<const CUdeviceptr> from);
  AddressResidencyGuard();  // all memory of the process, which may be written
  AddressResidencyGuard(const AddressResidencyGuard&) = delete;
  AddressResidencyGuard& operator=(const AddressResidencyGuard&) = delete;
  ~AddressResidencyGuard();

 private:
  void add(DeviceResidency* residency);
  void enter();

  std::array<DeviceResidency*, REGATTA_DEVICES_MAX> residencies_{};
  std::size_t count_ = 0;
};

// Threads in calls of the driver, counted where the process may be checkpointed: then such a call
// blocks in the driver, and only this count shows it.
extern std::atomic<bool> counts_calls;
extern std::atomic<int> calls_under_way;
class DriverCallGuard {
 public:
  DriverCallGuard() : is_counted_(counts_calls.load(std::memory_order_relaxed)) {
    if (is_counted_) [[unlikely]]
      calls_under_way.fetch_add(1);
  }
  DriverCallGuard(const DriverCallGuard&) = delete;
  DriverCallGuard& operator=(const DriverCallGuard&) = delete;
  ~DriverCallGuard() {
    if (is_counted_) [[unlikely]]
      calls_under_way.fetch_sub(1);
  }

 private:
  const bool is_counted_;
};
// After cuInit: for a tenant with over-commit, worker threads report the activity of the process
// from now on.
void watch_devices();
// Call before the process gets memory that no checkpoint can take; false: others would have no
// room.
bool pin_process();

// Allocates `bytes` of swappable memory; none where the driver is to allocate them.
std::optional<CUresult> allocate_swappable(CUdeviceptr* address, std::uint64_t bytes);
// False: it is not swappable, and the driver is to free it.
bool free_swappable(CUdeviceptr address);
// Frees all of a context that is about to be destroyed.
void free_swappable_of(CUcontext context);
// The allocation that contains an address.
struct SwappableRange {
  SwappableMemory::Range range;
  int device = 0;
};
std::optional<SwappableRange> find_swappable(CUdeviceptr address);

// Its bytes on the device, counted within an AccountingGuard.
std::uint64_t swappable_bytes_there(int device);

}  // namespace regatta::sharing::hook
