// sharing/messages.h: messages over the daemon's socket (unix, seqpacket): one request, one reply.
// Clients send a ClientRequest; operators send JSON, which begins with '{' (control.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

// In a folder of its own, which containers mount: the socket is another file after each start of
// the daemon.
inline constexpr const char* kDefaultSocket = "/run/regatta-gpu/socket";

enum class RequestType : std::uint32_t {
  // With the token; a client that has a page sends its descriptor along, or says kPageIsMapped.
  // With kWithTenantPage, the last descriptor is that of the tenant's page.
  kHandshake = 1,
  kLease = 2,  // at least `least` more bytes on `device`
  // With the token, on a second connection of a client, which notifies the daemon there from now
  // on.
  kEventConnection = 3,
  kNotify = 4,      // regatta_work of `device` has changed; no reply
  kFindTenant = 5,  // requests the page of the tenant whose cgroup the process is in
  // Sets the client's swappable memory on `device` to `least`. Idempotent.
  kLeaseSwappable = 6,
  kResidencyChanged = 7,  // regatta_residency_state of `device` has changed; no reply
  // Opens a session of an engine (`least`, a regatta_engine) of `device`; regatta_engine_usage
  // shows it.
  kOpenSession = 8,
  // The client is about to get memory that no checkpoint can take, so it stays on its devices from
  // now on. kRetryLater while it is not on them; kRefused when others would have no room beside it.
  kPin = 9,
};

// Flags in `least` of a handshake. The client has its page mapped, and the program has closed the
// descriptor; the descriptor of the tenant's page comes along.
inline constexpr std::uint64_t kPageIsMapped = 1;
inline constexpr std::uint64_t kWithTenantPage = 2;

struct ClientRequest {
  RequestType type = RequestType::kHandshake;
  std::uint32_t device = 0;
  std::uint64_t least = 0;
  unsigned char token[16] = {};
};

enum class ReplyStatus : std::uint32_t {
  // To a handshake: with the tenant's page and, when it is new, the client page.
  kGranted = 1,
  kRefused = 2,  // the quota would be exceeded
  kFailed = 3,   // `text` is the reason, `code` a Code
  // Others have to make room, on the device or for a connection; repeat the request.
  kRetryLater = 4,
  // To a handshake, with the reason: repeat it with the descriptor of the tenant's page.
  kProveTenant = 5,
};

struct ClientReply {
  ReplyStatus status = ReplyStatus::kGranted;
  std::uint32_t code = 0;
  char text[248] = {};
};
static_assert(sizeof(ClientRequest) == 32 && sizeof(ClientReply) == 256, "other builds send these");

ClientReply failed(const Error& error);
Error to_error(const ClientReply& reply);

struct DaemonMessage {
  std::string bytes;  // "" at the end of the connection
  std::array<os::UniqueFd, 2> fds;
  bool lacks_fds = false;  // this process had no descriptor left for all that came
  pid_t sender = 0;        // from the kernel; 0 unless the socket has SO_PASSCRED
};

// Connects to the daemon; calls on the socket give up after `timeout`.
Result<os::UniqueFd> connect_to_daemon(const std::string& path, Seconds timeout);
void set_socket_timeout(int socket, Seconds timeout);

// Sends one message and copies of up to two descriptors (-1: none).
Status send_message(int socket, std::string_view bytes, std::array<int, 2> fds = {-1, -1});

// kTimeout when there is no message.
Result<DaemonMessage> receive_message(int socket, std::size_t longest);

template <typename T>
std::string_view as_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace regatta::sharing
