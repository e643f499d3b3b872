#include <array>
#include <cerrno>

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "regatta/base/os/netlink.h"

namespace regatta::os {

Result<AddressWatch> AddressWatch::open() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_IPV4_IFADDR;
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error("notices of addresses");
  return AddressWatch(std::move(socket));
}

// The content of a message does not matter, nor does one that found no room.
bool AddressWatch::consume_change() {
  std::array<char, 8192> block{};
  bool has_changed = false;
  for (;;) {
    const ssize_t count = ::recv(socket_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 && errno != ENOBUFS) return has_changed;
    has_changed = true;
  }
}

}  // namespace regatta::os
