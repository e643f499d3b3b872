// sharing/internal/swap/residency_page.h: the part of the client's page in which the daemon and
// this process agree on the swappable memory of a device (regatta_residency_state), and the
// notifications that it has changed.
#pragma once

#include <atomic>
#include <cstdint>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/memory.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"

namespace regatta::sharing {

class ResidencyPage {
 public:
  // `client` outlives this object.
  ResidencyPage(Client& client, int device)
      : client_(client), device_(device), page_(client.pages().residency(device)) {}

  // Bytes that may be on the device now.
  std::uint64_t granted() const { return __atomic_load_n(&page_.granted, __ATOMIC_SEQ_CST); }
  // Changes with each grant.
  unsigned order() const { return __atomic_load_n(&page_.order, __ATOMIC_SEQ_CST); }
  void wait_for_order(unsigned known, std::uint64_t limit_ns) {
    os::futex_wait(&page_.order, known, limit_ns);
  }
  void wake_waiter() { os::futex_wake_one(&page_.order); }

  void publish(const SwappableMemory::Totals& totals) {
    set(page_.moved_in, totals.moved_in);
    set(page_.moved_out, totals.moved_out);
    set(page_.swapped_out, totals.all - totals.resident);
    set(page_.resident, totals.resident);
  }

  // By the worker: memory that was granted and for which the driver has no room, since somebody has
  // more than is counted.
  void set_lacking(std::uint64_t bytes) {
    if (__atomic_load_n(&page_.lacking, __ATOMIC_SEQ_CST) == bytes) return;
    set(page_.lacking, bytes);
    notify();
  }

  // Notifies the daemon when the activity is new.
  void set_activity(regatta_activity activity) {
    const auto value = static_cast<unsigned>(activity);
    if (__atomic_exchange_n(&page_.doing, value, __ATOMIC_SEQ_CST) != value) send();
  }
  bool is_idle() const {
    return __atomic_load_n(&page_.doing, __ATOMIC_SEQ_CST) == static_cast<unsigned>(REGATTA_IDLE);
  }

  // By the worker: notifies the daemon, at most once in `interval_ns`.
  void notify(std::uint64_t interval_ns = 0) {
    const std::uint64_t now = os::monotonic_ns();
    if (now - notified_ns_ < interval_ns) return;
    notified_ns_ = now;
    send();
  }

 private:
  static void set(unsigned long long& field, std::uint64_t value) {
    __atomic_store_n(&field, static_cast<unsigned long long>(value), __ATOMIC_SEQ_CST);
  }
  // A daemon that is away reads the page when it is back.
  void send() { static_cast<void>(client_.notify_residency_changed(device_).has_value()); }

  Client& client_;
  const int device_;
  regatta_residency_state& page_;
  std::uint64_t notified_ns_ = 0;
};

}  // namespace regatta::sharing
