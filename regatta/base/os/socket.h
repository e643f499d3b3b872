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

// TCP connections between machines, named as people write them: "HOST:PORT".
// Source: tcp(7), getaddrinfo(3).

struct HostPort {
  std::string host;  // "": any address of this machine
  std::string port;
};

// "gpu-1:7000", "10.0.0.1:7000", "[fd00::1]:7000", ":7000". kInvalidInput says what a right one
// looks like.
Result<HostPort> parse_host_port(const std::string& text);

// Whether the host has an address. kInvalidInput when there is no such host, kUnavailable where
// nobody can tell now; it may take the name servers seconds to say so.
Status resolve_host(const HostPort& end);

// Blocking and close-on-exec, without delay, and watched as enable_keepalive() does. kInvalidInput
// when there is no such host, else kUnavailable; the error names host, port and the system's
// reason.
Result<UniqueFd> connect_tcp(const HostPort& to, Seconds timeout);

// Close-on-exec; port "0": a free one. kInvalidInput when the address is none of this machine.
Result<UniqueFd> listen_tcp(const HostPort& at, int backlog = 128);

// No delay, and an end to a connection that is idle and whose peer's machine is gone, after 7 s.
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

// A connection that is close-on-exec; `type`: SOCK_STREAM or SOCK_SEQPACKET. The error names the
// path and the system's reason: kNotFound where nothing has the name, kUnavailable where nobody
// listens, or takes no connection within a second.
Result<UniqueFd> connect_unix(const std::string& path, int type = SOCK_STREAM);

// Listens at `path`, close-on-exec and non-blocking; `type` as above. Takes the place of a socket
// that nobody listens at. kConflict when somebody does, kInvalidInput when something that is no
// socket has the name.
Result<UniqueFd> listen_unix(const std::string& path, int type = SOCK_STREAM);

// The lines of a file or a pipe, as they come.

class LineReader {
 public:
  // A line longer than `line_max` comes in pieces of one byte more, as LineSplitter gives it.
  // `name` is for errors.
  LineReader(UniqueFd fd, std::string name, std::size_t line_max)
      : fd_(std::move(fd)), name_(std::move(name)), lines_(line_max) {}

  // Fails where there is no such file, or a folder; the error names it.
  static Result<LineReader> open(const std::string& path, std::size_t line_max);

  // Waits for the next line; without its end. None behind the last one, and soon once `stop` is
  // set, whatever has come by then.
  Result<std::optional<std::string>> next(const std::atomic<bool>& stop);

 private:
  Result<bool> read_more(const std::atomic<bool>& stop);

  UniqueFd fd_;
  std::string name_;
  LineSplitter lines_;
  bool is_over_ = false;
};

}  // namespace regatta::os
