// Allocations that have an address from the start, and the views of a device's memory.
#include "regatta/gpu/sharing/internal/hook/memory.h"

#include <algorithm>
#include <array>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {

AllocationTable& allocations() {
  static auto* const only = new AllocationTable;  // other threads use it until the very end
  return *only;
}

Blocks& blocks(int device) {
  static auto* const all = new std::array<Blocks, REGATTA_DEVICES_MAX>;
  return (*all)[as_index(device)];
}

std::optional<DeviceContext> current_device_context() {
  DeviceContext place;
  auto* const get_current = driver<DriverEntry::cuCtxGetCurrent>();
  auto* const get_device = driver<DriverEntry::cuCtxGetDevice>();
  if (get_current == nullptr || get_device == nullptr ||
      get_current(&place.context) != CUDA_SUCCESS || place.context == nullptr ||
      get_device(&place.device) != CUDA_SUCCESS)
    return std::nullopt;
  return place;
}

void release_bytes(const Allocation& allocation) {
  std::uint64_t bytes = allocation.charged;
  if (allocation.bytes != 0)
    bytes += blocks(allocation.device).remove(allocation.address, allocation.bytes);
  release(allocation.device, bytes);
}

void AccountingGuard::wait_for_measurement() {
  constexpr int kMost = 2000;  // a child of fork() may see one that nobody ends
  pause();
  for (int i = 0; i < kMost && is_measuring.load(); ++i)
    os::sleep_for(Seconds{50e-6});
  under_way.fetch_add(1, std::memory_order_seq_cst);
}

std::optional<DriverReportedUsage::Call> DriverReportedUsage::begin(int device, std::uint64_t most,
                                                                    AccountingGuard* busy) {
  const auto granted = reserve(device, most, busy);
  if (!granted) return std::nullopt;
  const MutexLock lock(mutex_);
  expected_ += *granted;
  held_ += *granted;
  return Call{.expected = *granted, .number = ++begun_, .measured_before = measured_};
}

bool DriverReportedUsage::complete(const Call& call) {
  const MutexLock lock(mutex_);
  if (held_ < measured_ + expected_ + completed_ - covered_) return false;
  expected_ -= call.expected;
  completed_ += call.expected;
  return true;
}

void DriverReportedUsage::apply_reading(const Call& call, const Measurement& measurement) {
  const auto& reading = measurement.reading;
  const bool is_exact = reading && !reading->is_least;
  if (is_exact && measurement.number > applied_) {
    applied_ = measurement.number;
    measured_ = reading->bytes;
    covered_ = std::max(covered_, measurement.completed);
  }
  if (is_exact) return;
  if (!call.has_failed) measured_ += call.expected;
  measured_ += completed_ - covered_;
  covered_ = completed_;
  measured_ -= std::min(measured_, call.freed);
  if (reading) measured_ = std::max(measured_, reading->bytes);
}

// Counts `target` bytes, or `least` where there is no room for them; beyond the quota if need be:
// then it is false.
bool DriverReportedUsage::hold(int device, std::uint64_t target, std::uint64_t least) {
  if (excess_ != 0) release(device, excess_);
  excess_ = 0;
  if (target < held_) {
    release(device, held_ - target);
    held_ = target;
  }
  for (const std::uint64_t wanted : {target, least}) {
    const auto granted = wanted <= held_ ? 0 : reserve(device, wanted - held_);
    if (!granted) continue;
    held_ += *granted;
    return true;
  }
  excess_ = least - held_;
  owe_beyond_quota(device, excess_);
  return false;
}

DriverReportedUsage::Outcome DriverReportedUsage::apply(int device, const Call& call,
                                                        const Measurement& measurement) {
  const MutexLock lock(mutex_);
  expected_ -= call.expected;
  apply_reading(call, measurement);
  Outcome outcome;
  if (call.number == begun_ && expected_ == 0 && measured_ > call.measured_before)
    outcome.grown = measured_ - call.measured_before;
  const std::uint64_t in_advance = expected_ + completed_ - covered_;
  // Memory that calls in progress took already is in the measurement and in what they expect: they
  // settle it.
  outcome.is_within = hold(device, measured_ + in_advance, std::max(measured_, in_advance));
  return outcome;
}

bool DriverReportedUsage::is_beyond_quota() {
  const MutexLock lock(mutex_);
  return excess_ != 0;
}

std::uint64_t DriverReportedUsage::held_bytes() {
  const MutexLock lock(mutex_);
  return held_ + excess_;
}

namespace {

// Asks the driver by `call` for about `bytes`, `size()` of them when it is done.
template <typename Call, typename Size>
CUresult allocate_blocks(CUdeviceptr* address, std::uint64_t bytes, Call&& call, Size&& size) {
  const auto place = current_device_context();
  if (!place || address == nullptr || bytes == 0) return call();
  if (!account_context(*place)) return CUDA_ERROR_OUT_OF_MEMORY;
  AccountingGuard busy;
  const auto granted = reserve(place->device, whole_blocks(bytes), &busy);
  if (!granted) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call();
  if (result != CUDA_SUCCESS || *granted == 0) {
    release(place->device, *granted);
    return result;
  }
  const std::uint64_t taken = blocks(place->device).add(*address, size());
  const Allocation made{
      .address = *address, .bytes = size(), .context = place->context, .device = place->device};
  if (taken > *granted && !reserve(place->device, taken - *granted)) {
    // More than was asked for: rare, and undone.
    driver<DriverEntry::cuMemFree_v2>()(*address);
    blocks(place->device).remove(*address, size());
    release(place->device, *granted);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (taken < *granted) release(place->device, *granted - taken);
  allocations().put(made);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult allocate(DriverFunction<DriverEntry::cuMemAlloc_v2> real, CUdeviceptr* address,
                  std::size_t bytes) {
  if (const auto done = allocate_swappable(address, bytes)) return *done;
  return allocate_blocks(
      address, bytes, [&] { return real(address, bytes); }, [&] { return bytes; });
}

CUresult allocate_pitch(DriverFunction<DriverEntry::cuMemAllocPitch_v2> real, CUdeviceptr* address,
                        std::size_t* pitch, std::size_t width, std::size_t height,
                        unsigned element_bytes) {
  constexpr std::size_t kPitchStep = 512;  // of every GPU so far
  if (pitch == nullptr) return real(address, pitch, width, height, element_bytes);
  const std::size_t likely_pitch = saturated_sum(width, kPitchStep - 1) / kPitchStep * kPitchStep;
  const std::size_t likely = saturated_product(likely_pitch, height);
  if (element_bytes == 4 || element_bytes == 8 || element_bytes == 16) {
    const auto done = allocate_swappable(address, likely);
    if (done && *done == CUDA_SUCCESS) *pitch = likely_pitch;
    if (done) return *done;
  }
  return allocate_blocks(
      address, likely, [&] { return real(address, pitch, width, height, element_bytes); },
      [&] { return *pitch * height; });
}

CUresult allocate_managed(DriverFunction<DriverEntry::cuMemAllocManaged> real, CUdeviceptr* address,
                          std::size_t bytes, unsigned flags) {
  if (!pin_process()) return CUDA_ERROR_OUT_OF_MEMORY;
  return allocate_blocks(
      address, bytes, [&] { return real(address, bytes, flags); }, [&] { return bytes; });
}

namespace {

CUresult free_known(DriverFunction<DriverEntry::cuMemFree_v2> real, CUdeviceptr address) {
  if (free_swappable(address)) {
    settle_pools(false);  // work was waited for
    return CUDA_SUCCESS;
  }
  const AccountingGuard busy;
  // Taken out first: as soon as it is free, another thread may get the same address.
  const auto known = allocations().extract(address);
  const CUresult result = real(address);
  if (!known) return result;
  if (result != CUDA_SUCCESS) {
    allocations().put(*known);
    return result;
  }
  release_bytes(*known);
  if (known->pool != nullptr) forget_in_pool(*known);
  settle_pools(false);  // the driver waited for work
  return result;
}

}  // namespace

CUresult free_memory(DriverFunction<DriverEntry::cuMemFree_v2> real, CUdeviceptr address) {
  const CUresult result = free_known(real, address);
  if (result == CUDA_SUCCESS) settle_shares(SettleMode::kAlways);
  return result;
}

CUresult show_memory(DriverFunction<DriverEntry::cuMemGetInfo_v2> real, std::size_t* free,
                     std::size_t* total) {
  MemoryView view;
  const CUresult result = real(&view.free_bytes, &view.total_bytes);
  const auto place = current_device_context();
  if (result != CUDA_SUCCESS || !place) return result;
  account_context(*place);
  view = tenant_view(place->device, view);
  if (free != nullptr) *free = view.free_bytes;
  if (total != nullptr) *total = view.total_bytes;
  return result;
}

CUresult show_total(DriverFunction<DriverEntry::cuDeviceTotalMem_v2> real, std::size_t* bytes,
                    CUdevice device) {
  const CUresult result = real(bytes, device);
  if (result == CUDA_SUCCESS && bytes != nullptr)
    *bytes = tenant_view(device, {*bytes, *bytes}).total_bytes;
  return result;
}

}  // namespace regatta::sharing::hook
