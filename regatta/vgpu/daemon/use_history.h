// vgpu/daemon/use_history.h: how much of a device's time each tenant had: in all, and in the last
// second. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "regatta/vgpu/policy/share.h"

namespace regatta::vgpu {

class UseHistory {
 public:
  // The tenant had the device from `begin_ns` to `end_ns`; times do not go back.
  void add(int tenant, std::uint64_t begin_ns, std::uint64_t end_ns);
  void forget(int tenant) { uses_[static_cast<std::size_t>(tenant)] = Use(); }

  std::uint64_t total_ns(int tenant) const {
    return uses_[static_cast<std::size_t>(tenant)].total_ns;
  }
  // Of the ten whole tenths of a second before `now_ns`.
  double last_second(int tenant, std::uint64_t now_ns) const;

 private:
  static constexpr std::uint64_t kSlotNs = 100'000'000;
  static constexpr std::size_t kSlots = 16;  // a power of two above ten
  struct Slot {
    std::uint64_t number = 0;  // since the clock began
    std::uint64_t used_ns = 0;
  };
  struct Use {
    std::uint64_t total_ns = 0;
    std::array<Slot, kSlots> slots{};
  };
  std::array<Use, REGATTA_TENANTS_MAX> uses_{};
};

}  // namespace regatta::vgpu
