#include "regatta/network/probe/internal/interface_bytes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::probe {
namespace {

const std::string kInterfacesName = "counters of interfaces";

template <typename Body>
struct NetlinkRequest {
  nlmsghdr head{};
  Body body{};
};

template <typename Body>
NetlinkRequest<Body> question_for(std::uint16_t type) {
  NetlinkRequest<Body> question;
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = type;
  question.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  return question;
}

}  // namespace

Result<InterfaceBytes> InterfaceBytes::open() {
  os::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return os::errno_error(kInterfacesName);
  InterfaceBytes bytes(std::move(socket));
  REGATTA_TRY_DO(bytes.list_interfaces());
  REGATTA_TRY_DO(bytes.read());
  return bytes;
}

// `question` is copied with the next sequence number.
template <typename Handle>
Status InterfaceBytes::dump(const void* question, std::size_t bytes, Handle&& handle) {
  std::memcpy(buffer_.data(), question, bytes);
  nlmsghdr head{};
  std::memcpy(&head, buffer_.data(), sizeof head);
  head.nlmsg_seq = ++sequence_;
  std::memcpy(buffer_.data(), &head, sizeof head);
  if (::send(socket_.get(), buffer_.data(), bytes, 0) < 0) return os::errno_error(kInterfacesName);
  for (;;) {
    const ssize_t count = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os::errno_error(kInterfacesName);
    auto left = static_cast<unsigned>(count);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.data());
         NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != sequence_) continue;  // of a question before
      if (message->nlmsg_type == NLMSG_DONE) return {};
      if (message->nlmsg_type == NLMSG_ERROR)
        return os::errno_error(kInterfacesName,
                               -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error);
      handle(*message);
    }
  }
}

Status InterfaceBytes::list_interfaces() {
  const auto question = question_for<ifaddrmsg>(RTM_GETADDR);
  std::vector<unsigned> found;
  REGATTA_TRY_DO(dump(&question, sizeof question, [&](const nlmsghdr& message) {
    if (message.nlmsg_len < NLMSG_LENGTH(sizeof(ifaddrmsg))) return;
    found.push_back(static_cast<const ifaddrmsg*>(NLMSG_DATA(&message))->ifa_index);
  }));
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  interfaces_ = std::move(found);
  return {};
}

Result<std::uint64_t> InterfaceBytes::read() {
  auto question = question_for<if_stats_msg>(RTM_GETSTATS);
  question.body.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
  std::uint64_t bytes = 0;
  REGATTA_TRY_DO(dump(&question, sizeof question, [&](const nlmsghdr& message) {
    if (message.nlmsg_len < NLMSG_LENGTH(sizeof(if_stats_msg))) return;
    const auto* body = static_cast<const if_stats_msg*>(NLMSG_DATA(&message));
    if (!std::ranges::binary_search(interfaces_, body->ifindex)) return;
    int left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof(if_stats_msg)));
    for (const rtattr* attribute = reinterpret_cast<const rtattr*>(body + 1);
         RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
      if (attribute->rta_type != IFLA_STATS_LINK_64) continue;
      rtnl_link_stats64 stats{};
      std::memcpy(&stats, RTA_DATA(attribute),
                  std::min<std::size_t>(sizeof stats, RTA_PAYLOAD(attribute)));
      bytes += stats.rx_bytes + stats.tx_bytes;
    }
  }));
  return bytes;
}

}  // namespace regatta::probe
