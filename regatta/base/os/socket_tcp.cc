#include <cerrno>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<Found> resolve(const HostPort& end, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(end.host.empty() ? nullptr : end.host.c_str(), end.port.c_str(),
                                   &hints, &found);
  if (failed == 0) return Found(found, ::freeaddrinfo);
  if (failed == EAI_AGAIN || failed == EAI_FAIL || failed == EAI_MEMORY || failed == EAI_SYSTEM)
    return Error{Code::kUnavailable,
                 end.host + ": no name server tells its address (" + ::gai_strerror(failed) + ")"};
  return Error{Code::kInvalidInput, end.host +
                                        ": no host is called so; correct the name, or make it "
                                        "known in DNS or /etc/hosts"};
}

bool connect_in_time(int fd, const addrinfo& to, Seconds timeout) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waiting{fd, POLLOUT, 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout.value * 1e3)) != 1) {
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

void set(int fd, int level, int option, int value) {
  static_cast<void>(::setsockopt(fd, level, option, &value, sizeof value));
}

HostPort end_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (ask(fd, any, &size) != 0 || ::getnameinfo(any, size, host, sizeof host, port, sizeof port,
                                                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return {host, port};
}

}  // namespace

Result<HostPort> parse_host_port(const std::string& text) {
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
  return HostPort{host, port};
}

Status resolve_host(const HostPort& end) {
  REGATTA_TRY_DO(resolve(end, 0));
  return {};
}

Result<UniqueFd> connect_tcp(const HostPort& to, Seconds timeout) {
  REGATTA_TRY(found, resolve(to, 0));
  errno = ENOENT;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || !connect_in_time(fd.get(), *one, timeout)) continue;
    int off = 0;
    static_cast<void>(::ioctl(fd.get(), FIONBIO, &off));
    enable_keepalive(fd.get());
    return fd;
  }
  return Error{Code::kUnavailable, to_string(to) + ": nobody answers there (" + errno_text() + ")"};
}

Result<UniqueFd> listen_tcp(const HostPort& at, int backlog) {
  REGATTA_TRY(found, resolve(at, AI_PASSIVE));
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_error("cannot make a socket");
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0 && ::listen(fd.get(), backlog) == 0)
    return fd;
  const int number = errno;
  Error error = errno_error(to_string(at) + ": cannot listen there", number);
  if (number == EADDRNOTAVAIL) error.code = Code::kInvalidInput;
  error.message += "; choose an address of this machine and a free port";
  return error;
}

void enable_keepalive(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

HostPort local_endpoint(int fd) {
  return end_of(fd, ::getsockname);
}

HostPort peer_endpoint(int fd) {
  return end_of(fd, ::getpeername);
}

std::string to_string(const HostPort& end) {
  const bool is_v6 = end.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + end.host + "]" : end.host) + ":" + end.port;
}

}  // namespace regatta::os
