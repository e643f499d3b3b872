#include "regatta/gpu/sharing/internal/client/daemon_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"

namespace regatta::sharing {
namespace {

constexpr Seconds kFindTenantRetry{0.001};
constexpr Seconds kPlaceRetry{0.001};
constexpr Seconds kPlaceRetryMost{0.05};

Result<ClientReply> read_reply(const DaemonMessage& message) {
  ClientReply reply;
  if (message.bytes.size() != sizeof reply)
    return Error{Code::kUnavailable, "the daemon went away"};
  std::memcpy(&reply, message.bytes.data(), sizeof reply);
  return reply;
}

// The reply is there although the connection is at its end: a daemon that has no place says so
// before it closes.
bool is_readable(int socket) {
  pollfd entry{socket, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

// Sends `request` and expects kGranted; `answer` is what came in its place.
Result<DaemonMessage> exchange(int socket, const ClientRequest& request,
                               std::array<int, 2> fds = {-1, -1}, ReplyStatus* answer = nullptr) {
  const Status sent = send_message(socket, as_bytes(request), fds);
  if (!sent && !is_readable(socket)) return sent.error();
  auto message = receive_message(socket, sizeof(ClientReply));
  if (!message && is_readable(socket)) message = receive_message(socket, sizeof(ClientReply));
  if (!message) return message.error();
  REGATTA_TRY(reply, read_reply(*message));
  if (answer != nullptr) *answer = reply.status;
  if (reply.status != ReplyStatus::kGranted) return to_error(reply);
  if (message->lacks_fds) {
    return Error{Code::kExhausted,
                 "this process has no descriptor left for the page that the daemon sent; close "
                 "some, or raise its limit (ulimit -n)"};
  }
  return message;
}

ClientRequest request_with_token(RequestType type, const regatta_tenant_page& tenant) {
  ClientRequest request{.type = type};
  std::memcpy(request.token, tenant.token, sizeof request.token);
  return request;
}

Result<os::UniqueFd> find_tenant_once(const std::string& path, Seconds timeout,
                                      ReplyStatus& answer) {
  REGATTA_TRY(socket, connect_to_daemon(path, timeout));
  REGATTA_TRY(message,
              exchange(socket.get(), {.type = RequestType::kFindTenant}, {-1, -1}, &answer));
  if (!message.fds[0]) return Error{Code::kUnavailable, path + ": the daemon gave no page"};
  return std::move(message.fds[0]);
}

}  // namespace

Result<os::UniqueFd> find_tenant_by_cgroup(const std::string& path, Seconds timeout) {
  const Seconds end = os::monotonic_now() + timeout;
  for (;;) {
    ReplyStatus answer = ReplyStatus::kFailed;
    auto page = find_tenant_once(path, timeout, answer);
    const bool may_retry =
        !page && (DaemonConnection::is_lost(page.error()) || answer == ReplyStatus::kRetryLater);
    if (!may_retry || os::monotonic_now() > end) return page;
    os::sleep_for(kFindTenantRetry);
  }
}

bool is_connection_alive(const KnownFd& connection) {
  char byte = 0;
  const int fd = connection.get();
  const ssize_t got = fd < 0 ? 0 : ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool is_daemon_dead(const std::string& path) {
  const auto address = os::unix_address(path);
  const os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return address && fd && ::connect(fd.get(), address->get(), address->size()) != 0 &&
         (errno == ECONNREFUSED || errno == ENOENT);
}

bool DaemonConnection::is_alive() const {
  return is_connection_alive(socket_);
}

// In a container the daemon's socket has another path than the page names.
std::string DaemonConnection::path() const {
  if (!path_.empty()) return path_;
  const auto& socket = pages_.tenant().socket;
  return {socket, ::strnlen(socket, sizeof socket)};
}

Status DaemonConnection::handshake(Seconds timeout) {
  const Seconds end = os::monotonic_now() + timeout;
  for (Seconds pause = kPlaceRetry;; pause = std::min(Seconds{2 * pause.value}, kPlaceRetryMost)) {
    ReplyStatus answer = ReplyStatus::kFailed;
    const Status status = handshake_once(timeout, answer);
    if (status || answer != ReplyStatus::kRetryLater || os::monotonic_now() > end) return status;
    os::sleep_for(pause);
  }
}

Status DaemonConnection::handshake_once(Seconds timeout, ReplyStatus& answer) {
  REGATTA_TRY(socket, connect_to_daemon(path(), timeout));
  ClientRequest request = request_with_token(RequestType::kHandshake, pages_.tenant());
  const int page = pages_.client_page_fd();
  if (page < 0 && pages_.has_client_page()) request.least = kPageIsMapped;
  auto message = exchange(socket.get(), request, {page, -1}, &answer);
  if (!message && answer == ReplyStatus::kProveTenant && pages_.tenant_page_fd() >= 0) {
    request.least |= kWithTenantPage;
    message = exchange(socket.get(), request, {page, pages_.tenant_page_fd()}, &answer);
  }
  if (!message) return message.error();
  REGATTA_TRY_DO(pages_.accept(*message));
  socket_ = KnownFd(std::move(socket));
  return {};
}

Status DaemonConnection::request(const ClientRequest& request, bool* is_later) {
  REGATTA_TRY_DO(send(request));
  REGATTA_TRY(message, receive_message(socket_.get(), sizeof(ClientReply)));
  REGATTA_TRY(reply, read_reply(message));
  if (reply.status == ReplyStatus::kGranted) return {};
  if (reply.status == ReplyStatus::kFailed) return to_error(reply);
  if (reply.status == ReplyStatus::kRetryLater && is_later != nullptr) *is_later = true;
  return refused(request);
}

Status DaemonConnection::send(const ClientRequest& request) {
  return send_message(socket_.get(), as_bytes(request));
}

Result<os::UniqueFd> DaemonConnection::open_event_connection(Seconds timeout) const {
  REGATTA_TRY(socket, connect_to_daemon(path(), timeout));
  REGATTA_TRY_DO(
      exchange(socket.get(), request_with_token(RequestType::kEventConnection, pages_.tenant())));
  return socket;
}

Error DaemonConnection::refused(const ClientRequest& request) const {
  std::string reason = "its memory on GPU " + std::to_string(request.device) +
                       " is used up; free some or raise its --memory";
  if (request.type == RequestType::kOpenSession)
    reason = "its sessions of the codec are all open; close one";
  if (request.type == RequestType::kPin) {
    reason =
        "shared and managed memory would keep this process on its GPU, and others would have no "
        "room beside it; use less memory, or let the others have less";
  }
  return {Code::kExhausted, std::string("tenant ") + pages_.tenant().name + ": " + reason};
}

}  // namespace regatta::sharing
