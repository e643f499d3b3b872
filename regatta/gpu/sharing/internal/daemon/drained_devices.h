// sharing/internal/daemon/drained_devices.h: devices that accept no new tenant and lease no more
// memory. They are listed in DIR/drained.json (docs/formats/gpu_state.md), so draining survives the
// daemon and a reboot until it is undone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_limits.h"

namespace regatta::sharing {

class DrainedDevices {
 public:
  // Reads the file; none is drained when it does not exist. kInvalidInput when it is damaged.
  static Result<DrainedDevices> load(const std::string& folder);

  // A bit for each device.
  std::uint32_t bits() const { return bits_; }
  bool contains(int device) const { return (bits_ >> device & 1U) != 0; }
  // Writes the file first.
  Status set(std::uint32_t bits);

  // kConflict when the limits raise a quota on a drained device, or when a new tenant finds all
  // devices drained. A tenant may keep and lower its quotas. `current` is null for a new tenant.
  Status check(const TenantLimits& limits, int device_count, const TenantRecord* current) const;
  static Error error(int device);

 private:
  DrainedDevices(std::string path, std::uint32_t bits) : path_(std::move(path)), bits_(bits) {}

  std::string path_;
  std::uint32_t bits_ = 0;
};

}  // namespace regatta::sharing
