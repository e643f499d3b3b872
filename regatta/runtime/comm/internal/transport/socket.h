// comm/internal/transport/socket.h: the sockets of the bootstrap. All are non-blocking and
// close-on-exec.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {

struct TcpListener {
  os::UniqueFd fd;
  std::uint16_t port = 0;
};
// Listens on a free port of the numeric address; kInvalidInput when it is not numeric.
Result<TcpListener> listen_tcp(const std::string& address);
// Listens on an abstract unix name (no file): it ends with the descriptor.
Result<os::UniqueFd> listen_unix(const std::string& name);
// A unique name.
std::string random_unix_name();

// One end of a TCP connection: a numeric address and a port.
struct TcpAddress {
  std::string address;
  std::uint16_t port = 0;
};
// Begins to connect; the descriptor polls writable at the end, and connect_error() has the outcome.
// `from`: port 0 is any free one; kInvalidInput for another port unless the address is of the
// family of `to`. `hops`: only the first `hops` - 1 routers forward its packets, the next one
// replies that their time is exceeded (RFC 792); 0: no limit.
Result<os::UniqueFd> connect_tcp(const TcpAddress& from, const TcpAddress& to, int hops = 0);
Result<os::UniqueFd> connect_unix(const std::string& name);
int connect_error(int fd);  // errno value, 0 when connected
// The outcome of an attempt with few hops, once its descriptor polls ready; read once.
struct AttemptEnd {
  bool is_connected = false;
  std::string router;  // where the hops ended; "" when the attempt ended in another manner
};
AttemptEnd end_of_attempt(int fd);
// The port that it sends from.
std::uint16_t local_port(int fd);
// Removes the limit of hops.
void lift_hop_limit(int fd);

// send() and recv() of a unix socket with descriptors that travel beside the first byte, at most
// kFdsMax of them.
inline constexpr std::size_t kFdsMax = 4;
ssize_t send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
ssize_t receive_with_fds(int socket, std::span<std::byte> bytes, std::vector<os::UniqueFd>& fds);

// The descriptors that poll() found ready.
class ReadyFds {
 public:
  // Waits until one of them is ready, at most `limit`.
  void wait(std::vector<pollfd>& fds, Seconds limit);
  bool has(int fd) const { return std::binary_search(ready_.begin(), ready_.end(), fd); }

 private:
  std::vector<int> ready_;  // ascending
};

// The process that opened the other end of a unix socket; 0: it is in no pid namespace of this
// process.
pid_t peer_pid(int fd);

// "10.0.0.2 port 4711", or "process 123" for a unix socket.
std::string describe_peer(int fd);

}  // namespace regatta::comm
