#include "regatta/network/heal/internal/route_socket.h"

#include <array>
#include <cerrno>
#include <string>

#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/heal/internal/route_messages.h"

namespace regatta::heal {
namespace {

constexpr int kWaitMilliseconds = 1000;

}  // namespace

Result<RouteSocket> RouteSocket::open(const os::UniqueFd& space, unsigned groups) {
  REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(space));
  os::UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return os::errno_error("routing socket");
  // Answers repeat the question unless told not to.
  const int on = 1;
  static_cast<void>(::setsockopt(fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on) == 0);
  socklen_t size = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return os::errno_error("routing socket");
  return RouteSocket(std::move(fd), address.nl_pid);
}

Status RouteSocket::send(std::string_view block) const {
  for (;;) {
    if (::send(fd_.get(), block.data(), block.size(), 0) >= 0) return {};
    if (errno != EINTR) return os::errno_error("routing socket");
  }
}

Status RouteSocket::receive(bool wait, const Handler& handler) const {
  alignas(nlmsghdr) std::array<char, 65536> block;
  for (;;) {
    const ssize_t count = ::recv(fd_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait) return {};
      pollfd entry{fd_.get(), POLLIN, 0};
      if (::poll(&entry, 1, kWaitMilliseconds) == 0)
        return Error{Code::kTimeout, "routing socket: the kernel does not answer"};
      continue;
    }
    if (count < 0 && errno == ENOBUFS)
      return Error{Code::kExhausted, "routing socket: notices were lost"};
    if (count < 0) return os::errno_error("routing socket");
    auto left = static_cast<unsigned>(count);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(block.data());
         NLMSG_OK(message, left); message = NLMSG_NEXT(message, left))
      if (!handler(*message)) return {};
  }
}

Status RouteSocket::dump(unsigned short type,
                         const std::function<void(const nlmsghdr&)>& handler) const {
  constexpr std::uint32_t kSequence = 1;
  std::string question;
  append_dump(question, type, kSequence);
  REGATTA_TRY_DO(send(question));
  int failure = 0;
  REGATTA_TRY_DO(receive(true, [&](const nlmsghdr& message) {
    if (message.nlmsg_seq != kSequence) return true;  // a notice
    if (message.nlmsg_type == NLMSG_ERROR)
      failure = -static_cast<const nlmsgerr*>(NLMSG_DATA(&message))->error;
    if (message.nlmsg_type == NLMSG_DONE || message.nlmsg_type == NLMSG_ERROR) return false;
    handler(message);
    return true;
  }));
  if (failure == 0) return {};
  return os::errno_error("routing socket", failure);
}

}  // namespace regatta::heal
