// sharing/internal/daemon/device_memory.h: what NVML says that each process has of the devices, for
// comparison with the books. A thread asks it, from the first question on, because it may take as
// long as it likes; who asks gets what it said last.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_limits.h"

namespace regatta::sharing {

class DeviceMemory {
 public:
  // `library`: the path or name of NVML; "": it is not asked.
  explicit DeviceMemory(int devices = 0, std::string library = "")
      : devices_(devices), library_(std::move(library)) {}
  DeviceMemory(DeviceMemory&&) = default;
  DeviceMemory& operator=(DeviceMemory&&) = default;
  ~DeviceMemory();

  using Processes = std::map<pid_t, std::optional<std::uint64_t>>;  // none: it does not say
  // Bytes of each process that has any, at most half a second old where NVML answers at once; none:
  // it does not say. Waits a moment, once for all devices.
  const std::optional<Processes>& processes(int device) const {
    refresh();
    return at(readings_, device);
  }

 private:
  using Readings = std::array<std::optional<Processes>, kDevicesMax>;
  struct Shared;  // with the thread, which may outlive this object
  struct Nvml;
  static void run(const std::shared_ptr<Shared>& shared, int devices, const std::string& library);
  void refresh() const;

  int devices_;
  std::string library_;
  mutable std::shared_ptr<Shared> shared_;
  mutable std::uint64_t asked_ns_ = 0;
  mutable Readings readings_{};
};

}  // namespace regatta::sharing
