#include "regatta/base/net/line_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::net {
namespace {

constexpr std::size_t kBlock = 65536;
constexpr int kEventsMax = 64;
constexpr ClientId kListener = 0;
constexpr ClientId kTimer = ~ClientId{0};
constexpr long kResumeNs = 10'000'000;  // 10 ms: a paused client earns several lines meanwhile

struct Client {
  os::UniqueFd fd;
  LineSplitter lines;
  Seconds since;  // when it connected
  double credit;  // lines that it may send now
  Seconds credited_at;
  bool has_sent_line = false;
  bool is_paused = false;  // not read until it has credit again
};

// Never waits for a client with a full buffer.
bool send_now(int fd, std::string_view text) {
  const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return count == static_cast<ssize_t>(text.size());
}

}  // namespace

struct LineServer::Impl {
  LineServerOptions options;
  os::UniqueFd listener;
  os::UniqueFd epoll;
  bool is_timer_set = false;
  os::UniqueFd timer;  // readable when a paused client is to be read again; empty without a rate
  std::map<ClientId, Client> clients;
  ClientId next_id = kListener + 1;  // never reaches kTimer

  bool watch(int fd, ClientId id) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }
  void accept_some(const LineHandlers& handlers);
  void read_block(ClientId id, const LineHandlers& handlers);
  Status take_lines(ClientId id, const LineHandlers& handlers);
  bool has_credit(Client& client) const;
  void pause(Client& client);
  bool resume(ClientId id, Client& client);
  void resume_due(const LineHandlers& handlers);
  void end(ClientId id, const Status& why, const LineHandlers& handlers);
  void end_silent(const LineHandlers& handlers);
};

// Accepts a bounded number, so that a stream of new clients does not delay the others.
void LineServer::Impl::accept_some(const LineHandlers& handlers) {
  for (int i = 0; i < kEventsMax; ++i) {
    os::UniqueFd fd = os::accept_connection(listener);
    if (!fd) return;
    if (clients.size() >= options.clients_max) {
      send_now(fd.get(), options.refusal + "\n");
      continue;
    }
    const ClientId id = next_id++;
    if (!watch(fd.get(), id)) continue;
    const int number = fd.get();
    const Seconds now = os::monotonic_now();
    clients.emplace(
        id, Client{std::move(fd), LineSplitter(options.line_max), now, options.burst_lines, now});
    if (handlers.connected) handlers.connected(id, number);
  }
}

void LineServer::Impl::end(ClientId id, const Status& why, const LineHandlers& handlers) {
  if (!clients.contains(id)) return;
  if (handlers.closed) handlers.closed(id, why);
  clients.erase(id);
}

void LineServer::Impl::end_silent(const LineHandlers& handlers) {
  if (!(options.first_line_limit.value > 0)) return;
  const Seconds oldest = os::monotonic_now() - options.first_line_limit;
  std::vector<ClientId> silent;
  for (const auto& [id, client] : clients)
    if (!client.has_sent_line && client.since < oldest) silent.push_back(id);
  for (const ClientId id : silent)
    end(id, {}, handlers);
}

// A handler may close any client, this one too.
Status LineServer::Impl::take_lines(ClientId id, const LineHandlers& handlers) {
  for (;;) {
    const auto client = clients.find(id);
    if (client == clients.end()) return {};
    if (!has_credit(client->second)) {
      pause(client->second);
      return {};
    }
    LineSplitter& lines = client->second.lines;
    const auto line = lines.next();
    if (!line) return {};
    client->second.credit -= 1;
    client->second.has_sent_line = true;
    if (lines.is_too_long(*line))
      return Error{Code::kInvalidInput,
                   fmt::format("a line is longer than {} bytes", lines.line_max())};
    if (handlers.line) REGATTA_TRY_DO(handlers.line(id, *line));
  }
}

bool LineServer::Impl::has_credit(Client& client) const {
  if (!(options.lines_per_second > 0)) return true;
  const Seconds now = os::monotonic_now();
  const double earned = (now - client.credited_at).value * options.lines_per_second;
  client.credit = std::min(client.credit + earned, options.burst_lines);
  client.credited_at = now;
  return client.credit >= 1;
}

// Removed from epoll, not only masked: the end of a paused client is seen after its lines.
void LineServer::Impl::pause(Client& client) {
  if (client.is_paused) return;
  client.is_paused = true;
  static_cast<void>(::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, client.fd.get(), nullptr) == 0);
  if (is_timer_set) return;
  itimerspec next{};
  next.it_value.tv_nsec = kResumeNs;
  is_timer_set = ::timerfd_settime(timer.get(), 0, &next, nullptr) == 0;
}

bool LineServer::Impl::resume(ClientId id, Client& client) {
  client.is_paused = false;
  return watch(client.fd.get(), id);
}

// Handles the lines that paused clients sent before, and reads those that have none left.
void LineServer::Impl::resume_due(const LineHandlers& handlers) {
  std::uint64_t expirations = 0;
  static_cast<void>(::read(timer.get(), &expirations, sizeof expirations) > 0);
  is_timer_set = false;
  std::vector<ClientId> paused;
  for (const auto& [id, client] : clients)
    if (client.is_paused) paused.push_back(id);
  for (const ClientId id : paused) {
    const auto client = clients.find(id);
    if (client == clients.end()) continue;
    Status taken = os::errno_error("cannot wait for the client");
    if (resume(id, client->second)) taken = take_lines(id, handlers);
    if (!taken) end(id, taken, handlers);
  }
}

void LineServer::Impl::read_block(ClientId id, const LineHandlers& handlers) {
  const auto client = clients.find(id);
  if (client == clients.end()) return;
  std::array<char, kBlock> block;
  const ssize_t count = ::recv(client->second.fd.get(), block.data(), block.size(), 0);
  if (count < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
  if (count <= 0) return end(id, {}, handlers);
  client->second.lines.append({block.data(), static_cast<std::size_t>(count)});
  if (const Status taken = take_lines(id, handlers); !taken) end(id, taken, handlers);
}

LineServer::LineServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineServer::LineServer(LineServer&&) noexcept = default;
LineServer& LineServer::operator=(LineServer&&) noexcept = default;
LineServer::~LineServer() = default;

Result<LineServer> LineServer::create(os::UniqueFd listener, LineServerOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->options.burst_lines = std::max(1.0, impl->options.burst_lines);
  impl->listener = std::move(listener);
  impl->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!impl->epoll || !impl->watch(impl->listener.get(), kListener))
    return os::errno_error("cannot wait for clients");
  if (impl->options.lines_per_second > 0) {
    impl->timer.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!impl->timer || !impl->watch(impl->timer.get(), kTimer))
      return os::errno_error("cannot wait for clients");
  }
  return LineServer(std::move(impl));
}

int LineServer::fd() const {
  return impl_->epoll.get();
}

Result<bool> LineServer::serve(Seconds limit, const LineHandlers& handlers) {
  std::array<epoll_event, kEventsMax> events;
  const int count = ::epoll_wait(impl_->epoll.get(), events.data(), kEventsMax,
                                 static_cast<int>(std::ceil(limit.value * 1e3)));
  if (count < 0 && errno != EINTR) return os::errno_error("cannot wait for clients");
  impl_->end_silent(handlers);
  for (int i = 0; i < count; ++i) {
    const ClientId id = at(events, i).data.u64;
    if (id == kListener) {
      impl_->accept_some(handlers);
    } else if (id == kTimer) {
      impl_->resume_due(handlers);
    } else {
      impl_->read_block(id, handlers);
    }
  }
  return count < 0;
}

bool LineServer::send(ClientId client, std::string_view lines) {
  const auto found = impl_->clients.find(client);
  if (found == impl_->clients.end()) return false;
  const bool is_sent = send_now(found->second.fd.get(), lines);
  if (!is_sent) impl_->clients.erase(found);
  return is_sent;
}

void LineServer::send_to_all(std::string_view lines) {
  std::erase_if(impl_->clients,
                [&](const auto& client) { return !send_now(client.second.fd.get(), lines); });
}

void LineServer::close(ClientId client) {
  impl_->clients.erase(client);
}

void LineServer::set_line_max(ClientId client, std::size_t line_max) {
  const auto found = impl_->clients.find(client);
  if (found != impl_->clients.end()) found->second.lines.set_line_max(line_max);
}

std::size_t LineServer::client_count() const {
  return impl_->clients.size();
}

}  // namespace regatta::net
