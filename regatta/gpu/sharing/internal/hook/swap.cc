#include "regatta/gpu/sharing/internal/hook/swap.h"

#include <array>
#include <string>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/report.h"
#include "regatta/gpu/sharing/internal/hook/tenant.h"
#include "regatta/gpu/sharing/internal/swap/cuda_swap.h"

namespace regatta::sharing::hook {

std::atomic<bool> has_swappable = false;
std::atomic<bool> counts_calls = false;
std::atomic<int> calls_under_way = 0;

namespace {

constexpr std::uint64_t kLeast = 1 << 20;  // smaller ones share blocks, which the driver does

SwapCalls swap_calls() {
  return {.address_reserve = driver<DriverEntry::cuMemAddressReserve>(),
          .address_free = driver<DriverEntry::cuMemAddressFree>(),
          .create = driver<DriverEntry::cuMemCreate>(),
          .release = driver<DriverEntry::cuMemRelease>(),
          .map = driver<DriverEntry::cuMemMap>(),
          .unmap = driver<DriverEntry::cuMemUnmap>(),
          .set_access = driver<DriverEntry::cuMemSetAccess>(),
          .host_alloc = driver<DriverEntry::cuMemHostAlloc>(),
          .host_free = driver<DriverEntry::cuMemFreeHost>(),
          .copy_to_device = driver<DriverEntry::cuMemcpyHtoDAsync_v2>(),
          .copy_to_host = driver<DriverEntry::cuMemcpyDtoHAsync_v2>(),
          .stream_create = driver<DriverEntry::cuStreamCreate>(),
          .stream_destroy = driver<DriverEntry::cuStreamDestroy_v2>(),
          .event_create = driver<DriverEntry::cuEventCreate>(),
          .event_record = driver<DriverEntry::cuEventRecord>(),
          .event_wait = driver<DriverEntry::cuEventSynchronize>(),
          .event_destroy = driver<DriverEntry::cuEventDestroy_v2>(),
          .context_push = driver<DriverEntry::cuCtxPushCurrent_v2>(),
          .context_pop = driver<DriverEntry::cuCtxPopCurrent_v2>(),
          .context_wait = driver<DriverEntry::cuCtxSynchronize>(),
          .may_exchange_capture_mode = driver<DriverEntry::cuThreadExchangeStreamCaptureMode>()};
}

bool is_complete(const SwapCalls& calls) {
  return calls.address_reserve != nullptr && calls.create != nullptr && calls.map != nullptr &&
         calls.unmap != nullptr && calls.set_access != nullptr && calls.host_alloc != nullptr;
}

// Counts what it puts on the device where the driver's own figure is compared with what is known.
class CountedSwap : public CudaSwap {
 public:
  using CudaSwap::CudaSwap;
  bool map(std::uint64_t address, std::uint64_t bytes) override {
    const AccountingGuard busy;
    if (!CudaSwap::map(address, bytes)) return false;
    there += bytes;
    return true;
  }
  void unmap(std::uint64_t address, std::uint64_t bytes) override {
    const AccountingGuard busy;
    CudaSwap::unmap(address, bytes);
    there -= bytes;
  }

  std::atomic<std::uint64_t> there = 0;
};

// For the life of the process: its thread may be at work when the process ends.
struct Device {
  CountedSwap swap;
  DeviceResidency residency;

  Device(Client& client, int number)
      : swap(swap_calls(), number),
        residency(client, number, swap, SwappableMemory::kChunk, &calls_under_way) {}
};

std::array<std::atomic<Device*>, REGATTA_DEVICES_MAX> devices{};

Device* device_at(int number) {
  if (number < 0 || number >= REGATTA_DEVICES_MAX) return nullptr;
  return at(devices, number).load(std::memory_order_acquire);
}

// Null where memory does not move: the tenant has no over-commit, or the driver is too old.
Device* make_device(int number) {
  Client* const client = tenant_client();
  if (number < 0 || number >= REGATTA_DEVICES_MAX || client == nullptr ||
      !client->pages().is_overcommitted() || !client->is_joined_process())
    return nullptr;
  static Mutex mutex;  // lets one thread create it
  const MutexLock lock(mutex);
  if (Device* const known = device_at(number)) return known;
  if (!is_complete(swap_calls())) {
    static std::atomic<bool> is_said = false;
    if (!is_said.exchange(true)) report("the driver is too old; memory cannot leave the GPU");
    return nullptr;
  }
  auto* const made = new Device(*client, number);
  at(devices, number).store(made, std::memory_order_release);
  has_swappable.store(true, std::memory_order_release);
  return made;
}

// Calls `use` with each device and its number.
template <typename F>
void for_each_device(F&& use) {
  if (!has_swappable.load(std::memory_order_acquire)) return;
  for (int number = 0; number < REGATTA_DEVICES_MAX; ++number)
    if (Device* const device = device_at(number)) use(*device, number);
}

}  // namespace

DeviceResidency* find_residency() {
  Client* const client = tenant_client();
  if (client == nullptr || !client->is_joined_process()) return nullptr;  // the driver will refuse
  const auto place = current_device_context();
  Device* const device = place ? device_at(place->device) : nullptr;
  return device == nullptr ? nullptr : &device->residency;
}

void watch_devices() {
  Client* const client = tenant_client();
  auto* const count_devices = driver<DriverEntry::cuDeviceGetCount>();
  int count = 0;
  if (client == nullptr || !client->pages().is_overcommitted() || count_devices == nullptr ||
      count_devices(&count) != CUDA_SUCCESS)
    return;
  counts_calls = true;
  for (int number = 0; number < count && number < REGATTA_DEVICES_MAX; ++number) {
    if (__atomic_load_n(&client->pages().tenant().quota[number], __ATOMIC_RELAXED) == 0) continue;
    if (Device* const device = make_device(number)) device->residency.watch();
  }
}

bool pin_process() {
  Client* const client = tenant_client();
  if (client == nullptr || !client->pages().is_overcommitted() || !client->is_joined_process())
    return true;
  if (__atomic_load_n(&client->pages().process().pinned, __ATOMIC_RELAXED) != 0) return true;
  const Status bound = client->pin();
  if (bound) return true;
  // Some programs ask again and again, and a process has few lines.
  static std::atomic<bool> is_said = false;
  if (bound.error().code != Code::kExhausted || !is_said.exchange(true))
    report(bound.error().message);
  return false;
}

AddressResidencyGuard::AddressResidencyGuard() {
  for_each_device([this](Device& device, int) { add(&device.residency); });
  enter();
  for (std::size_t i = 0; i < count_; ++i)
    residencies_[i]->launches();
}

AddressResidencyGuard::AddressResidencyGuard(std::span<const CUdeviceptr> to,
                                             std::span<const CUdeviceptr> from) {
  if (!has_swappable.load(std::memory_order_acquire)) return;
  add(find_residency());
  for (const auto addresses : {to, from})
    for (const CUdeviceptr address : addresses)
      if (const auto found = find_swappable(address)) add(&device_at(found->device)->residency);
  enter();
  for (const CUdeviceptr address : to)
    if (const auto found = find_swappable(address))
      device_at(found->device)->residency.writes(address);
}

AddressResidencyGuard::~AddressResidencyGuard() {
  for (std::size_t i = 0; i < count_; ++i)
    residencies_[i]->leave();
}

void AddressResidencyGuard::add(DeviceResidency* residency) {
  if (residency == nullptr || count_ == residencies_.size()) return;
  for (std::size_t i = 0; i < count_; ++i)
    if (residencies_[i] == residency) return;
  residencies_[count_++] = residency;
}

// Nothing is kept from going while another one is waited for: two processes could wait for each
// other.
void AddressResidencyGuard::enter() {
  for (std::size_t first = 0; count_ != 0;) {
    residencies_[first]->enter();
    std::size_t lacking = 0;
    while (lacking < count_ && (lacking == first || residencies_[lacking]->try_enter()))
      ++lacking;
    if (lacking == count_) return;
    for (std::size_t i = 0; i < lacking; ++i)
      if (i != first) residencies_[i]->leave();
    residencies_[first]->leave();
    first = lacking;
  }
}

std::optional<CUresult> allocate_swappable(CUdeviceptr* address, std::uint64_t bytes) {
  if (address == nullptr || bytes < kLeast) return std::nullopt;
  const auto place = current_device_context();
  Device* const device = place ? make_device(place->device) : nullptr;
  if (device == nullptr) return std::nullopt;
  if (bytes > REGATTA_MEMORY_MAX || !account_context(*place)) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto made = device->residency.allocate(place->context, bytes);
  if (made) {
    *address = *made;
    return CUDA_SUCCESS;
  }
  if (made.error().code != Code::kExhausted) report(made.error().message);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

bool free_swappable(CUdeviceptr address) {
  const auto found = find_swappable(address);
  return found && found->range.address == address &&
         device_at(found->device)->residency.free(address);
}

void free_swappable_of(CUcontext context) {
  for_each_device([&](Device& device, int) {
    device.residency.free_all(context);
    device.swap.forget(context);
  });
}

std::optional<SwappableRange> find_swappable(CUdeviceptr address) {
  std::optional<SwappableRange> found;
  for_each_device([&](Device& device, int number) {
    if (const auto range = device.residency.find(address)) found = {*range, number};
  });
  return found;
}

std::uint64_t swappable_bytes_there(int device) {
  const Device* const known = device_at(device);
  return known == nullptr ? 0 : known->swap.there.load();
}

}  // namespace regatta::sharing::hook
