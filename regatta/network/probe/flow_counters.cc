#include "regatta/network/probe/flow_counters.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/internal/interface_bytes.h"
#include "regatta/network/probe/internal/sock_diag_request.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kTogether = 32;       // questions in one call to the kernel
constexpr std::size_t kAnswerBytes = 1024;  // of one connection
constexpr std::size_t kDumpBytes = 32768;
constexpr int kQueueBytes = 1 << 20;
constexpr std::uint64_t kLittle = 16384;  // bytes that nobody looks for
constexpr Seconds kMomentAgo{0.05};
// Connections count what waits in a queue before its interface: where so much moved, and interfaces
// tell of next to nothing, that is the begin of a burst once, and not at one dump after the other.
constexpr std::uint64_t kQueued = 262144;
constexpr int kLatenessMost = 3;
constexpr std::string_view kCountersName = "counters of connections";

}  // namespace

struct FlowCounters::Impl {
  os::UniqueFd socket;
  CounterOptions options;
  std::uint32_t sequence = 0;
  Seconds looked;  // for new connections
  Seconds dump_cost;
  Seconds asking_cost;
  std::vector<ConnectionCounters> known;
  std::size_t askable = 0;  // of these, the first ones; the others are left out
  std::vector<ConnectionCounters> fresh;
  std::unordered_map<std::uint64_t, Seconds> moved;  // when a byte was seen last, by cookie
  std::vector<std::size_t> turn;                     // of `known`, those to ask now
  std::size_t rounds = 0;
  Seconds woken;  // one that was quiet is no more
  std::optional<InterfaceBytes> interfaces;
  std::uint64_t carried = 0;      // by them, at the last look
  std::uint64_t unexplained = 0;  // of it by no connection that was asked
  Seconds carried_at;
  int lateness = 0;  // dumps in a row that found much of which interfaces told nothing
  std::uint64_t questions_asked = 0;
  std::vector<SockDiagRequest> questions;
  std::vector<char> buffer = std::vector<char>(std::max(kDumpBytes, kTogether* kAnswerBytes));

  Error failure() const { return os::errno_error(std::string(kCountersName)); }

  // True at the end of the dump.
  Result<bool> read_block(std::size_t count) {
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
      if (parse_connection(*message, counters)) fresh.push_back(counters);
    }
    return false;
  }

  Status dump(std::uint8_t family) {
    const SockDiagRequest question = question_for(family, NLM_F_DUMP, ++sequence);
    if (::send(socket.get(), &question, sizeof question, 0) < 0) return failure();
    for (;;) {
      const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failure();
      REGATTA_TRY(is_end, read_block(static_cast<std::size_t>(count)));
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

  Status list_all() {
    const Seconds begin = os::monotonic_now();
    fresh.clear();
    REGATTA_TRY_DO(dump(AF_INET));
    REGATTA_TRY_DO(dump(AF_INET6));
    for (ConnectionCounters& one : fresh)
      one.at = begin;
    note_moves();
    known.swap(fresh);
    askable = known.size();
    if (options.is_left_out) {
      // clang 14 cannot compile the result of std::ranges::partition.
      const auto rest = std::partition(
          known.begin(), known.end(),
          [this](const ConnectionCounters& one) { return !options.is_left_out(one.connection); });
      askable -= static_cast<std::size_t>(known.end() - rest);
    }
    dump_cost = os::monotonic_now() - begin;
    return {};
  }

  // Answers arrive one by one, in any number a call; the sequence number identifies the connection.
  Status read_answers(std::uint32_t first, std::span<const std::size_t> asked, Seconds now) {
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
        if (message->nlmsg_type == NLMSG_ERROR || !parse_connection(*message, one)) {
          one.cookie = 0;
        } else if (one.sent_bytes + one.received_bytes != before) {
          note_move(one.cookie, now);
        }
      }
    }
    return {};
  }

  // Those in `turn`; gone ones get no cookie.
  Status query_turn(Seconds begin) {
    questions_asked += turn.size();
    for (std::size_t from = 0; from < turn.size(); from += kTogether) {
      const auto asked =
          std::span<const std::size_t>(turn).subspan(from, std::min(kTogether, turn.size() - from));
      const std::uint32_t first = sequence + 1;
      questions.clear();
      for (const std::size_t i : asked)
        questions.push_back(question_for(known[i], ++sequence));
      if (::send(socket.get(), questions.data(), questions.size() * sizeof(SockDiagRequest), 0) < 0)
        return failure();
      REGATTA_TRY_DO(read_answers(first, asked, begin));
    }
    return {};
  }

  void forget_the_gone() {
    const auto gone =
        std::erase_if(known, [](const ConnectionCounters& one) { return one.cookie == 0; });
    askable -= gone;
  }

  Status query_all() {
    const Seconds begin = os::monotonic_now();
    turn.clear();
    ++rounds;
    for (std::size_t i = 0; i < askable; ++i)
      if (!is_quiet(known[i], begin) || (i + rounds) % options.quiet_share == 0) turn.push_back(i);
    REGATTA_TRY_DO(query_turn(begin));
    forget_the_gone();
    asking_cost = os::monotonic_now() - begin;
    return {};
  }

  // Bytes of the interfaces since the last call; nothing where they cannot be queried.
  std::optional<std::uint64_t> carry(bool lists_interfaces) {
    if (!interfaces) return std::nullopt;
    if (lists_interfaces && !interfaces->list_interfaces()) interfaces.reset();
    if (interfaces && os::monotonic_now() - carried_at < options.interface_pace) return 0;
    carried_at = os::monotonic_now();
    const auto now = interfaces ? interfaces->read() : Result<std::uint64_t>(0);
    if (!interfaces || !now) {
      interfaces.reset();
      return std::nullopt;
    }
    // One that went took its count along.
    const std::uint64_t more = *now >= carried ? *now - carried : kLittle + 1;
    carried = *now;
    return more;
  }

  std::uint64_t all_bytes() const {
    std::uint64_t bytes = 0;
    for (const ConnectionCounters& one : known)
      bytes += one.sent_bytes + one.received_bytes;
    return bytes;
  }

  // All are asked, whatever interfaces told, which are forgotten where they tell too late.
  Status query_and_compare() {
    const std::uint64_t before = all_bytes();
    const std::uint64_t told = std::exchange(unexplained, 0);
    REGATTA_TRY_DO(query_all());
    const std::uint64_t now = all_bytes();
    const std::uint64_t found = now > before ? now - before : 0;  // some may have gone
    if (found <= kQueued) return {};                              // too little to tell
    lateness = told <= kLittle ? lateness + 1 : 0;
    if (lateness >= kLatenessMost) interfaces.reset();
    return {};
  }

  // Those that moved a moment ago; the others too where these do not account for what was carried.
  Status query_movers(Seconds now) {
    const std::uint64_t before = all_bytes();
    turn.clear();
    for (std::size_t i = 0; i < askable; ++i)
      if (now - moved[known[i].cookie] <= kMomentAgo) turn.push_back(i);
    REGATTA_TRY_DO(query_turn(now));
    const std::uint64_t found = all_bytes() - before;
    // Headers, and the acknowledgements of the other side, are no bytes of a connection.
    unexplained -= std::min(unexplained, found + found / 8);
    if (unexplained <= kLittle) return {};
    unexplained = 0;
    turn.clear();
    for (std::size_t i = 0; i < askable; ++i)
      if (known[i].at < now && known[i].cookie != 0) turn.push_back(i);
    return query_turn(now);
  }

  Status read() {
    const Seconds now = os::monotonic_now();
    const bool is_due = now - looked >= options.look_for_new;
    const auto more = carry(is_due);
    unexplained += more.value_or(0);
    if (is_due) {
      looked = now;
      // Right after a dump the other direction is tried too, so that both costs are known and
      // fresh.
      REGATTA_TRY_DO(query_and_compare());
      return list_all();
    }
    if (more && unexplained <= kLittle) {
      stand_still(now);
      return {};
    }
    if (asking_cost > dump_cost) {
      unexplained = 0;
      return list_all();
    }
    if (!more) return query_all();
    REGATTA_TRY_DO(query_movers(now));
    stand_still(now);
    forget_the_gone();
    return {};
  }

  // Connections that were not queried have not moved.
  void stand_still(Seconds now) {
    for (std::size_t i = 0; i < askable; ++i)
      known[i].at = now;
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
  if (auto interfaces = InterfaceBytes::open(); interfaces && options.asks_interfaces)
    impl->interfaces = std::move(*interfaces);
  return FlowCounters(std::move(impl));
}

Result<const std::vector<ConnectionCounters>*> FlowCounters::read() {
  REGATTA_TRY_DO(impl_->read());
  return &impl_->known;
}

std::uint64_t FlowCounters::asked() const {
  return impl_->questions_asked;
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
