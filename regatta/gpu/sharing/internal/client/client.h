// sharing/internal/client/client.h: a process of a tenant, as it asks for device memory. Most
// reservations are one compare-and-swap in the process's own lease counter
// (internal/ledger/lease_counter.h); when that is empty, one message to the daemon. Any thread may
// call. What dies here, at any point, leaves nothing locked.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

class Client {
 public:
  // Joins the tenant whose descriptor this process or one above it inherited, or else the one whose
  // cgroup it is in; the environment has no say in it. kNotFound when there is neither; other
  // errors as reserve().
  static Result<std::unique_ptr<Client>> connect(Seconds timeout);
  // The second of these alone, at this socket.
  static Result<std::unique_ptr<Client>> connect_by_cgroup(const std::string& socket,
                                                           Seconds timeout);
  // The same by this descriptor. A process is one client: kConflict when it is one already.
  static Result<std::unique_ptr<Client>> connect(int tenant_page, Seconds timeout);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // To be called before the driver allocates, with what it will take. kExhausted when the tenant's
  // quota would be exceeded; kUnavailable when the daemon did not come back within the timeout;
  // kConflict in a child of fork(), which connects anew.
  Status reserve(int device, std::uint64_t bytes) {
    if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
    if (*fork_marker_ != 0 &&
        regatta_lease_counter_take(&client_page_->lease_counters[device], bytes) != 0)
      return {};
    return reserve_slowly(device, bytes);
  }
  // The same, asked once: for what need not be had now. kExhausted also where others would first
  // have to make room. Still waits for a daemon that is there and does not answer.
  Status try_reserve(int device, std::uint64_t bytes) {
    if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
    return reserve_slowly(device, bytes, Seconds{0}, Seconds{0});
  }
  // The same for calls that must not wait: for the daemon it waits `timeout` at most, for other
  // threads not at all. kTimeout when the daemon does not answer in that time; kConflict when
  // another thread asks it now.
  Status try_reserve_within(Seconds timeout, int device, std::uint64_t bytes);
  // After the driver freed it, or did not allocate.
  void release(int device, std::uint64_t bytes) {
    if (*fork_marker_ != 0)
      regatta_lease_counter_give(&client_page_->lease_counters[device], bytes);
  }

  // Of a tenant whose memory may go to the host: what can be moved is to be `total` in all. Errors
  // as reserve().
  Status lease_swappable(int device, std::uint64_t total);
  // Tells the daemon that residency(device) has changed. Errors as reserve(), without waiting.
  Status notify_residency_changed(int device);
  regatta_residency_state& residency(int device) { return client_page_->residency[device]; }
  regatta_process& process() { return client_page_->process; }
  // Whether the process is on its devices, or leaves them or comes back as a whole.
  bool is_on_devices() const {
    return __atomic_load_n(&client_page_->process.state, __ATOMIC_SEQ_CST) ==
           REGATTA_PROCESS_RUNNING;
  }
  // To be called before the process has memory that no checkpoint can take; waits until it is on
  // its devices. kExhausted when others would have no room beside it; other errors as reserve().
  Status pin();
  bool is_overcommitted() const {
    return (__atomic_load_n(&tenant_->flags, __ATOMIC_RELAXED) & REGATTA_TENANT_OVERCOMMIT) != 0;
  }

  // One more session of a codec. kExhausted when its tenant has no more of them; else as reserve().
  Status open_session(int device, regatta_engine engine);
  void close_session(int device, regatta_engine engine);

  // A connection that only notifies (RequestType::kNotify): to say that our regatta_work has
  // changed. Brings the pages of the daemon of now. Errors as reserve().
  Result<os::UniqueFd> open_event_connection();
  regatta_work& work(int device) { return client_page_->works[device]; }
  regatta_engine_usage& engine_usage(int device, regatta_engine engine) {
    return client_page_->engine_usage[device][engine];
  }
  bool is_joined_process() const { return *fork_marker_ != 0; }  // not a child of fork()

  // Of the tenant, kept up by the daemon. What is leased includes what its clients have spare.
  const regatta_tenant_page& tenant() const { return *tenant_; }
  std::uint64_t spare(int device) const {
    return regatta_lease_word_spare(
        regatta_lease_counter_read(&client_page_->lease_counters[device]));
  }

 private:
  explicit Client(Seconds timeout) : timeout_(timeout) {}
  static Error no_device(int device);
  static Result<std::unique_ptr<Client>> connect_to(const std::string& socket, int tenant_page,
                                                    Seconds timeout);
  Status open_pages(int tenant_page);
  Status handshake() { return handshake(timeout_); }
  Status handshake(Seconds timeout);
  Status accept_pages(DaemonMessage& message);
  Status ask_for(const ClientRequest& request, bool* is_later = nullptr);
  Status ask_until_answered(const ClientRequest& request);
  Error refused(const ClientRequest& request) const;
  Status reserve_slowly(int device, std::uint64_t bytes);
  Status reserve_slowly(int device, std::uint64_t bytes, Seconds timeout, Seconds room_timeout);
  Result<bool> take_or_lease(int device, std::uint64_t bytes, bool* is_later);

  const Seconds timeout_;
  regatta_tenant_page* tenant_ = nullptr;  // read-only
  regatta_client_page* client_page_ = nullptr;
  volatile unsigned* fork_marker_ = nullptr;  // 0 in a child of fork()
  std::string path_;                          // of the daemon's socket
  std::mutex mutex_;
  os::UniqueFd socket_;          // guarded by mutex_
  os::UniqueFd client_page_fd_;  // guarded by mutex_
};

}  // namespace regatta::sharing
