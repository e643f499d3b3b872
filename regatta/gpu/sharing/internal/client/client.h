// sharing/internal/client/client.h: a process of a tenant, as it asks for device memory. Most
// reservations are one compare-and-swap in the process's own purse (internal/ledger/purse.h); when
// that is empty, one message to the daemon. Any thread may call. What dies here, at any point,
// leaves nothing locked.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

class Client {
 public:
  // Joins the tenant whose descriptor this process or one above it inherited, or else the one whose
  // cgroup it is in; the environment has no say in it. kNotFound when there is neither; other
  // errors as reserve().
  static Result<std::unique_ptr<Client>> connect(Seconds patience);
  // The second of these alone, at this socket.
  static Result<std::unique_ptr<Client>> connect_by_cgroup(const std::string& socket,
                                                           Seconds patience);
  // The same by this descriptor. A process is one client: kConflict when it is one already.
  static Result<std::unique_ptr<Client>> connect(int tenant_page, Seconds patience);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // To be called before the driver allocates, with what it will take. kExhausted when the tenant's
  // quota would be exceeded; kUnavailable when the daemon did not come back within the patience;
  // kConflict in a child of fork(), which connects anew.
  Status reserve(int device, std::uint64_t bytes) {
    if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
    if (*here_ != 0 && regatta_purse_take(&purses_->purses[device], bytes) != 0) return {};
    return reserve_slowly(device, bytes);
  }
  // The same, asked once: for what need not be had now. kExhausted also where others would first
  // have to make room. Still waits for a daemon that is there and does not answer.
  Status try_reserve(int device, std::uint64_t bytes) {
    if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
    return reserve_slowly(device, bytes, Seconds{0}, Seconds{0});
  }
  // The same for calls that must not wait: for the daemon it waits `patience` at most, for other
  // threads not at all. kTimeout when the daemon does not answer in that time; kConflict when
  // another thread asks it now.
  Status try_reserve_within(Seconds patience, int device, std::uint64_t bytes);
  // After the driver freed it, or did not allocate.
  void release(int device, std::uint64_t bytes) {
    if (*here_ != 0) regatta_purse_give(&purses_->purses[device], bytes);
  }

  // Of a tenant whose memory may go to the host: what can be moved is to be `total` in all. Errors
  // as reserve().
  Status lease_movable(int device, std::uint64_t total);
  // Tells the daemon that residence(device) has changed. Errors as reserve(), without waiting.
  Status tell_moved(int device);
  regatta_residence& residence(int device) { return purses_->residences[device]; }
  regatta_process& process() { return purses_->process; }
  // Whether the process is on its devices, or leaves them or comes back as a whole.
  bool is_on_devices() const {
    return __atomic_load_n(&purses_->process.place, __ATOMIC_SEQ_CST) == REGATTA_HERE;
  }
  // To be called before the process has memory that no checkpoint can take; waits until it is on
  // its devices. kExhausted when others would have no room beside it; other errors as reserve().
  Status bind();
  bool is_overcommitted() const {
    return (__atomic_load_n(&tenant_->flags, __ATOMIC_RELAXED) & REGATTA_TENANT_OVERCOMMIT) != 0;
  }

  // One more session of a codec. kExhausted when its tenant has no more of them; else as reserve().
  Status open_session(int device, regatta_engine engine);
  void close_session(int device, regatta_engine engine);

  // A connection that only rings (Ask::kRing): to say that our regatta_work has changed. Brings the
  // pages of the daemon of now. Errors as reserve().
  Result<os::UniqueFd> open_bell();
  regatta_work& work(int device) { return purses_->works[device]; }
  regatta_feed& feed(int device, regatta_engine engine) { return purses_->feeds[device][engine]; }
  bool is_here() const { return *here_ != 0; }  // not a child of fork()

  // Of the tenant, kept up by the daemon. What is leased includes what its clients have spare.
  const regatta_tenant_page& tenant() const { return *tenant_; }
  std::uint64_t spare(int device) const {
    return regatta_word_spare(regatta_purse_read(&purses_->purses[device]));
  }

 private:
  explicit Client(Seconds patience) : patience_(patience) {}
  static Error no_device(int device);
  static Result<std::unique_ptr<Client>> connect_to(const std::string& socket, int tenant_page,
                                                    Seconds patience);
  Status open_pages(int tenant_page);
  Status say_hello() { return say_hello(patience_); }
  Status say_hello(Seconds patience);
  Status accept_pages(Message& message);
  Status ask_for(const Request& request, bool* is_later = nullptr);
  Status ask_until_answered(const Request& request);
  Error refused(const Request& request) const;
  Status reserve_slowly(int device, std::uint64_t bytes);
  Status reserve_slowly(int device, std::uint64_t bytes, Seconds patience, Seconds room_patience);
  Result<bool> take_or_lease(int device, std::uint64_t bytes, bool* is_later);

  const Seconds patience_;
  regatta_tenant_page* tenant_ = nullptr;  // read-only
  regatta_purses_page* purses_ = nullptr;
  volatile unsigned* here_ = nullptr;  // 0 in a child of fork()
  std::string path_;                   // of the daemon's socket
  std::mutex mutex_;
  os::UniqueFd socket_;       // guarded by mutex_
  os::UniqueFd purses_page_;  // guarded by mutex_
};

}  // namespace regatta::sharing
