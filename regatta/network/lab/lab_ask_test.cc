// The probe's mode `ask`: which interface the kernel would send packets out of, by rtnetlink.
// Source: rtnetlink(7), RTM_GETROUTE.
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/network/lab/internal/lab_probe_test.h"

namespace regatta::lab {
namespace {

struct Question {
  alignas(nlmsghdr) std::array<char, 256> bytes{};

  Question() {
    header().nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
    header().nlmsg_type = RTM_GETROUTE;
    header().nlmsg_flags = NLM_F_REQUEST;
    auto* const route = static_cast<rtmsg*>(NLMSG_DATA(&header()));
    route->rtm_family = AF_INET;
    route->rtm_dst_len = route->rtm_src_len = 32;
  }
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(bytes.data()); }
  template <typename T>
  void add(unsigned short type, const T& value) {
    auto* const at = reinterpret_cast<rtattr*>(bytes.data() + NLMSG_ALIGN(header().nlmsg_len));
    at->rta_type = type;
    at->rta_len = RTA_LENGTH(sizeof value);
    std::memcpy(RTA_DATA(at), &value, sizeof value);
    header().nlmsg_len = NLMSG_ALIGN(header().nlmsg_len) + RTA_SPACE(sizeof value);
  }
};

// The interface's index; 0: none.
unsigned answer(int socket) {
  alignas(nlmsghdr) std::array<char, 4096> bytes{};
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(bytes.data());
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg))) || header->nlmsg_type != RTM_NEWROUTE)
    return 0;
  auto* const route = static_cast<rtmsg*>(NLMSG_DATA(header));
  auto left = static_cast<int>(RTM_PAYLOAD(header));
  for (auto* at = RTM_RTA(route); RTA_OK(at, left); at = RTA_NEXT(at, left))
    if (at->rta_type == RTA_OIF) return *static_cast<const unsigned*>(RTA_DATA(at));
  return 0;
}

}  // namespace

int request_traces(const std::string& path) {
  const os::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  std::ifstream questions(path);
  std::string enters;
  std::string from;
  std::string to;
  unsigned from_port = 0;
  unsigned to_port = 0;
  unsigned protocol = 0;
  while (questions >> enters >> from >> from_port >> to >> to_port >> protocol) {
    Question question;
    question.add(RTA_IIF, ::if_nametoindex(enters.c_str()));
    question.add(RTA_SRC, ::inet_addr(from.c_str()));
    question.add(RTA_DST, ::inet_addr(to.c_str()));
    question.add(RTA_IP_PROTO, static_cast<std::uint8_t>(protocol));
    question.add(RTA_SPORT, ::htons(static_cast<std::uint16_t>(from_port)));
    question.add(RTA_DPORT, ::htons(static_cast<std::uint16_t>(to_port)));
    std::array<char, IF_NAMESIZE> name{};
    if (::send(socket.get(), question.bytes.data(), question.header().nlmsg_len, 0) < 0 ||
        ::if_indextoname(answer(socket.get()), name.data()) == nullptr)
      std::snprintf(name.data(), name.size(), "none");
    std::printf("%s\n", name.data());
  }
  return 0;
}

}  // namespace regatta::lab
