// heal/internal/route_socket.h: an rtnetlink socket that stays in the network namespace where it
// was opened: blocks of messages out, single messages in.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <linux/netlink.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::heal {

class RouteSocket {
 public:
  // Visits the namespace for a moment. `groups`: notices to receive, like RTMGRP_LINK.
  static Result<RouteSocket> open(const os::UniqueFd& space, unsigned groups);

  Status send(std::string_view block) const;

  // Passes every message that has arrived, or, with `wait`, arrives within a second, until the
  // handler returns false. kExhausted: the kernel had to drop notices. kTimeout: none arrived.
  using Handler = std::function<bool(const nlmsghdr&)>;
  Status receive(bool wait, const Handler& handler) const;

  // Asks for all of something (append_dump) and hands over each message of the answer.
  // Fails when the kernel refuses.
  Status dump(unsigned short type, const std::function<void(const nlmsghdr&)>& handler) const;

  int fd() const { return fd_.get(); }
  // Names this socket in the notices of the changes that it made.
  std::uint32_t port_id() const { return port_id_; }

 private:
  RouteSocket(os::UniqueFd fd, std::uint32_t port_id) : fd_(std::move(fd)), port_id_(port_id) {}
  os::UniqueFd fd_;
  std::uint32_t port_id_;
};

}  // namespace regatta::heal
