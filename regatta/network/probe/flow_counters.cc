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
#include <utility>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/internal/interface_bytes.h"
#include "regatta/network/probe/internal/poll_schedule.h"
#include "regatta/network/probe/internal/sock_diag_request.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kTogether = 32;       // questions in one call to the kernel
constexpr std::size_t kAnswerBytes = 1024;  // of one connection
constexpr std::size_t kDumpBytes = 32768;
constexpr int kQueueBytes = 1 << 20;
constexpr std::string_view kCountersName = "counters of connections";

}  // namespace

struct FlowCounters::Impl {
  explicit Impl(const CounterOptions& given)
      : options(given), schedule(given, os::monotonic_now()) {}

  os::UniqueFd socket;
  const CounterOptions options;
  PollSchedule schedule;
  std::uint32_t sequence = 0;
  std::vector<ConnectionCounters> known;
  std::size_t askable = 0;  // of these, the first ones; the others are left out
  std::vector<ConnectionCounters> fresh;
  std::optional<InterfaceBytes> interfaces;
  Seconds carried_at;  // when they were read last
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

  Status list_all() {
    const Seconds begin = os::monotonic_now();
    fresh.clear();
    REGATTA_TRY_DO(dump(AF_INET));
    REGATTA_TRY_DO(dump(AF_INET6));
    for (ConnectionCounters& one : fresh)
      one.at = begin;
    schedule.note_dump(known, fresh);
    known.swap(fresh);
    askable = known.size();
    if (options.is_left_out) {
      // clang 14 cannot compile the result of std::ranges::partition.
      const auto rest = std::partition(
          known.begin(), known.end(),
          [this](const ConnectionCounters& one) { return !options.is_left_out(one.connection); });
      askable -= static_cast<std::size_t>(known.end() - rest);
    }
    schedule.set_dump_cost(os::monotonic_now() - begin);
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
          schedule.note_move(one.cookie, now);
        }
      }
    }
    return {};
  }

  // The connections at these places of `known`; gone ones get no cookie.
  Status query(std::span<const std::size_t> chosen, Seconds begin) {
    questions_asked += chosen.size();
    for (std::size_t from = 0; from < chosen.size(); from += kTogether) {
      const auto asked = chosen.subspan(from, std::min(kTogether, chosen.size() - from));
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

  std::span<const ConnectionCounters> asked_ones() const { return std::span(known).first(askable); }

  Status query_all() {
    const Seconds begin = os::monotonic_now();
    REGATTA_TRY_DO(query(schedule.choose_all(asked_ones(), begin), begin));
    forget_the_gone();
    schedule.set_query_cost(os::monotonic_now() - begin);
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
    return schedule.carried_since(*now);
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
    REGATTA_TRY_DO(query_all());
    const std::uint64_t now = all_bytes();
    const std::uint64_t found = now > before ? now - before : 0;  // some may have gone
    if (schedule.are_interfaces_late(found)) interfaces.reset();
    return {};
  }

  // Those that moved a moment ago; the others too where these do not account for what was carried.
  Status query_movers(Seconds now) {
    const std::uint64_t before = all_bytes();
    REGATTA_TRY_DO(query(schedule.choose_movers(asked_ones(), now), now));
    const std::uint64_t found = all_bytes() - before;
    if (schedule.has_unexplained_bytes(found))
      REGATTA_TRY_DO(query(PollSchedule::choose_others(asked_ones(), now), now));
    stand_still(now);
    forget_the_gone();
    return {};
  }

  Status read() {
    const Seconds now = os::monotonic_now();
    const auto more = carry(schedule.is_dump_due(now));
    switch (schedule.next(now, more)) {
      case Poll::kNothing:
        stand_still(now);
        return {};
      case Poll::kMovers:
        return query_movers(now);
      case Poll::kAll:
        return query_all();
      case Poll::kDump:
        return list_all();
      case Poll::kAllAndDump:
        REGATTA_TRY_DO(query_and_compare());
        return list_all();
    }
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
  auto impl = std::make_unique<Impl>(options);
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
