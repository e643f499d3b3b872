#include "regatta/network/heal/internal/route_messages.h"

#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <sys/socket.h>

namespace regatta::heal {
namespace {

// A message at the end of a block; its length is kept right while attributes are added.
class Builder {
 public:
  template <typename Head>
  Builder(std::string& block, std::uint16_t type, std::uint16_t flags, std::uint32_t sequence,
          const Head& head)
      : block_(block), begin_(block.size()) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    header.nlmsg_seq = sequence;
    append(&header, sizeof header);
    append(&head, sizeof head);
    finish();
  }

  template <typename T>
  void add(unsigned short type, const T& value) {
    const std::size_t at = open(type);
    append(&value, sizeof value);
    close(at);
  }
  // Attributes between open() and close() are inside this one.
  std::size_t open(unsigned short type) {
    const std::size_t at = block_.size();
    const rtattr attribute{0, type};
    append(&attribute, sizeof attribute);
    return at;
  }
  void close(std::size_t at) {
    const auto length = static_cast<unsigned short>(block_.size() - at);
    std::memcpy(block_.data() + at, &length, sizeof length);
    block_.resize((block_.size() + 3) / 4 * 4);
    finish();
  }
  void append(const void* data, std::size_t size) {
    block_.append(static_cast<const char*>(data), size);
  }
  // As attributes, lengths of rtnexthop come first and are 16 bits wide.
  std::size_t here() const { return block_.size(); }

 private:
  void finish() {
    const auto length = static_cast<std::uint32_t>(block_.size() - begin_);
    std::memcpy(block_.data() + begin_, &length, sizeof length);
  }

  std::string& block_;
  std::size_t begin_;
};

template <typename T>
T read(const rtattr* attribute) {
  T value{};
  if (RTA_PAYLOAD(attribute) >= sizeof value)
    std::memcpy(&value, RTA_DATA(attribute), sizeof value);
  return value;
}

template <typename Head, typename Handle>
void for_each_attribute(const nlmsghdr& message, const Handle& handle) {
  const auto size = NLMSG_ALIGN(NLMSG_LENGTH(sizeof(Head)));
  if (message.nlmsg_len < size) return;
  auto left = static_cast<int>(message.nlmsg_len - size);
  const auto* at = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(&message) + size);
  for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
    handle(at);
}

constexpr std::uint32_t kRulePriority = 1000;  // before the main table's

fib_rule_hdr rule_head(std::uint8_t tos, std::uint8_t table) {
  fib_rule_hdr head{};
  head.family = AF_INET;
  head.tos = tos;
  head.table = table;
  head.action = FR_ACT_TO_TBL;
  return head;
}

std::vector<KernelHop> parse_hops(const rtattr* attribute) {
  std::vector<KernelHop> hops;
  auto left = static_cast<int>(RTA_PAYLOAD(attribute));
  const auto* next = static_cast<const rtnexthop*>(RTA_DATA(attribute));
  while (left >= static_cast<int>(sizeof *next) && next->rtnh_len >= sizeof *next &&
         next->rtnh_len <= left) {
    KernelHop hop{next->rtnh_ifindex, 0, next->rtnh_hops + 1};
    auto inside = static_cast<int>(next->rtnh_len - sizeof *next);
    const auto* at = reinterpret_cast<const rtattr*>(next + 1);
    for (; RTA_OK(at, inside); at = RTA_NEXT(at, inside))
      if (at->rta_type == RTA_GATEWAY) hop.gateway = ::ntohl(read<std::uint32_t>(at));
    hops.push_back(hop);
    const int length = (next->rtnh_len + 3) / 4 * 4;
    left -= length;
    next = reinterpret_cast<const rtnexthop*>(reinterpret_cast<const char*>(next) + length);
  }
  return hops;
}

}  // namespace

void append_route(std::string& block, const KernelRoute& route, std::uint32_t sequence,
                  bool acknowledge, std::uint8_t table) {
  rtmsg head{};
  head.rtm_family = AF_INET;
  head.rtm_dst_len = 32;
  head.rtm_table = table;
  head.rtm_protocol = RTPROT_STATIC;
  head.rtm_scope = RT_SCOPE_UNIVERSE;
  head.rtm_type = RTN_UNICAST;
  const int flags = NLM_F_CREATE | NLM_F_REPLACE | (acknowledge ? NLM_F_ACK : 0);
  Builder message(block, RTM_NEWROUTE, static_cast<std::uint16_t>(flags), sequence, head);
  message.add(RTA_DST, ::htonl(route.destination));
  const std::size_t hops = message.open(RTA_MULTIPATH);
  for (const KernelHop& hop : route.hops) {
    const std::size_t begin = message.here();
    rtnexthop next{};
    next.rtnh_hops = static_cast<unsigned char>(hop.weight - 1);
    next.rtnh_ifindex = hop.interface;
    message.append(&next, sizeof next);
    message.add(RTA_GATEWAY, ::htonl(hop.gateway));
    message.close(begin);
  }
  message.close(hops);
}

void append_route_removal(std::string& block, std::uint32_t destination, std::uint32_t sequence,
                          std::uint8_t table) {
  rtmsg head{};
  head.rtm_family = AF_INET;
  head.rtm_dst_len = 32;
  head.rtm_table = table;
  head.rtm_scope = RT_SCOPE_NOWHERE;  // any
  Builder message(block, RTM_DELROUTE, NLM_F_ACK, sequence, head);
  message.add(RTA_DST, ::htonl(destination));
}

void append_rule(std::string& block, std::uint8_t tos, std::uint8_t table, std::uint32_t sequence) {
  Builder message(block, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, sequence,
                  rule_head(tos, table));
  // Without one the kernel chooses a new priority, and the rule is never equal to one that exists.
  message.add(FRA_PRIORITY, kRulePriority);
}

void append_rule_removal(std::string& block, std::uint8_t tos, std::uint8_t table,
                         std::uint32_t sequence) {
  Builder(block, RTM_DELRULE, NLM_F_ACK, sequence, rule_head(tos, table));
}

void append_dump(std::string& block, std::uint16_t type, std::uint32_t sequence) {
  if (type == RTM_GETLINK) {
    Builder(block, type, NLM_F_DUMP, sequence, ifinfomsg{});
  } else if (type == RTM_GETADDR) {
    ifaddrmsg head{};
    head.ifa_family = AF_INET;
    Builder(block, type, NLM_F_DUMP, sequence, head);
  } else {
    rtmsg head{};
    head.rtm_family = AF_INET;
    Builder(block, type, NLM_F_DUMP, sequence, head);
  }
}

void append_question(std::string& block, const Question& question, std::uint32_t sequence) {
  rtmsg head{};
  head.rtm_family = AF_INET;
  head.rtm_dst_len = head.rtm_src_len = 32;
  head.rtm_tos = question.tos;
  Builder message(block, RTM_GETROUTE, 0, sequence, head);
  message.add(RTA_IIF, question.enters);
  message.add(RTA_SRC, ::htonl(question.from));
  message.add(RTA_DST, ::htonl(question.to));
  message.add(RTA_IP_PROTO, question.protocol);
  message.add(RTA_SPORT, ::htons(question.from_port));
  message.add(RTA_DPORT, ::htons(question.to_port));
}

bool is_single_main_route(const nlmsghdr& message) {
  const auto* head = static_cast<const rtmsg*>(NLMSG_DATA(&message));
  return (message.nlmsg_type == RTM_NEWROUTE || message.nlmsg_type == RTM_DELROUTE) &&
         message.nlmsg_len >= NLMSG_LENGTH(sizeof *head) && head->rtm_family == AF_INET &&
         head->rtm_dst_len == 32 && head->rtm_table == RT_TABLE_MAIN;
}

std::optional<KernelRoute> parse_route(const nlmsghdr& message) {
  const auto* head = static_cast<const rtmsg*>(NLMSG_DATA(&message));
  if (message.nlmsg_type != RTM_NEWROUTE || !is_single_main_route(message) || head->rtm_tos != 0)
    return std::nullopt;
  std::uint32_t metric = 0;
  KernelRoute route{.destination = 0, .hops = {}, .protocol = head->rtm_protocol};
  KernelHop single;
  for_each_attribute<rtmsg>(message, [&](const rtattr* at) {
    if (at->rta_type == RTA_PRIORITY) metric = read<std::uint32_t>(at);
    if (at->rta_type == RTA_DST) route.destination = ::ntohl(read<std::uint32_t>(at));
    if (at->rta_type == RTA_OIF) single.interface = read<int>(at);
    if (at->rta_type == RTA_GATEWAY) single.gateway = ::ntohl(read<std::uint32_t>(at));
    if (at->rta_type == RTA_MULTIPATH) route.hops = parse_hops(at);
  });
  if (metric != 0) return std::nullopt;
  if (route.hops.empty() && single.gateway != 0) route.hops.push_back(single);
  if (head->rtm_type != RTN_UNICAST) route.hops.clear();
  return route;
}

int parse_answer(const nlmsghdr& message) {
  int interface = 0;
  if (message.nlmsg_type != RTM_NEWROUTE) return 0;
  for_each_attribute<rtmsg>(message, [&](const rtattr* at) {
    if (at->rta_type == RTA_OIF) interface = read<int>(at);
  });
  return interface;
}

std::optional<KernelAddress> parse_address(const nlmsghdr& message) {
  if (message.nlmsg_type != RTM_NEWADDR) return std::nullopt;
  const auto* head = static_cast<const ifaddrmsg*>(NLMSG_DATA(&message));
  KernelAddress found{static_cast<int>(head->ifa_index), 0};
  for_each_attribute<ifaddrmsg>(message, [&](const rtattr* at) {
    if (at->rta_type == IFA_LOCAL) found.address = ::ntohl(read<std::uint32_t>(at));
  });
  return found;
}

KernelLink parse_link(const nlmsghdr& message) {
  const auto* head = static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  const bool on = message.nlmsg_type == RTM_NEWLINK && (head->ifi_flags & IFF_UP) != 0;
  return {head->ifi_index, on, on && (head->ifi_flags & IFF_LOWER_UP) != 0};
}

}  // namespace regatta::heal
