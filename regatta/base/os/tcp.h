// os/tcp.h: TCP connections between machines, named as people write them: "HOST:PORT".
// Source: tcp(7), getaddrinfo(3).
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

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

// Of this end and of the other one, in numbers; empty where it has none.
HostPort local_endpoint(int fd);
HostPort peer_endpoint(int fd);

// "10.0.0.1:7000", "[fd00::1]:7000".
std::string to_string(const HostPort& end);

}  // namespace regatta::os
