#include "regatta/runtime/comm/internal/transport/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

constexpr int kBacklog = 4096;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Result<Address> parse_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof *v4;
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof *v6;
    return address;
  }
  return Error{Code::kInvalidInput, "address '" + text + "': write it in numbers, as 10.0.0.1"};
}

Address abstract_address(const std::string& name) {
  Address address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  // A name that begins with a zero byte lives in no file system.
  const std::size_t bytes = std::min(name.size(), sizeof local->sun_path - 1);
  std::memcpy(local->sun_path + 1, name.data(), bytes);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return address;
}

os::UniqueFd make_socket(int family) {
  return os::UniqueFd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

// The replies of routers then wait in the error queue.
void limit_hops(int fd, int family, int hops) {
  const bool is_v6 = family == AF_INET6;
  set_option(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_RECVERR : IP_RECVERR, 1);
  set_option(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_UNICAST_HOPS : IP_TTL, hops);
}

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  const void* bits = address->sa_family == AF_INET ? static_cast<const void*>(&v4->sin_addr)
                                                   : static_cast<const void*>(&v6->sin6_addr);
  inet_ntop(address->sa_family, bits, text, sizeof text);
  return text;
}

bool has_begun(int result) {
  return result == 0 || errno == EINPROGRESS || errno == EINTR;
}

// The router where a packet expired, from the error queue of its socket; "": none.
std::string expired_at(int fd) {
  alignas(cmsghdr) std::array<char, 256> control{};
  std::array<char, 128> packet{};  // the head of the expired packet, not used
  iovec part{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(fd, &message, MSG_ERRQUEUE) < 0) return {};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    const bool is_v4 = header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVERR;
    const bool is_v6 = header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVERR;
    if (!is_v4 && !is_v6) continue;
    const auto* error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(header));
    if ((is_v4 && error->ee_type == ICMP_TIME_EXCEEDED) ||
        (is_v6 && error->ee_type == ICMP6_TIME_EXCEEDED))
      return address_text(SO_EE_OFFENDER(error));
  }
  return {};
}

}  // namespace

Result<TcpListener> listen_tcp(const std::string& address) {
  REGATTA_TRY(local, parse_address(address, 0));
  TcpListener listener{make_socket(local.family()), 0};
  if (!listener.fd) return os::errno_error("make a socket");
  if (bind(listener.fd.get(), local.get(), local.length) != 0 ||
      listen(listener.fd.get(), kBacklog) != 0 ||
      getsockname(listener.fd.get(), local.get(), &local.length) != 0)
    return os::errno_error("listen on " + address);
  // The port lies at the same place in both families.
  listener.port = ntohs(reinterpret_cast<const sockaddr_in*>(local.get())->sin_port);
  return listener;
}

Result<os::UniqueFd> listen_unix(const std::string& name) {
  os::UniqueFd fd = make_socket(AF_UNIX);
  Address local = abstract_address(name);
  if (!fd || bind(fd.get(), local.get(), local.length) != 0 || listen(fd.get(), kBacklog) != 0)
    return os::errno_error("listen on a unix socket");
  return fd;
}

std::string random_unix_name() {
  std::uint64_t bits[2] = {};
  [[maybe_unused]] const ssize_t got = getrandom(bits, sizeof bits, 0);
  return fmt::format("regatta-coll-{:016x}{:016x}", bits[0], bits[1]);
}

Result<os::UniqueFd> connect_tcp(const TcpAddress& from, const TcpAddress& to, int hops) {
  REGATTA_TRY(source, parse_address(from.address, from.port));
  REGATTA_TRY(target, parse_address(to.address, to.port));
  os::UniqueFd fd = make_socket(target.family());
  if (!fd) return os::errno_error("make a socket");
  const bool is_same_family = source.family() == target.family();
  if (from.port != 0 && !is_same_family)
    return Error{Code::kInvalidInput, "send from " + from.address + " to " + to.address};
  if (from.port == 0 && hops == 0) {
    set_option(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  } else {
    // The port may be one that another connection to somewhere else uses.
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    // Switches may hash the flow label, which would be another one for each socket.
    set_option(fd.get(), IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
  }
  if (hops > 0) limit_hops(fd.get(), target.family(), hops);
  if (is_same_family && bind(fd.get(), source.get(), source.length) != 0)
    return os::errno_error("send from " + from.address);
  if (!has_begun(connect(fd.get(), target.get(), target.length)))
    return os::errno_error("connect to " + to.address);
  return fd;
}

Result<os::UniqueFd> connect_unix(const std::string& name) {
  os::UniqueFd fd = make_socket(AF_UNIX);
  Address to = abstract_address(name);
  if (!fd || !has_begun(connect(fd.get(), to.get(), to.length)))
    return os::errno_error("connect to a unix socket");
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

AttemptEnd end_of_attempt(int fd) {
  AttemptEnd end{.is_connected = false, .router = expired_at(fd)};
  Address peer;
  peer.length = sizeof peer.storage;
  end.is_connected = getpeername(fd, peer.get(), &peer.length) == 0;
  return end;
}

std::uint16_t local_port(int fd) {
  Address local;
  local.length = sizeof local.storage;
  if (getsockname(fd, local.get(), &local.length) != 0) return 0;
  return ntohs(reinterpret_cast<const sockaddr_in*>(local.get())->sin_port);
}

void lift_hop_limit(int fd) {
  set_option(fd, IPPROTO_IP, IP_TTL, -1);
  set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, -1);
  set_option(fd, IPPROTO_IP, IP_RECVERR, 0);
  set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 0);
}

ssize_t send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t receive_with_fds(int socket, std::span<std::byte> bytes, std::vector<os::UniqueFd>& fds) {
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return got;
}

void ReadyFds::wait(std::vector<pollfd>& fds, Seconds limit) {
  ready_.clear();
  if (poll(fds.data(), fds.size(), static_cast<int>(limit.value * 1000) + 1) <= 0) return;
  for (const pollfd& fd : fds)
    if (fd.revents != 0) ready_.push_back(fd.fd);
  std::sort(ready_.begin(), ready_.end());
}

pid_t peer_pid(int fd) {
  ucred who{};
  socklen_t length = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 ? who.pid : 0;
}

std::string describe_peer(int fd) {
  Address peer;
  peer.length = sizeof peer.storage;
  if (getpeername(fd, peer.get(), &peer.length) != 0) return "an unknown place";
  if (peer.family() == AF_UNIX) {
    const pid_t pid = peer_pid(fd);
    return pid > 0 ? "process " + std::to_string(pid) : "a local process";
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(peer.get());
  return address_text(peer.get()) + " port " + std::to_string(ntohs(v4->sin_port));
}

}  // namespace regatta::comm
