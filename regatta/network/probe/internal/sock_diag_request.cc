#include "regatta/network/probe/internal/sock_diag_request.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>

namespace regatta::probe {
namespace {

constexpr std::uint32_t kEstablished = 1U << 1;  // TCP_ESTABLISHED

}  // namespace

SockDiagRequest question_for(std::uint8_t family, std::uint16_t flags, std::uint32_t sequence) {
  SockDiagRequest question;
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  question.head.nlmsg_seq = sequence;
  question.body.sdiag_family = family;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  question.body.idiag_states = kEstablished;
  return question;
}

SockDiagRequest question_for(const ConnectionCounters& known, std::uint32_t sequence) {
  const Connection& connection = known.connection;
  SockDiagRequest question = question_for(connection.is_ipv6 ? AF_INET6 : AF_INET, 0, sequence);
  inet_diag_sockid& id = question.body.id;
  std::memcpy(id.idiag_src, connection.local.address.data(), sizeof id.idiag_src);
  std::memcpy(id.idiag_dst, connection.remote.address.data(), sizeof id.idiag_dst);
  id.idiag_sport = htons(connection.local.port);
  id.idiag_dport = htons(connection.remote.port);
  id.idiag_cookie[0] = static_cast<std::uint32_t>(known.cookie);
  id.idiag_cookie[1] = static_cast<std::uint32_t>(known.cookie >> 32);
  return question;
}

bool parse_connection(const nlmsghdr& message, ConnectionCounters& out) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return false;
  const auto* body = static_cast<const inet_diag_msg*>(NLMSG_DATA(&message));
  out.connection.is_ipv6 = body->idiag_family == AF_INET6;
  const inet_diag_sockid& id = body->id;
  std::memcpy(out.connection.local.address.data(), id.idiag_src, sizeof id.idiag_src);
  std::memcpy(out.connection.remote.address.data(), id.idiag_dst, sizeof id.idiag_dst);
  out.connection.local.port = ntohs(id.idiag_sport);
  out.connection.remote.port = ntohs(id.idiag_dport);
  out.inode = body->idiag_inode;
  out.cookie = id.idiag_cookie[0] | static_cast<std::uint64_t>(id.idiag_cookie[1]) << 32;
  int left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof(inet_diag_msg)));
  for (const rtattr* attribute = reinterpret_cast<const rtattr*>(body + 1); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    tcp_info info{};  // other kernels know more of it, or less
    std::memcpy(&info, RTA_DATA(attribute),
                std::min<std::size_t>(sizeof info, RTA_PAYLOAD(attribute)));
    out.sent_bytes = info.tcpi_bytes_sent;
    out.acked_bytes = info.tcpi_bytes_acked;
    out.received_bytes = info.tcpi_bytes_received;
    out.sent_segments = info.tcpi_data_segs_out;
    out.retransmits = info.tcpi_total_retrans;
    out.round_trip = {1e-6 * info.tcpi_rtt};
    return true;
  }
  return false;
}

}  // namespace regatta::probe
