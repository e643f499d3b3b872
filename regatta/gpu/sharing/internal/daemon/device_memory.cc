#include "regatta/gpu/sharing/internal/daemon/device_memory.h"

#include <memory>
#include <type_traits>
#include <vector>

#include <dlfcn.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/device/abi/nvml.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kApartNs = 500'000'000;
constexpr Seconds kMoment{0.02};
constexpr unsigned kProcessesMost = 65'536;

}  // namespace

struct DeviceMemory::Nvml {
  nvmlReturn_t (*init)() = nullptr;
  nvmlReturn_t (*get_device)(unsigned, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*list)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*) = nullptr;

  // Without functions where the library is not there.
  static Nvml open(const std::string& library) {
    Nvml found;
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return found;
    const auto find = [handle](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      return function != nullptr;
    };
    const bool is_complete = find(found.init, "nvmlInit_v2") &&
                             find(found.get_device, "nvmlDeviceGetHandleByIndex_v2") &&
                             find(found.list, "nvmlDeviceGetComputeRunningProcesses_v3");
    return is_complete && found.init() == NVML_SUCCESS ? found : Nvml();
  }

  std::optional<Processes> ask(int device) const {
    if (list == nullptr) return std::nullopt;
    nvmlDevice_t handle = nullptr;
    if (get_device(static_cast<unsigned>(device), &handle) != NVML_SUCCESS) return std::nullopt;
    std::vector<nvmlProcessInfo_t> all(256);
    auto count = static_cast<unsigned>(all.size());
    nvmlReturn_t result = list(handle, &count, all.data());
    while (result == NVML_ERROR_INSUFFICIENT_SIZE && all.size() < kProcessesMost) {
      all.resize(2 * all.size());
      count = static_cast<unsigned>(all.size());
      result = list(handle, &count, all.data());
    }
    if (result != NVML_SUCCESS) return std::nullopt;
    Processes processes;
    for (unsigned i = 0; i < count; ++i) {
      auto& bytes = processes.try_emplace(static_cast<pid_t>(all[i].pid), 0).first->second;
      if (all[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE)
        bytes = std::nullopt;
      else if (bytes)
        *bytes += all[i].usedGpuMemory;
    }
    return processes;
  }
};

struct DeviceMemory::Shared {
  Mutex mutex;
  ConditionVariable changed;
  bool is_asked REGATTA_GUARDED_BY(mutex) = false;
  bool stops REGATTA_GUARDED_BY(mutex) = false;
  Readings readings REGATTA_GUARDED_BY(mutex);
};

DeviceMemory::~DeviceMemory() {
  if (shared_ == nullptr) return;
  const MutexLock lock(shared_->mutex);
  shared_->stops = true;
  shared_->changed.notify_all();
}

void DeviceMemory::run(const std::shared_ptr<Shared>& shared, int devices,
                       const std::string& library) {
  const Nvml nvml = Nvml::open(library);
  MutexLock lock(shared->mutex);
  for (;;) {
    while (!shared->is_asked && !shared->stops)
      shared->changed.wait(lock);
    if (shared->stops) return;
    lock.unlock();
    Readings read;
    for (int device = 0; device < devices; ++device)
      at(read, device) = nvml.ask(device);
    lock.lock();
    shared->readings = std::move(read);
    shared->is_asked = false;
    shared->changed.notify_all();
  }
}

void DeviceMemory::refresh() const {
  const std::uint64_t now = os::monotonic_ns();
  if (library_.empty() || (asked_ns_ != 0 && now - asked_ns_ < kApartNs)) return;
  asked_ns_ = now;
  if (shared_ == nullptr) {
    shared_ = std::make_shared<Shared>();
    os::signal_masked_thread([shared = shared_, devices = devices_, library = library_] {
      run(shared, devices, library);
    }).detach();
  }
  MutexLock lock(shared_->mutex);
  shared_->is_asked = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(
      lock, kMoment, [this]() REGATTA_REQUIRES(shared_->mutex) { return !shared_->is_asked; });
  readings_ = shared_->readings;
}

}  // namespace regatta::sharing
