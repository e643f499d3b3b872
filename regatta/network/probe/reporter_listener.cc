#include "regatta/network/probe/reporter_listener.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <utility>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/descriptors.h"
#include "regatta/base/os/errno_text.h"
#include "regatta/base/os/system_clock.h"
#include "regatta/base/os/tcp.h"
#include "regatta/base/os/unix_socket.h"
#include "regatta/network/probe/internal/line_splitter.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kGuestsMost = 256;  // that have not said who they are
constexpr Seconds kGuestPatience{5};      // until they have
constexpr std::size_t kRefusalsMost = 16;
constexpr std::size_t kBlock = 65536;
constexpr int kMostAtOnce = 64;
constexpr std::string_view kUnix = "unix:";

struct Caller {
  os::UniqueFd fd;
  std::string from;
  LineSplitter lines{kHandshakeBytesMax};
  NodeId server;  // not valid: a guest
  Seconds heard_at;
  bool is_gone = false;
};

// "27899" is any address, and an address alone has the usual port.
Result<os::HostPort> parse_place(const std::string& at) {
  const bool is_port = !at.empty() && at.find_first_not_of("0123456789") == std::string::npos;
  if (is_port && (at.size() > 5 || std::stoul(at) > 65535))
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: there is no such port; give one up to 65535, like {}", at, kReportPort)};
  return os::parse_host_port(is_port ? ":" + at : with_report_port(at));
}

Result<os::UniqueFd> listen_at_path(const std::string& path) {
  auto listener = os::listen_unix(path);
  if (listener || listener.error().code == Code::kInvalidInput) return listener;
  if (listener.error().code == Code::kConflict)
    return Error{Code::kConflict,
                 listener.error().message + "; end it first, or choose another path"};
  return Error{Code::kInvalidInput, listener.error().message + "; choose another path"};
}

}  // namespace

struct ReporterListener::Impl {
  ExpectedReporters expected;
  std::vector<std::size_t> longest;
  std::string address;
  std::string path;  // of a socket in the file system
  os::UniqueFd listener;
  os::UniqueFd epoll;
  std::list<Caller> callers;
  std::vector<Caller*> reporting;  // by NodeId
  std::size_t guests = 0;
  bool has_leavers = false;
  std::vector<RefusedReporter> refusals;
  std::vector<NodeId> arrivals;

  ~Impl() {
    if (!path.empty()) ::unlink(path.c_str());
  }

  void watch(int fd, Caller* caller) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = caller;
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  }

  void let_in();
  void leave(Caller& caller);
  void send_away(Caller& caller, const std::string& why);
  void send_late_guests_away();
  Status handshake(Caller& caller, std::string_view line);
  void read(Caller& caller, const Take& take);
};

void ReporterListener::Impl::let_in() {
  for (;;) {
    os::UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (guests >= kGuestsMost) {
      const auto oldest = std::ranges::find_if(
          callers, [](const Caller& one) { return !one.is_gone && !one.server.is_valid(); });
      send_away(*oldest, "too many others want to come in");
    }
    Caller& caller = callers.emplace_back();
    caller.from = path.empty() ? to_string(os::peer_endpoint(fd.get())) : "a local process";
    if (path.empty()) os::enable_keepalive(fd.get());
    caller.fd = std::move(fd);
    caller.heard_at = os::monotonic_now();
    ++guests;
    watch(caller.fd.get(), &caller);
  }
}

// It stays in the list until nobody in this round looks at it.
void ReporterListener::Impl::leave(Caller& caller) {
  if (caller.is_gone) return;
  caller.is_gone = true;
  has_leavers = true;
  ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, caller.fd.get(), nullptr);
  if (!caller.server.is_valid()) {
    --guests;
  } else if (reporting[caller.server.index()] == &caller) {
    reporting[caller.server.index()] = nullptr;
  }
}

void ReporterListener::Impl::send_away(Caller& caller, const std::string& why) {
  const std::string answer = answer_line(Error{Code::kInvalidInput, why}) + "\n";
  static_cast<void>(
      ::send(caller.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  if (refusals.size() < kRefusalsMost) refusals.push_back({caller.from, why});
  leave(caller);
}

void ReporterListener::Impl::send_late_guests_away() {
  if (guests == 0 && !has_leavers) return;
  has_leavers = false;
  const Seconds now = os::monotonic_now();
  for (Caller& one : callers)
    if (!one.is_gone && !one.server.is_valid() && now - one.heard_at > kGuestPatience)
      send_away(one, "it did not say who it is");
  std::erase_if(callers, [](const Caller& one) { return one.is_gone; });
}

Status ReporterListener::Impl::handshake(Caller& caller, std::string_view line) {
  REGATTA_TRY(handshake, parse_handshake(line));
  REGATTA_TRY(server, check(handshake, expected, os::system_now()));
  Caller*& other = reporting[server.index()];
  if (other != nullptr) {
    // One whose machine is gone may look as if it were there for a while.
    const Seconds fresh = std::max(Seconds{2}, 6 * expected.period);
    if (os::monotonic_now() - other->heard_at < fresh)
      return Error{Code::kConflict, "another prober reports for server " + handshake.server +
                                        ", from " + other->from + "; end one of them"};
    leave(*other);
  }
  other = &caller;
  caller.server = server;
  --guests;
  arrivals.push_back(server);
  caller.lines.set_longest(longest[server.index()]);
  const std::string answer = answer_line({}) + "\n";
  static_cast<void>(
      ::send(caller.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  return {};
}

// One block: nobody keeps the others waiting.
void ReporterListener::Impl::read(Caller& caller, const Take& take) {
  std::array<char, kBlock> block;
  const ssize_t count = ::recv(caller.fd.get(), block.data(), block.size(), 0);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return leave(caller);
  if (caller.server.is_valid()) caller.heard_at = os::monotonic_now();
  const Status status = caller.lines.add(
      std::string_view(block.data(), static_cast<std::size_t>(count)), [&](std::string_view line) {
        return caller.server.is_valid() ? take(caller.server, line) : handshake(caller, line);
      });
  if (!status) send_away(caller, status.error().message);
}

ReporterListener::ReporterListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReporterListener::~ReporterListener() = default;
ReporterListener::ReporterListener(ReporterListener&&) noexcept = default;
ReporterListener& ReporterListener::operator=(ReporterListener&&) noexcept = default;

Result<ReporterListener> ReporterListener::open(const std::string& at, ExpectedReporters expected,
                                                std::vector<std::size_t> longest) {
  auto impl = std::make_unique<Impl>();
  REGATTA_TRY_DO(os::raise_descriptor_limit(expected.servers.size() + kGuestsMost + 64));
  if (at.starts_with(kUnix)) {
    const std::string path = at.substr(kUnix.size());
    REGATTA_TRY(listener, listen_at_path(path));
    impl->listener = std::move(listener);
    impl->path = path;
    impl->address = at;
  } else {
    REGATTA_TRY(place, parse_place(at));
    REGATTA_TRY(listener, os::listen_tcp(place, 1024));
    int on = 1;
    if (::ioctl(listener.get(), FIONBIO, &on) != 0) return os::errno_error(at);
    impl->listener = std::move(listener);
    impl->address = to_string(os::local_endpoint(impl->listener.get()));
  }
  impl->reporting.resize(expected.servers.size());
  impl->expected = std::move(expected);
  impl->longest = std::move(longest);
  impl->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!impl->epoll) return os::errno_error(at);
  impl->watch(impl->listener.get(), nullptr);
  return ReporterListener(std::move(impl));
}

Status ReporterListener::wait(Seconds limit, const Take& take) {
  const Seconds until = os::monotonic_now() + limit;
  std::array<epoll_event, kMostAtOnce> events;
  for (Seconds left = limit; left.value > 0; left = until - os::monotonic_now()) {
    const int count = ::epoll_wait(impl_->epoll.get(), events.data(), kMostAtOnce,
                                   static_cast<int>(left.value * 1e3) + 1);
    if (count < 0 && errno != EINTR) return os::errno_error("waiting for probers");
    for (int i = 0; i < count; ++i) {
      auto* const caller = static_cast<Caller*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (caller == nullptr) {
        impl_->let_in();
      } else if (!caller->is_gone) {
        impl_->read(*caller, take);
      }
    }
    impl_->send_late_guests_away();
    if (count < 0) return {};  // a signal: the caller looks what it is
  }
  return {};
}

bool ReporterListener::tell(NodeId server, std::string_view line) {
  Caller* const caller = impl_->reporting[server.index()];
  if (caller == nullptr) return false;
  const ssize_t count =
      ::send(caller->fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Half a line would spoil the next one.
  if (count > 0 && count < static_cast<ssize_t>(line.size())) impl_->leave(*caller);
  return count == static_cast<ssize_t>(line.size());
}

std::vector<NodeId> ReporterListener::take_arrivals() {
  return std::exchange(impl_->arrivals, {});
}

std::vector<RefusedReporter> ReporterListener::take_refusals() {
  return std::exchange(impl_->refusals, {});
}

const std::string& ReporterListener::address() const {
  return impl_->address;
}

}  // namespace regatta::probe
