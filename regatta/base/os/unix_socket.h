// os/unix_socket.h: sockets that have a path in the file system. Source: unix(7).
#pragma once

#include <string>

#include <sys/socket.h>
#include <sys/un.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

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

}  // namespace regatta::os
