#include "regatta/gpu/sharing/internal/client/daemon_notifier.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "regatta/base/os/clock.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kRetryNs = 100'000'000;
constexpr std::uint64_t kLostNs = 1'000'000'000;

}  // namespace

void DaemonNotifier::notify() {
  if (!connection_) return;
  const ClientRequest request{.type = RequestType::kNotify,
                              .device = static_cast<std::uint32_t>(device_)};
  const ssize_t sent =
      ::send(connection_.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  // A full socket has an earlier notification, after which the daemon reads the page anyway.
  if (sent < 0 && errno != EAGAIN) connection_.reset();
}

bool DaemonNotifier::is_connected() const {
  if (!connection_) return false;
  char byte = 0;
  const ssize_t got = ::recv(connection_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool DaemonNotifier::reconnect(Mutex& mutex) {
  const std::uint64_t now = os::monotonic_ns();
  connection_.reset();
  if (lost_since_ns_ == 0) lost_since_ns_ = now;
  if (is_connecting_ || now < next_try_ns_) return false;
  is_connecting_ = true;
  mutex.unlock();
  auto connection = client_.open_event_connection();
  mutex.lock();
  is_connecting_ = false;
  next_try_ns_ = os::monotonic_ns() + kRetryNs;
  if (!connection) return false;
  connection_ = std::move(*connection);
  lost_since_ns_ = 0;
  return true;
}

bool DaemonNotifier::is_gate_open_without_daemon() const {
  return lost_since_ns_ != 0 && client_.pages().tenant().opens_when_lost != 0 &&
         os::monotonic_ns() - lost_since_ns_ >= kLostNs;
}

}  // namespace regatta::sharing
