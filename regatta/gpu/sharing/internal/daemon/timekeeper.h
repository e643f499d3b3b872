// sharing/internal/daemon/timekeeper.h: the time of all devices: reads what clients do from their
// pages, lets Dispatch decide, and writes to the tenants' pages whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/alarm.h"
#include "regatta/gpu/sharing/internal/daemon/books.h"
#include "regatta/gpu/sharing/internal/daemon/dispatch.h"

namespace regatta::sharing {

class Timekeeper {
 public:
  // `hold_ns`: no turn begins before that has passed.
  static Result<Timekeeper> create(const Books& books, const DispatchOptions& options,
                                   std::uint64_t hold_ns);

  // Readable when step() is due.
  int timer() const { return alarm_.descriptor(); }

  // A client rings from now on, or not any more; only those that do count.
  void listen(const Books& books, int client, bool rings);
  // What the tenant's clients do may have changed.
  void look(const Books& books, int tenant);
  void look(const Books& books);  // at all
  // Limits, policy, or which tenants there are.
  void set_tenants(const Books& books);
  void forget(int tenant);
  // Whether the tenant's memory is not on the device: then it has no turns, and no part of the time
  // under policies that divide it among those who are there.
  void set_out(const Books& books, int tenant, int device, bool is_out);
  bool has_turn(int tenant, int device) const {
    return devices_[static_cast<std::size_t>(device)].open_tenant() == tenant;
  }

  void acknowledge_timer();
  void step(const Books& books);

  // Of the last second, as a part of the device's time; and in all.
  double last_second(int tenant, int device) const;
  double seconds(int tenant, int device) const;

 private:
  Timekeeper(Alarm alarm, const DispatchOptions& options, int devices, std::uint64_t hold_until_ns);
  void look(const Books& books, int tenant, int device, std::uint64_t now);

  Alarm alarm_;
  std::vector<Dispatch> devices_;
  std::vector<std::array<bool, kTenantsMax>> is_out_;  // of each device
  std::vector<char> rings_;                            // of each client
  // Of each client on each device: the use that is accounted for.
  std::vector<std::array<std::uint64_t, kDevicesMax>> used_ns_;
  std::uint64_t hold_until_ns_;
};

}  // namespace regatta::sharing
