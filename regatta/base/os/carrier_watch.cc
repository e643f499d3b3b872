#include <array>
#include <cerrno>
#include <deque>
#include <map>

#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

struct CarrierWatch::Impl {
  UniqueFd socket;
  Netlink netlink;
  std::map<std::string, bool> known;
  std::deque<CarrierEvent> waiting;

  void note(const std::string& name, bool up) {
    const auto [entry, is_new] = known.try_emplace(name, up);
    if (!is_new && entry->second == up) return;
    entry->second = up;
    waiting.push_back({name, up});
  }

  // Reads the present state: at the start, and after the kernel dropped messages.
  Status resync() {
    REGATTA_TRY(interfaces, netlink.interfaces());
    std::map<std::string, bool> gone;
    gone.swap(known);
    for (const Interface& interface : interfaces) {
      if (interface.name == "lo") continue;
      if (const auto old = gone.find(interface.name); old != gone.end()) {
        known.insert(*old);
        gone.erase(old);
      }
      note(interface.name, interface.carrier);
    }
    for (const auto& [name, up] : gone) {
      if (up) waiting.push_back({name, false});
    }
    return {};
  }

  void handle(const nlmsghdr& message) {
    if (message.nlmsg_type != RTM_NEWLINK && message.nlmsg_type != RTM_DELLINK) return;
    const auto* info = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
    int left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof(ifinfomsg)));
    for (const rtattr* attribute = IFLA_RTA(info); RTA_OK(attribute, left);
         attribute = RTA_NEXT(attribute, left)) {
      if (attribute->rta_type != IFLA_IFNAME) continue;
      const std::string name = static_cast<const char*>(RTA_DATA(attribute));
      if (name == "lo") return;
      const bool gone = message.nlmsg_type == RTM_DELLINK;
      const unsigned live = IFF_UP | IFF_LOWER_UP;
      note(name, !gone && (info->ifi_flags & live) == live);
      if (gone) known.erase(name);
      return;
    }
  }

  // Reads all waiting messages, without blocking.
  Status drain() {
    alignas(nlmsghdr) std::array<char, 32768> block{};
    for (;;) {
      const ssize_t count = ::recv(socket.get(), block.data(), block.size(), MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
      if (count < 0 && errno == ENOBUFS) {
        REGATTA_TRY_DO(resync());
        continue;
      }
      if (count < 0) return errno_error("carrier notices");
      auto left = static_cast<unsigned>(count);
      const auto* message = reinterpret_cast<const nlmsghdr*>(block.data());
      for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left))
        handle(*message);
    }
  }
};

CarrierWatch::CarrierWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CarrierWatch::CarrierWatch(CarrierWatch&&) noexcept = default;
CarrierWatch& CarrierWatch::operator=(CarrierWatch&&) noexcept = default;
CarrierWatch::~CarrierWatch() = default;

Result<CarrierWatch> CarrierWatch::open() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return errno_error("carrier notices");
  }
  REGATTA_TRY(netlink, Netlink::open());
  auto impl = std::make_unique<Impl>(Impl{std::move(socket), std::move(netlink), {}, {}});
  // Subscribes before the first reading, so that no change is lost between the two.
  REGATTA_TRY_DO(impl->resync());
  impl->waiting.clear();
  return CarrierWatch(std::move(impl));
}

std::vector<CarrierEvent> CarrierWatch::state() const {
  std::vector<CarrierEvent> interfaces;
  for (const auto& [name, up] : impl_->known)
    interfaces.push_back({name, up});
  return interfaces;
}

Result<std::optional<CarrierEvent>> CarrierWatch::next(Seconds limit) {
  const Seconds end = monotonic_now() + limit;
  for (;;) {
    REGATTA_TRY_DO(impl_->drain());
    if (!impl_->waiting.empty()) {
      CarrierEvent event = std::move(impl_->waiting.front());
      impl_->waiting.pop_front();
      return std::optional<CarrierEvent>(std::move(event));
    }
    const double left = (end - monotonic_now()).value;
    if (left <= 0) return std::optional<CarrierEvent>();
    pollfd entry{impl_->socket.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left * 1e3) + 1) < 0 && errno != EINTR) {
      return errno_error("carrier notices");
    }
  }
}

int CarrierWatch::fd() const {
  return impl_->socket.get();
}

}  // namespace regatta::os
