// sharing/internal/daemon/use_history.h: device time, or units of an engine, that each tenant used:
// in total, and in the last second. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/policy/share.h"

namespace regatta::sharing {

class UseHistory {
 public:
  // The tenant used the device from `begin_ns` to `end_ns`; times do not go back.
  void add(int tenant, std::uint64_t begin_ns, std::uint64_t end_ns);
  // The tenant used `units`, as observed at `now_ns`.
  void count(int tenant, std::uint64_t units, std::uint64_t now_ns);
  void forget(int tenant) { at(uses_, tenant) = Use(); }

  std::uint64_t total(int tenant) const { return at(uses_, tenant).total; }
  // Use in the ten whole tenths of a second before `now_ns`.
  std::uint64_t last_second(int tenant, std::uint64_t now_ns) const;

 private:
  void add_to_slot(int tenant, std::uint64_t number, std::uint64_t used);

  static constexpr std::uint64_t kSlotNs = 100'000'000;
  static constexpr std::size_t kSlots = 16;  // a power of two above ten
  struct Slot {
    std::uint64_t number = 0;  // since the clock began
    std::uint64_t used = 0;
  };
  struct Use {
    std::uint64_t total = 0;
    std::array<Slot, kSlots> slots{};
  };
  std::array<Use, REGATTA_TENANTS_MAX> uses_{};
};

}  // namespace regatta::sharing
