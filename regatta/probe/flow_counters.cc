#include "regatta/probe/flow_counters.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>

#include "regatta/os/clock.h"
#include "regatta/os/errno_text.h"
#include "regatta/os/unique_fd.h"

namespace regatta::probe {
namespace {

constexpr std::uint32_t kEstablished = 1U << 1;  // TCP_ESTABLISHED
constexpr std::size_t kTogether = 32;            // questions in one call to the kernel
constexpr std::size_t kAnswerBytes = 1024;       // of one connection
constexpr std::size_t kDumpBytes = 32768;
constexpr int kQueueBytes = 1 << 20;
// By one name in all answers that ask for it.
constexpr std::string_view kWhat = "counters of connections";

struct Question {
  nlmsghdr head{};
  inet_diag_req_v2 body{};
};

Question question_for(std::uint8_t family, std::uint16_t flags, std::uint32_t sequence) {
  Question question;
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

Question question_for(const ConnectionCounters& known, std::uint32_t sequence) {
  const Connection& connection = known.connection;
  Question question = question_for(connection.is_ipv6 ? AF_INET6 : AF_INET, 0, sequence);
  inet_diag_sockid& id = question.body.id;
  std::memcpy(id.idiag_src, connection.local.address.data(), sizeof id.idiag_src);
  std::memcpy(id.idiag_dst, connection.remote.address.data(), sizeof id.idiag_dst);
  id.idiag_sport = htons(connection.local.port);
  id.idiag_dport = htons(connection.remote.port);
  id.idiag_cookie[0] = static_cast<std::uint32_t>(known.cookie);
  id.idiag_cookie[1] = static_cast<std::uint32_t>(known.cookie >> 32);
  return question;
}

// False when the answer does not tell what was asked.
bool take(const nlmsghdr& message, ConnectionCounters& out) {
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
    out.retransmits = info.tcpi_total_retrans;
    out.round_trip = {1e-6 * info.tcpi_rtt};
    return true;
  }
  return false;
}

bool is_mapped(const Endpoint& endpoint) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), endpoint.address.begin());
}

}  // namespace

struct FlowCounters::Impl {
  os::UniqueFd socket;
  CounterOptions options;
  std::uint32_t sequence = 0;
  Seconds looked;  // for new connections
  Seconds dump_cost;
  Seconds asking_cost;
  std::vector<ConnectionCounters> known;
  std::vector<ConnectionCounters> fresh;
  std::unordered_map<std::uint64_t, Seconds> moved;  // when a byte was seen last, by cookie
  std::vector<std::size_t> turn;                     // of `known`, those to ask now
  std::size_t rounds = 0;
  Seconds woken;  // one that was quiet is no more
  std::vector<Question> questions;
  std::vector<char> buffer = std::vector<char>(std::max(kDumpBytes, kTogether* kAnswerBytes));

  Error failure() const { return os::errno_error(std::string(kWhat)); }

  // True at the end of the dump.
  Result<bool> take_block(std::size_t count) {
    auto left = static_cast<unsigned>(count);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data());
         NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != sequence) continue;
      if (message->nlmsg_type == NLMSG_DONE) return true;
      if (message->nlmsg_type == NLMSG_ERROR) {
        errno = -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error;
        // A kernel without IPv6 has no such connections.
        if (errno == ENOENT || errno == EAFNOSUPPORT) return true;
        return failure();
      }
      ConnectionCounters counters;
      if (take(*message, counters)) fresh.push_back(counters);
    }
    return false;
  }

  Status dump(std::uint8_t family) {
    const Question question = question_for(family, NLM_F_DUMP, ++sequence);
    if (::send(socket.get(), &question, sizeof question, 0) < 0) return failure();
    for (;;) {
      const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failure();
      REGATTA_TRY(is_end, take_block(static_cast<std::size_t>(count)));
      if (is_end) return {};
    }
  }

  // From the last dump or questions in `known` to the dump in `fresh`.
  void note_moves() {
    std::unordered_map<std::uint64_t, std::uint64_t> bytes;
    for (const ConnectionCounters& one : known)
      bytes.emplace(one.cookie, one.sent_bytes + one.received_bytes);
    std::unordered_map<std::uint64_t, Seconds> kept;
    for (const ConnectionCounters& one : fresh) {
      const auto before = bytes.find(one.cookie);
      const bool has_moved =
          before == bytes.end() || before->second != one.sent_bytes + one.received_bytes;
      kept.emplace(one.cookie, has_moved ? note_move(one.cookie, one.at) : moved[one.cookie]);
    }
    moved.swap(kept);
  }

  Seconds note_move(std::uint64_t cookie, Seconds now) {
    const auto [last, is_new] = moved.try_emplace(cookie, now);
    if (now - last->second >= options.quiet_after) woken = now;
    return last->second = now;
  }

  bool is_quiet(const ConnectionCounters& one, Seconds now) const {
    const auto last = moved.find(one.cookie);
    return last != moved.end() && now - std::max(last->second, woken) >= options.quiet_after;
  }

  Status look() {
    const Seconds begin = os::monotonic_now();
    fresh.clear();
    REGATTA_TRY_DO(dump(AF_INET));
    REGATTA_TRY_DO(dump(AF_INET6));
    for (ConnectionCounters& one : fresh)
      one.at = begin;
    note_moves();
    known.swap(fresh);
    dump_cost = os::monotonic_now() - begin;
    return {};
  }

  // Answers come one by one, in any number a call; the sequence tells which is of whom.
  Status take_answers(std::uint32_t first, std::span<const std::size_t> asked, Seconds now) {
    std::array<mmsghdr, kTogether> messages{};
    std::array<iovec, kTogether> parts{};
    for (std::size_t i = 0; i < asked.size(); ++i) {
      parts[i] = {buffer.data() + i * kAnswerBytes, kAnswerBytes};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (std::size_t left = asked.size(); left > 0;) {
      const int count = ::recvmmsg(socket.get(), messages.data(), static_cast<unsigned>(left),
                                   MSG_WAITFORONE, nullptr);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failure();
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data() + i * kAnswerBytes);
        if (!NLMSG_OK(message, messages[i].msg_len)) continue;
        const std::uint32_t place = message->nlmsg_seq - first;
        if (place >= asked.size()) continue;  // of an earlier question
        --left;
        ConnectionCounters& one = known[asked[place]];
        const std::uint64_t before = one.sent_bytes + one.received_bytes;
        one.at = now;
        if (message->nlmsg_type == NLMSG_ERROR || !take(*message, one)) {
          one.cookie = 0;
        } else if (one.sent_bytes + one.received_bytes != before) {
          note_move(one.cookie, now);
        }
      }
    }
    return {};
  }

  Status ask() {
    const Seconds begin = os::monotonic_now();
    turn.clear();
    ++rounds;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (!is_quiet(known[i], begin) || (i + rounds) % options.quiet_share == 0) turn.push_back(i);
    for (std::size_t from = 0; from < turn.size(); from += kTogether) {
      const auto asked =
          std::span<const std::size_t>(turn).subspan(from, std::min(kTogether, turn.size() - from));
      const std::uint32_t first = sequence + 1;
      questions.clear();
      for (const std::size_t i : asked)
        questions.push_back(question_for(known[i], ++sequence));
      if (::send(socket.get(), questions.data(), questions.size() * sizeof(Question), 0) < 0)
        return failure();
      REGATTA_TRY_DO(take_answers(first, asked, begin));
    }
    std::erase_if(known, [](const ConnectionCounters& one) { return one.cookie == 0; });
    asking_cost = os::monotonic_now() - begin;
    return {};
  }

  Status read() {
    const Seconds now = os::monotonic_now();
    const bool is_due = now - looked >= options.look_for_new;
    // Right after a dump the other way is tried too, so that both costs are known and fresh.
    if (!is_due && asking_cost <= dump_cost) return ask();
    if (is_due) {
      looked = now;
      REGATTA_TRY_DO(ask());
    }
    return look();
  }
};

FlowCounters::FlowCounters(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FlowCounters::FlowCounters(FlowCounters&&) noexcept = default;
FlowCounters& FlowCounters::operator=(FlowCounters&&) noexcept = default;
FlowCounters::~FlowCounters() = default;

Result<FlowCounters> FlowCounters::open(const CounterOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->looked = os::monotonic_now() - options.look_for_new;
  impl->socket = os::UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!impl->socket) return impl->failure();
  // Room for the answers to all questions of one call; more is the administrator's to allow.
  const int bytes = kQueueBytes;
  if (::setsockopt(impl->socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    ::setsockopt(impl->socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  return FlowCounters(std::move(impl));
}

Result<const std::vector<ConnectionCounters>*> FlowCounters::read() {
  REGATTA_TRY_DO(impl_->read());
  return &impl_->known;
}

std::string endpoint_text(const Endpoint& endpoint, bool is_ipv6) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_wide = is_ipv6 && !is_mapped(endpoint);
  const std::uint8_t* address = endpoint.address.data() + (is_ipv6 && !is_wide ? 12 : 0);
  ::inet_ntop(is_wide ? AF_INET6 : AF_INET, address, text.data(), text.size());
  const std::string host = text.data();
  return (is_wide ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port);
}

Connection reversed(const Connection& connection) {
  return {connection.is_ipv6, connection.remote, connection.local};
}

bool is_loopback(const Connection& connection) {
  const auto& address = connection.remote.address;
  if (!connection.is_ipv6) return address[0] == 127;
  if (is_mapped(connection.remote)) return address[12] == 127;
  return address[15] == 1 && std::all_of(address.begin(), address.end() - 1,
                                         [](std::uint8_t byte) { return byte == 0; });
}

std::vector<std::uint64_t> sockets_of(pid_t pid, const std::string& proc) {
  constexpr std::string_view kPrefix = "socket:[";
  std::vector<std::uint64_t> inodes;
  std::error_code ignored;
  const std::string folder = proc + "/" + std::to_string(pid) + "/fd";
  for (auto entry = std::filesystem::directory_iterator(folder, ignored);
       !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry->path(), gone);
    if (gone || target.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    std::uint64_t inode = 0;
    const char* first = target.data() + kPrefix.size();
    if (std::from_chars(first, target.data() + target.size(), inode).ec == std::errc{})
      inodes.push_back(inode);
  }
  return inodes;
}

}  // namespace regatta::probe
