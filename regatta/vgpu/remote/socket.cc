#include "regatta/vgpu/remote/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "regatta/os/errno_text.h"

namespace regatta::vgpu::remote {
namespace {

constexpr int kDialPatienceMs = 5000;

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<Found> resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                   address.port.c_str(), &hints, &found);
  if (failed != 0)
    return Error{Code::kInvalidInput, address.host + ": " + ::gai_strerror(failed) +
                                          "; name a host and a port, like gpu-1:7000"};
  return Found(found, ::freeaddrinfo);
}

bool connect_in_time(int fd, const addrinfo& to) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waiting{fd, POLLOUT, 0};
  if (::poll(&waiting, 1, kDialPatienceMs) != 1) {
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

Error cannot_listen(const std::string& address, int number) {
  Error error = os::errno_error(address + ": cannot listen there", number);
  if (number == EADDRNOTAVAIL) error.code = Code::kInvalidInput;
  error.message += "; give --listen an address of this machine and a free port";
  return error;
}

void set(int fd, int level, int option, int value) {
  static_cast<void>(::setsockopt(fd, level, option, &value, sizeof value));
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && colon + 1 < text.size() &&
                        text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!has_port)
    return Error{Code::kInvalidInput, text + ": give a host and a port, like gpu-1:7000"};
  const std::string port = text.substr(colon + 1);
  if (port.size() > 5 || std::stoul(port) > 65535)
    return Error{Code::kInvalidInput,
                 text + ": there is no port " + port + "; give one up to 65535, like gpu-1:7000"};
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return Address{host, port};
}

void tune_socket(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

void watch_silence(int fd) {
  const timeval often{.tv_sec = 1};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof often));
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &often, sizeof often));
}

Result<os::UniqueFd> dial_tcp(const std::string& address) {
  REGATTA_TRY(parsed, parse_address(address));
  REGATTA_TRY(found, resolve(parsed, 0));
  errno = ENOENT;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    os::UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || !connect_in_time(fd.get(), *one)) continue;
    int off = 0;
    static_cast<void>(::ioctl(fd.get(), FIONBIO, &off));
    tune_socket(fd.get());
    watch_silence(fd.get());
    return fd;
  }
  return Error{Code::kUnavailable, address + ": no GPU server answers there (" + os::errno_text() +
                                       "); start one with regatta gpu serve"};
}

Result<os::UniqueFd> listen_tcp(const std::string& address) {
  REGATTA_TRY(parsed, parse_address(address));
  REGATTA_TRY(found, resolve(parsed, AI_PASSIVE));
  os::UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return os::errno_error("cannot make a socket");
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), 128) != 0)
    return cannot_listen(address, errno);
  return fd;
}

namespace {

// Of this end, in numbers; both empty where it has none.
Address own_end(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::getsockname(fd, any, &size) != 0 ||
      ::getnameinfo(any, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return {host, port};
}

}  // namespace

std::string own_address(int fd) {
  return own_end(fd).host;
}

std::string own_port(int fd) {
  return own_end(fd).port;
}

namespace {

// After a call on the socket that did nothing. The peer may be busy and take nothing for as long as
// it likes, while its kernel answers: TCP_USER_TIMEOUT would end that. Idle connections have
// keepalives.
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

bool send_marked(int fd, Mark mark, std::string_view text) {
  const std::uint32_t head[2] = {static_cast<std::uint32_t>(text.size()), mark};
  return send_both(fd, {reinterpret_cast<const char*>(head), sizeof head}, text);
}

}  // namespace

bool send_text(int fd, std::string_view text) {
  return send_marked(fd, kGood, text);
}

bool send_refusal(int fd, const Error& error) {
  return send_marked(fd, exit_status(error) == 2 ? kWrongInput : kFailed, error.message);
}

Result<std::string> receive_text(int fd, bool is_patient) {
  const Error gone{Code::kUnavailable, "the GPU server closed the connection; see its messages"};
  std::uint32_t head[2] = {};
  if (!receive_all(fd, head, sizeof head, is_patient)) return gone;
  if (head[0] > kLongestText || head[1] > kWrongInput)
    return Error{Code::kInvalidInput, "what came is no message of a GPU server of this version"};
  std::string text(head[0], '\0');
  if (!receive_all(fd, text.data(), text.size(), is_patient)) return gone;
  if (head[1] == kGood) return text;
  return Error{head[1] == kWrongInput ? Code::kInvalidInput : Code::kConflict, text};
}

}  // namespace regatta::vgpu::remote
