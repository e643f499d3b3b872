// sharing/messages.h: what goes over the daemon's socket (unix, seqpacket): one message asks,
// one answers. Clients ask with a ClientRequest; operators with JSON, which begins with '{'
// (control.h).
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
  kHandshake =
      1,  // with the token; a client that has lease counters already sends their descriptor along
  kLease = 2,  // `least` bytes more on `device`
  // On a second connection of a client, with the token: it notifies the daemon there from now on.
  kEventConnection = 3,
  kNotify = 4,      // what the client does on `device` has changed (regatta_work); no answer
  kFindTenant = 5,  // the page of the tenant whose cgroup the process is in
  // The client's memory on `device` that can be moved is to be `least` in all: more or less than
  // before. Asked again, it changes nothing.
  kLeaseSwappable = 6,
  kResidencyChanged = 7,  // regatta_residency_state of `device` has changed; no answer
  // One session more of an engine (`least`, a regatta_engine) of `device`; done when
  // regatta_engine_usage says so.
  kOpenSession = 8,
  // The client is about to have memory that no checkpoint of it can take: from now on it stays on
  // its devices. Later, while it is not there; refused where others would have no room beside what
  // it has.
  kPin = 9,
};

struct ClientRequest {
  RequestType type = RequestType::kHandshake;
  std::uint32_t device = 0;
  std::uint64_t least = 0;
  unsigned char token[16] = {};
};

enum class ReplyStatus : std::uint32_t {
  kGranted =
      1,  // to a handshake: with the tenant's page and, when they are new, the lease counters'
  kRefused = 2,     // the quota would be exceeded
  kFailed = 3,      // `text` says why, `code` is a Code
  kRetryLater = 4,  // others are asked to make room on the device: ask again
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
  pid_t sender = 0;  // as the kernel says; 0 unless the socket has SO_PASSCRED
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
