// sharing/internal/client/client.h: a process of a tenant as it requests device memory. Most
// reservations are one compare-and-swap in the process's own lease counter
// (internal/ledger/lease_counter.h); when that is empty, one message to the daemon. Any thread may
// call. A thread that dies in a call, at any point, leaves nothing locked in the daemon.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/client/client_pages.h"
#include "regatta/gpu/sharing/internal/client/daemon_connection.h"
#include "regatta/gpu/sharing/internal/client/known_fd.h"

namespace regatta::sharing {

class Client {
 public:
  // Joins the tenant whose page this process or an ancestor inherited, or else the tenant whose
  // cgroup the process is in; the environment has no influence. kNotFound when there is neither;
  // other errors as reserve().
  static Result<std::unique_ptr<Client>> connect(Seconds timeout);
  // By the cgroup only, at this socket.
  static Result<std::unique_ptr<Client>> connect_by_cgroup(const std::string& socket,
                                                           Seconds timeout);
  // By the descriptor of the tenant's page only. A process is one client: kConflict when it is one
  // already.
  static Result<std::unique_ptr<Client>> connect(int tenant_page, Seconds timeout);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Call before the driver allocates, with the bytes that it will take. kExhausted when the
  // tenant's quota would be exceeded; kUnavailable when the daemon did not come back within the
  // timeout; kConflict in a child of fork(), which connects anew.
  Status reserve(int device, std::uint64_t bytes) {
    if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
    if (pages_.is_joined_process() &&
        regatta_lease_counter_take(&pages_.lease_counter(device), bytes) != 0)
      return {};
    return reserve_slowly(device, bytes);
  }
  // As reserve(), requested once: kExhausted also where other tenants would have to make room
  // first. Waits for a daemon that is there and does not answer.
  Status try_reserve(int device, std::uint64_t bytes) {
    if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
    return reserve_slowly(device, bytes, Seconds{0}, Seconds{0});
  }
  // As try_reserve(), for calls that must not wait: kTimeout when the daemon does not answer within
  // `timeout`; kConflict when another thread is waiting for it.
  Status try_reserve_within(Seconds timeout, int device, std::uint64_t bytes);
  // Call after the driver freed it, or did not allocate.
  void release(int device, std::uint64_t bytes) {
    if (pages_.is_joined_process())
      regatta_lease_counter_give(&pages_.lease_counter(device), bytes);
  }

  // For a tenant with over-commit: sets the client's swappable memory to `total` bytes. Errors as
  // reserve().
  Status lease_swappable(int device, std::uint64_t total);
  // Notifies the daemon that residency(device) has changed. Errors as reserve(), without waiting.
  Status notify_residency_changed(int device);
  // Call before the process gets memory that no checkpoint can take; waits until the process is on
  // its devices. kExhausted when others would have no room beside it; other errors as reserve().
  Status pin();

  // Opens one more session of a codec. kExhausted when the tenant has no more; else as reserve().
  Status open_session(int device, regatta_engine engine);
  void close_session(int device, regatta_engine engine);

  // A connection that notifies the daemon that work(device) has changed (RequestType::kNotify).
  // Maps the pages of the daemon that answers. Errors as reserve().
  Result<os::UniqueFd> open_event_connection();

  // As sharing::is_daemon_dead(), of this client's daemon. Does not wait.
  bool is_daemon_dead();

  // The listener is told, once, why launches wait although the daemon is not known to be dead.
  using Listener = void (*)(const Error& why);
  void set_listener(Listener listener) { listener_ = listener; }
  void tell(const Error& why);

  const ClientPages& pages() const { return pages_; }
  bool is_joined_process() const { return pages_.is_joined_process(); }

 private:
  explicit Client(Seconds timeout) : timeout_(timeout) {}
  static Error no_device(int device);
  static Result<std::unique_ptr<Client>> connect_to(const std::string& socket, int tenant_page,
                                                    Seconds timeout);
  Status request_until_answered(const ClientRequest& request);
  Status reserve_slowly(int device, std::uint64_t bytes);
  Status reserve_slowly(int device, std::uint64_t bytes, Seconds timeout, Seconds room_timeout);
  Status reserve_within(Seconds timeout, int device, std::uint64_t bytes) REGATTA_REQUIRES(mutex_);
  Result<bool> reserve_or_lease(int device, std::uint64_t bytes, bool* is_later)
      REGATTA_REQUIRES(mutex_);

  Status shake_hands(Seconds timeout) REGATTA_REQUIRES(mutex_);

  const Seconds timeout_;
  std::atomic<Listener> listener_ = nullptr;
  ClientPages pages_;
  Mutex mutex_;
  SpareFds spare_ REGATTA_GUARDED_BY(mutex_);
  DaemonConnection connection_ REGATTA_GUARDED_BY(mutex_){pages_};
};

}  // namespace regatta::sharing
