#include "regatta/gpu/sharing/internal/client/client.h"

#include <algorithm>
#include <string>

#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/client/tenant_page.h"

namespace regatta::sharing {
namespace {

constexpr Seconds kRetry{0.001};
constexpr Seconds kRetryMost{0.02};
// The longest wait for others to make room: every tenant's stay on the device ends sooner, and so
// does the queue.
constexpr Seconds kRoomPatience{7200.0};

Error was_forked() {
  return {Code::kConflict, "process " + std::to_string(::getpid()) +
                               ": was forked from a client of the daemon; connect anew"};
}

// Others make room meanwhile, or this process itself, which may need the lock.
void wait_unlocked(MutexLock& lock, Seconds& pause) REGATTA_NO_THREAD_SAFETY_ANALYSIS {
  lock.unlock();
  os::sleep_for(pause);
  pause = std::min(Seconds{2 * pause.value}, kRetryMost);
  lock.lock();
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(Seconds timeout) {
  const auto page = find_tenant_page();
  if (page) return connect(*page, timeout);
  if (page.error().code != Code::kNotFound) return page.error();
  // On a machine that never had a daemon the program does not wait for one.
  const std::string socket = kDefaultSocket;
  const std::string folder = socket.substr(0, socket.rfind('/'));
  if (::access(folder.c_str(), X_OK) != 0) return page.error();
  return connect_by_cgroup(kDefaultSocket, timeout);
}

Result<std::unique_ptr<Client>> Client::connect_by_cgroup(const std::string& socket,
                                                          Seconds timeout) {
  REGATTA_TRY(page, find_tenant_by_cgroup(socket, timeout));
  return connect_to(socket, page.get(), timeout);
}

Result<std::unique_ptr<Client>> Client::connect(int tenant_page, Seconds timeout) {
  return connect_to("", tenant_page, timeout);
}

Result<std::unique_ptr<Client>> Client::connect_to(const std::string& socket, int tenant_page,
                                                   Seconds timeout) {
  std::unique_ptr<Client> client(new Client(timeout));
  {
    const MutexLock lock(client->mutex_);
    client->connection_.set_path(socket);
  }
  REGATTA_TRY_DO(client->pages_.map_tenant(tenant_page));
  REGATTA_TRY_DO(client->reserve_slowly(0, 0));
  return client;
}

Error Client::no_device(int device) {
  return {Code::kInvalidInput, "GPU " + std::to_string(device) + ": there is none of this number"};
}

Result<os::UniqueFd> Client::open_event_connection() {
  if (!is_joined_process()) return was_forked();
  const MutexLock lock(mutex_);
  // A connection that is open shows that the daemon lives, wherever this process looks for it.
  if (!connection_.is_alive()) {
    connection_.close();
    REGATTA_TRY_DO(shake_hands(timeout_));
  }
  spare_.release();
  auto connection = connection_.open_event_connection(timeout_);
  spare_.fill(pages_.client_page_fd());
  return connection;
}

Status Client::shake_hands(Seconds timeout) {
  spare_.release();
  const Status status = connection_.handshake(timeout);
  spare_.fill(pages_.client_page_fd());
  return status;
}

bool Client::is_daemon_dead() {
  if (!mutex_.try_lock()) return false;  // another thread is waiting for it
  bool is_dead = false;
  if (!connection_.is_alive()) {
    spare_.release();
    is_dead = sharing::is_daemon_dead(connection_.path());
    spare_.fill(pages_.client_page_fd());
  }
  mutex_.unlock();
  return is_dead;
}

void Client::tell(const Error& why) {
  if (const Listener listener = listener_.exchange(nullptr)) listener(why);
}

Status Client::request_until_answered(const ClientRequest& request) {
  if (!is_joined_process()) return was_forked();
  MutexLock lock(mutex_);
  const Seconds begin = os::monotonic_now();
  Seconds end = begin + timeout_;
  Seconds pause = kRetry;
  for (;;) {
    Status status;
    bool is_later = false;
    if (!connection_.is_open()) status = shake_hands(timeout_);
    if (status) status = connection_.request(request, &is_later);
    if (is_later && os::monotonic_now() < begin + kRoomPatience) {
      wait_unlocked(lock, pause);
      end = os::monotonic_now() + timeout_;
      continue;
    }
    if (status || !DaemonConnection::is_lost(status.error())) return status;
    connection_.close();
    if (os::monotonic_now() > end) return status;
    os::sleep_for(kRetry);
  }
}

Status Client::reserve_slowly(int device, std::uint64_t bytes) {
  return reserve_slowly(device, bytes, timeout_, kRoomPatience);
}

// True: taken from the lease counter. False: the counter has enough now, to be taken next.
Result<bool> Client::reserve_or_lease(int device, std::uint64_t bytes, bool* is_later) {
  // A daemon that died before its reply may have put into the counter what it granted.
  if (regatta_lease_counter_take(&pages_.lease_counter(device), bytes) != 0) return true;
  const std::uint64_t spare = pages_.spare(device);
  if (spare >= bytes) return false;
  REGATTA_TRY_DO(connection_.request({.type = RequestType::kLease,
                                      .device = static_cast<std::uint32_t>(device),
                                      .least = bytes - spare},
                                     is_later));
  return false;
}

// Waits at most `timeout` for the daemon and `room_timeout` for others to make room.
Status Client::reserve_slowly(int device, std::uint64_t bytes, Seconds timeout,
                              Seconds room_timeout) {
  if (!is_joined_process()) return was_forked();
  MutexLock lock(mutex_);
  const Seconds begin = os::monotonic_now();
  Seconds end = begin + timeout;
  Seconds pause = kRetry;
  for (;;) {
    Status status;
    bool is_later = false;
    if (!connection_.is_open()) status = shake_hands(timeout_);
    const bool is_connected = status.has_value();
    if (is_connected) {
      const auto is_taken = reserve_or_lease(device, bytes, &is_later);
      if (is_taken && *is_taken) return {};
      if (is_taken) continue;
      status = is_taken.error();
    }
    if (is_later && os::monotonic_now() < begin + room_timeout) {
      wait_unlocked(lock, pause);
      end = os::monotonic_now() + timeout;
      continue;
    }
    if (!DaemonConnection::is_lost(status.error())) return status;
    connection_.close();
    if (os::monotonic_now() > end) return status;
    if (is_connected) continue;  // at once: a new daemon may be there already
    os::sleep_for(kRetry);
  }
}

Status Client::try_reserve_within(Seconds timeout, int device, std::uint64_t bytes) {
  if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
  if (!is_joined_process()) return was_forked();
  if (!mutex_.try_lock()) return Error{Code::kConflict, "another thread waits for the daemon"};
  Status status = reserve_within(timeout, device, bytes);
  mutex_.unlock();
  return status;
}

Status Client::reserve_within(Seconds timeout, int device, std::uint64_t bytes) {
  const Seconds end = os::monotonic_now() + timeout;
  Status status;
  if (connection_.is_open())
    connection_.set_timeout(timeout);
  else
    status = shake_hands(timeout);
  while (status) {
    const auto is_taken = reserve_or_lease(device, bytes, nullptr);
    if (is_taken && *is_taken) break;
    if (!is_taken) status = is_taken.error();
    if (is_taken && os::monotonic_now() > end)
      status = Error{Code::kTimeout, "the daemon does not answer in time"};
  }
  // A late reply would be read as that to the next request.
  if (!status && DaemonConnection::is_lost(status.error())) connection_.close();
  if (connection_.is_open()) connection_.set_timeout(timeout_);
  return status;
}

Status Client::lease_swappable(int device, std::uint64_t total) {
  if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
  return request_until_answered({.type = RequestType::kLeaseSwappable,
                                 .device = static_cast<std::uint32_t>(device),
                                 .least = total});
}

Status Client::pin() {
  return request_until_answered({.type = RequestType::kPin});
}

Status Client::open_session(int device, regatta_engine engine) {
  if (!is_joined_process()) return was_forked();
  if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
  const ClientRequest request{.type = RequestType::kOpenSession,
                              .device = static_cast<std::uint32_t>(device),
                              .least = static_cast<std::uint64_t>(engine)};
  const MutexLock lock(mutex_);
  const Seconds end = os::monotonic_now() + timeout_;
  Status status;
  if (!connection_.is_open()) status = shake_hands(timeout_);
  const unsigned before = pages_.engine_usage(device, engine).sessions;
  for (;;) {
    if (status) status = connection_.request(request);
    // A daemon that died before its reply may have counted the session in the page.
    if (status || pages_.engine_usage(device, engine).sessions != before) return {};
    if (!DaemonConnection::is_lost(status.error())) return status;
    connection_.close();
    if (os::monotonic_now() > end) return status;
    os::sleep_for(kRetry);
    status = shake_hands(timeout_);
  }
}

void Client::close_session(int device, regatta_engine engine) {
  if (!is_joined_process() || device < 0 || device >= REGATTA_DEVICES_MAX) return;
  const MutexLock lock(mutex_);
  unsigned& sessions = pages_.engine_usage(device, engine).sessions;
  if (__atomic_load_n(&sessions, __ATOMIC_RELAXED) != 0)
    __atomic_fetch_sub(&sessions, 1U, __ATOMIC_RELAXED);
}

Status Client::notify_residency_changed(int device) {
  if (!is_joined_process()) return was_forked();
  const MutexLock lock(mutex_);
  if (!connection_.is_open()) REGATTA_TRY_DO(shake_hands(timeout_));
  const Status sent = connection_.send(
      {.type = RequestType::kResidencyChanged, .device = static_cast<std::uint32_t>(device)});
  if (!sent) connection_.close();
  return sent;
}

}  // namespace regatta::sharing
