#include "regatta/gpu/sharing/internal/client/daemon_notifier.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "regatta/base/os/clock.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kRetryNs = 100'000'000;
constexpr std::uint64_t kDeadNs = 1'000'000'000;

}  // namespace

void DaemonNotifier::notify() {
  const int connection = connection_.get();
  if (connection < 0) return;
  const ClientRequest request{.type = RequestType::kNotify,
                              .device = static_cast<std::uint32_t>(device_)};
  const ssize_t sent = ::send(connection, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  // A full socket has an earlier notification, after which the daemon reads the page anyway.
  if (sent < 0 && errno != EAGAIN) connection_.reset();
}

bool DaemonNotifier::is_connected() const {
  return is_connection_alive(connection_);
}

bool DaemonNotifier::reconnect(Mutex& mutex) {
  const std::uint64_t now = os::monotonic_ns();
  connection_.reset();
  if (is_connecting_ || now < next_try_ns_) return false;
  is_connecting_ = true;
  mutex.unlock();
  auto connection = client_.open_event_connection();
  const bool is_dead = !connection && client_.is_daemon_dead();
  if (!connection && !is_dead) client_.tell(connection.error());
  mutex.lock();
  is_connecting_ = false;
  next_try_ns_ = os::monotonic_ns() + kRetryNs;
  if (!is_dead) dead_since_ns_ = 0;
  if (is_dead && dead_since_ns_ == 0) dead_since_ns_ = now;
  if (!connection) return false;
  connection_ = KnownFd(std::move(*connection));
  return true;
}

bool DaemonNotifier::is_gate_open_without_daemon() const {
  return dead_since_ns_ != 0 && client_.pages().tenant().opens_when_lost != 0 &&
         os::monotonic_ns() - dead_since_ns_ >= kDeadNs;
}

}  // namespace regatta::sharing
