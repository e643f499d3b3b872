// os/socket.h: sockets by a host and port or by a path, and the lines of a file or pipe.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

// TCP connections between machines by "HOST:PORT". Source: tcp(7), getaddrinfo(3).

struct HostPort {
  std::string host;  // "": any address of this machine
  std::string port;
};

// "gpu-1:7000", "10.0.0.1:7000", "[fd00::1]:7000", ":7000". kInvalidInput gives a right example.
Result<HostPort> parse_host_port(const std::string& text);

// Whether the host has an address. kInvalidInput when there is no such host, kUnavailable when no
// name server answers, which may take seconds.
Status resolve_host(const HostPort& end);

// A connection that is blocking, close-on-exec, and set as by enable_keepalive(). kInvalidInput
// when there is no such host, else kUnavailable; the error names host, port and the system's
// reason.
Result<UniqueFd> connect_tcp(const HostPort& to, Seconds timeout);

// A close-on-exec listener; port "0": a free one. kInvalidInput when the address is none of this
// machine.
Result<UniqueFd> listen_tcp(const HostPort& at, int backlog = 128);

// Sets TCP_NODELAY, and ends an idle connection 7 s after the peer's machine is gone.
void enable_keepalive(int fd);

// The numeric address of this end and of the other one; empty where it has none.
HostPort local_endpoint(int fd);
HostPort peer_endpoint(int fd);

// "10.0.0.1:7000", "[fd00::1]:7000".
std::string to_string(const HostPort& end);

// Sockets that have a path in the file system. Source: unix(7).

struct UnixAddress {
  sockaddr_un value{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
  socklen_t size() const { return sizeof value; }
};

// kInvalidInput when `path` is empty or longer than the name of a socket may be (107 letters).
Result<UnixAddress> unix_address(const std::string& path);

// A close-on-exec connection; `type`: SOCK_STREAM or SOCK_SEQPACKET. The error names the path and
// the system's reason: kNotFound when the path does not exist, kUnavailable when no process
// listens or accepts within a second.
Result<UniqueFd> connect_unix(const std::string& path, int type = SOCK_STREAM);

// Listens at `path`, close-on-exec and non-blocking; `type` as above. Replaces a socket at which no
// process listens. kConflict when one does, kInvalidInput when the path is no socket.
Result<UniqueFd> listen_unix(const std::string& path, int type = SOCK_STREAM);

// For Unix and TCP sockets.

// The next connection that waits at a listening socket, close-on-exec; empty where there is none.
// `flags`: SOCK_NONBLOCK, or 0 for a connection that blocks.
inline UniqueFd accept_connection(const UniqueFd& listener, int flags = SOCK_NONBLOCK) {
  return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | flags));
}

// The lines of a file or a pipe, as they come.

class LineReader {
 public:
  // A line longer than `line_max` is cut as LineSplitter does. `name` is for errors.
  LineReader(UniqueFd fd, std::string name, std::size_t line_max)
      : fd_(std::move(fd)), name_(std::move(name)), lines_(line_max) {}

  // Fails when there is no such file, or when it is a folder; the error names it.
  static Result<LineReader> open(const std::string& path, std::size_t line_max);

  // Waits for the next line and gives it without its newline. Nothing after the last one, and soon
  // after `stop` is set.
  Result<std::optional<std::string>> next(const std::atomic<bool>& stop);

 private:
  Result<bool> read_more(const std::atomic<bool>& stop);

  UniqueFd fd_;
  std::string name_;
  LineSplitter lines_;
  bool is_over_ = false;
};

}  // namespace regatta::os
