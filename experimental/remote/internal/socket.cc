#include "experimental/remote/internal/socket.h"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"

namespace regatta::remote {
namespace {

constexpr Seconds kConnectTimeout{5};

}  // namespace

void set_silence_timeout(int fd) {
  const timeval often{.tv_sec = 1};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof often));
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &often, sizeof often));
}

Result<os::UniqueFd> connect_tcp(const std::string& address) {
  REGATTA_TRY(parsed, os::parse_host_port(address));
  auto fd = os::connect_tcp(parsed, kConnectTimeout);
  if (fd) set_silence_timeout(fd->get());
  if (!fd && fd.error().code == Code::kUnavailable)
    return Error{Code::kUnavailable,
                 fd.error().message + "; start a GPU server with regatta gpu serve"};
  return fd;
}

Result<os::UniqueFd> listen_tcp(const std::string& address) {
  REGATTA_TRY(parsed, os::parse_host_port(address));
  return os::listen_tcp(parsed);
}

namespace {

// After a call on the socket that moved nothing. A busy peer may accept nothing for any time while
// its kernel answers, which TCP_USER_TIMEOUT would end. Idle connections have keepalives.
bool may_go_on(int fd, bool is_patient) {
  constexpr std::uint32_t kSilenceMs = 7000;
  if (errno == EINTR) return true;
  if ((errno != EAGAIN && errno != EWOULDBLOCK) || !is_patient) return false;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  const bool is_asking = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
  return !is_asking || info.tcpi_last_ack_recv < kSilenceMs;
}

}  // namespace

bool wait_for_socket(int fd, short events, std::optional<Seconds> deadline) {
  constexpr Seconds kLookAgain{1};
  for (;;) {
    Seconds left = kLookAgain;
    if (deadline) left = std::min(left, Seconds{deadline->value - os::monotonic_now().value});
    if (left.value <= 0) return false;
    pollfd waiting{fd, events, 0};
    const int came = ::poll(&waiting, 1, static_cast<int>(std::ceil(1e3 * left.value)));
    if (came > 0) return (waiting.revents & POLLNVAL) == 0;
    if (came == 0) errno = EAGAIN;
    if (!may_go_on(fd, true)) return false;
  }
}

bool send_all(int fd, const void* bytes, std::size_t count) {
  return send_both(fd, {static_cast<const char*>(bytes), count}, {});
}

bool send_both(int fd, std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    iovec parts[2] = {{const_cast<char*>(first.data()), first.size()},
                      {const_cast<char*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && may_go_on(fd, true)) continue;
    if (sent <= 0) return false;
    const std::size_t of_first = std::min(first.size(), static_cast<std::size_t>(sent));
    first.remove_prefix(of_first);
    second.remove_prefix(static_cast<std::size_t>(sent) - of_first);
  }
  return true;
}

bool receive_all(int fd, void* into, std::size_t count, bool is_patient) {
  auto* at = static_cast<std::byte*>(into);
  while (count > 0) {
    const std::size_t came = receive_some(fd, at, count, is_patient);
    if (came == 0) return false;
    at += came;
    count -= came;
  }
  return true;
}

std::size_t receive_some(int fd, void* into, std::size_t count, bool is_patient) {
  for (;;) {
    const ssize_t came = ::recv(fd, into, count, 0);
    if (came < 0 && may_go_on(fd, is_patient)) continue;
    return came > 0 ? static_cast<std::size_t>(came) : 0;
  }
}

namespace {

enum Mark : std::uint32_t { kFailed, kGood, kWrongInput };

bool send_marked(const SendParts& send, Mark mark, std::string_view text) {
  const std::uint32_t head[2] = {static_cast<std::uint32_t>(text.size()), mark};
  return send({reinterpret_cast<const char*>(head), sizeof head}, text);
}

}  // namespace

bool send_text_by(const SendParts& send, std::string_view text) {
  return send_marked(send, kGood, text);
}

bool send_refusal_by(const SendParts& send, const Error& error) {
  return send_marked(send, exit_status(error) == 2 ? kWrongInput : kFailed, error.message);
}

Result<std::string> receive_text_by(const ReceiveAll& receive) {
  const Error gone{Code::kUnavailable, "the GPU server closed the connection; see its messages"};
  std::uint32_t head[2] = {};
  if (!receive(head, sizeof head)) return gone;
  if (head[0] > kLongestText || head[1] > kWrongInput)
    return Error{Code::kInvalidInput,
                 "what came is no message of a GPU server of this version, or only one end is "
                 "without encryption (--plain)"};
  std::string text(head[0], '\0');
  if (!receive(text.data(), text.size())) return gone;
  if (head[1] == kGood) return text;
  return Error{head[1] == kWrongInput ? Code::kInvalidInput : Code::kConflict, text};
}

bool send_text(int fd, std::string_view text) {
  return send_text_by([fd](auto head, auto body) { return send_both(fd, head, body); }, text);
}

bool send_refusal(int fd, const Error& error) {
  return send_refusal_by([fd](auto head, auto body) { return send_both(fd, head, body); }, error);
}

Result<std::string> receive_text(int fd, bool is_patient) {
  return receive_text_by(
      [&](void* into, std::size_t count) { return receive_all(fd, into, count, is_patient); });
}

}  // namespace regatta::remote
