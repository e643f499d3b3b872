// sharing/internal/client/daemon_connection.h: a client's connection to the daemon: one request,
// one reply. The daemon may restart at any time; after an error of is_lost() the caller closes the
// connection and connects anew. One thread at a time.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/client/client_pages.h"
#include "regatta/gpu/sharing/internal/client/known_fd.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

class DaemonConnection {
 public:
  // `pages` outlives this object and has the tenant's page mapped before the first handshake.
  explicit DaemonConnection(ClientPages& pages) : pages_(pages) {}

  // "": at the address that the tenant's page names.
  void set_path(const std::string& path) { path_ = path; }
  std::string path() const;
  bool is_open() const { return static_cast<bool>(socket_); }
  void close() { socket_.reset(); }

  // Whether the daemon has the other end still open.
  bool is_alive() const;

  // Connects, identifies this process by the tenant's token and maps the pages of the reply. Calls
  // on the connection give up after `timeout`; so long it also asks again where the daemon has no
  // place (then kExhausted).
  Status handshake(Seconds timeout);
  void set_timeout(Seconds timeout) { set_socket_timeout(socket_.get(), timeout); }

  // kExhausted: refused, or, when it sets `is_later`, to be repeated later. kUnavailable, kTimeout:
  // no reply, so it is unknown whether the daemon granted it.
  Status request(const ClientRequest& request, bool* is_later = nullptr);
  // Without a reply.
  Status send(const ClientRequest& request);
  // A second connection, for notifications only (RequestType::kNotify).
  Result<os::UniqueFd> open_event_connection(Seconds timeout) const;

  // Whether the daemon may be gone and another one may come: then it is worth trying again.
  static bool is_lost(const Error& error) {
    return error.code == Code::kUnavailable || error.code == Code::kTimeout;
  }

 private:
  Status handshake_once(Seconds timeout, ReplyStatus& answer);
  Error refused(const ClientRequest& request) const;

  ClientPages& pages_;
  std::string path_;
  KnownFd socket_;
};

// Whether the daemon at `path` is known to be dead: its socket is gone, or nobody listens at it.
// False where it hangs, and where this process itself cannot ask.
bool is_daemon_dead(const std::string& path);

// Whether the other end of a daemon's connection is open.
bool is_connection_alive(const KnownFd& connection);

// The page of the tenant whose cgroup this process is in, from the daemon at `path`.
Result<os::UniqueFd> find_tenant_by_cgroup(const std::string& path, Seconds timeout);

}  // namespace regatta::sharing
