// sharing/internal/client/daemon_notifier.h: notifies the daemon that the work of this process on a
// device has changed, and knows since when the daemon is dead. The gate's mutex guards it.
#pragma once

#include <cstdint>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/client/known_fd.h"

namespace regatta::sharing {

class DaemonNotifier {
 public:
  // `client` outlives this object.
  DaemonNotifier(Client& client, int device) : client_(client), device_(device) {}

  // Without a connection it does nothing. Never blocks.
  void notify();
  bool is_connected() const;
  // Connects anew unless another thread does or an attempt has just failed. Releases `mutex`
  // meanwhile. True when it has connected: the daemon may be another one than before.
  bool reconnect(Mutex& mutex) REGATTA_REQUIRES(mutex);
  // Whether launches continue without a daemon: it has been known to be dead for a second, and the
  // operator allows it. A daemon that hangs, and a process that cannot ask for reasons of its own,
  // leave the gate to the tenant's page.
  bool is_gate_open_without_daemon() const;

 private:
  Client& client_;
  const int device_;
  KnownFd connection_;
  bool is_connecting_ = false;
  std::uint64_t dead_since_ns_ = 0;  // 0: it is not known to be dead
  std::uint64_t next_try_ns_ = 0;
};

}  // namespace regatta::sharing
