// sharing/internal/hook/swap.h: memory of a tenant with over-commit, which the daemon may send to
// the host: allocations of 1 MiB and more are made of addresses with memory put under them
// (sharing/swap), and calls that use memory wait until it is there. For other tenants a call costs
// a load and a branch.
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

// Of the device of the calling thread's context; null: nothing of it moves.
DeviceResidency* find_residency();

// While one lives, what can move of the device that the calling thread uses is there.
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

  // What is called now may write to anything, or to the allocation at this address.
  void launches() const {
    if (residency_ != nullptr) residency_->launches();
  }
  void writes(CUdeviceptr address) const {
    if (residency_ != nullptr) residency_->writes(address);
  }

 private:
  DeviceResidency* residency_ = nullptr;
};

// The same for memory at any addresses, on whatever devices it is: what is at `to` may be written.
class AddressResidencyGuard {
 public:
  AddressResidencyGuard(std::span<const CUdeviceptr> to, std::span<const CUdeviceptr> from);
  AddressResidencyGuard();  // all that the process has, and it may be written
  AddressResidencyGuard(const AddressResidencyGuard&) = delete;
  AddressResidencyGuard& operator=(const AddressResidencyGuard&) = delete;
  ~AddressResidencyGuard();

 private:
  void add(DeviceResidency* residency);
  void enter();

  std::array<DeviceResidency*, REGATTA_DEVICES_MAX> residencies_{};
  std::size_t count_ = 0;
};

// Threads in calls of the driver: counted where the process may leave its devices as a whole, for
// then such a call waits in the driver, and nobody else knows of it.
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
// After cuInit: where the tenant has over-commit, threads say from now on what the process does.
void watch_devices();
// Before the process has memory that no checkpoint can take; false: others would have no room.
bool pin_process();

// Of memory that is to have `bytes`: none where the driver is to allocate it.
std::optional<CUresult> allocate_swappable(CUdeviceptr* address, std::uint64_t bytes);
// False: it is none of that, and the driver is to free it.
bool free_swappable(CUdeviceptr address);
// All of a context that is about to be destroyed.
void free_swappable_of(CUcontext context);
// The allocation that the address lies in.
struct SwappableRange {
  SwappableMemory::Range range;
  int device = 0;
};
std::optional<SwappableRange> find_swappable(CUdeviceptr address);

// What of it is on the device, counted while AccountingGuard.
std::uint64_t swappable_bytes_there(int device);

}  // namespace regatta::sharing::hook
