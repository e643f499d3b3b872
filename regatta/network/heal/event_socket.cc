#include "regatta/network/heal/event_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>

#include <nlohmann/json.hpp>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/core/json_line.h"
#include "regatta/base/os/errno_text.h"
#include "regatta/base/os/unix_socket.h"

namespace regatta::heal {
namespace {

constexpr std::size_t kLongestLine = 65536;
constexpr int kClientsMax = 64;

struct Client {
  os::UniqueFd fd;
  std::string unread;  // the beginning of a line
  bool is_gone = false;
};

}  // namespace

struct EventSocket::Impl {
  std::string path;
  std::function<std::string()> greeting;
  os::UniqueFd listener;
  os::UniqueFd epoll;
  std::list<Client> clients;

  ~Impl() {
    if (listener) ::unlink(path.c_str());
  }

  void watch(int fd, Client* client) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = client;
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  }

  static void send(Client& client, const std::string& line) {
    const std::string whole = line + "\n";
    const ssize_t count =
        ::send(client.fd.get(), whole.data(), whole.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // Half a line is as bad as none.
    if (count != static_cast<ssize_t>(whole.size())) client.is_gone = true;
  }

  void let_in() {
    for (;;) {
      os::UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) return;
      clients.push_back({std::move(fd), "", false});
      watch(clients.back().fd.get(), &clients.back());
      send(clients.back(), greeting());
    }
  }

  void read(Client& client, const topo::Graph& graph, std::vector<FaultReport>& reports) {
    std::array<char, 4096> block{};
    for (;;) {
      const ssize_t count = ::recv(client.fd.get(), block.data(), block.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (count <= 0) {
        client.is_gone = true;
        break;
      }
      client.unread.append(block.data(), static_cast<std::size_t>(count));
    }
    for (auto end = client.unread.find('\n'); end != std::string::npos;
         end = client.unread.find('\n')) {
      const std::string line = client.unread.substr(0, end);
      client.unread.erase(0, end + 1);
      if (line.empty()) continue;
      auto report = parse_report(graph, line);
      if (report) {
        reports.push_back(std::move(*report));
      } else {
        send(client, json_line({{"error", report.error().message}}));
      }
    }
    if (client.unread.size() > kLongestLine) client.is_gone = true;
  }

  void let_out() {
    std::erase_if(clients, [](const Client& client) { return client.is_gone; });
  }
};

EventSocket::EventSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventSocket::EventSocket(EventSocket&&) noexcept = default;
EventSocket& EventSocket::operator=(EventSocket&&) noexcept = default;
EventSocket::~EventSocket() = default;

Result<EventSocket> EventSocket::open(const std::string& path,
                                      std::function<std::string()> greeting) {
  auto listener = os::listen_unix(path);
  if (!listener && listener.error().code == Code::kConflict)
    return Error{Code::kConflict, path + ": another healer listens here; end it first"};
  if (!listener && listener.error().code == Code::kInvalidInput) return listener.error();
  if (!listener)
    return Error{Code::kInvalidInput,
                 listener.error().message + "; choose another path for the socket"};
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->greeting = std::move(greeting);
  impl->listener = std::move(*listener);
  impl->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!impl->epoll) return os::errno_error(path);
  impl->watch(impl->listener.get(), nullptr);
  return EventSocket(std::move(impl));
}

int EventSocket::fd() const {
  return impl_->epoll.get();
}

std::vector<FaultReport> EventSocket::take(const topo::Graph& graph) {
  std::vector<FaultReport> reports;
  std::array<epoll_event, kClientsMax> events;
  const int count = ::epoll_wait(impl_->epoll.get(), events.data(), kClientsMax, 0);
  for (int i = 0; i < count; ++i) {
    auto* const client = static_cast<Client*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (client == nullptr) {
      impl_->let_in();
    } else {
      impl_->read(*client, graph, reports);
    }
  }
  impl_->let_out();
  return reports;
}

void EventSocket::tell(const std::string& line) {
  for (Client& client : impl_->clients)
    Impl::send(client, line);
  impl_->let_out();
}

std::size_t EventSocket::subscribers() const {
  return impl_->clients.size();
}

}  // namespace regatta::heal
