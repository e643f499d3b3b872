// Connects an agent to a controller on the same machine.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/node_agent/internal/controller_link.h"

namespace regatta::node_agent {
namespace {

constexpr int kBufferBytes = 4 << 20;

class UnixLink : public ControllerLink {
 public:
  explicit UnixLink(std::string path) : path_(std::move(path)), pause_(std::random_device()()) {}

  Status open() {
    timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    events_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!timer_ || !events_) return os::errno_error("epoll");
    watch(timer_.get());
    set_timer(Seconds{1e-6});
    return {};
  }

  int descriptor() const override { return events_.get(); }

  std::vector<ConnectionEvent> take_events() override {
    std::vector<ConnectionEvent> events = std::exchange(waiting_, {});
    std::uint64_t count = 0;
    if (::read(timer_.get(), &count, sizeof count) > 0 && !socket_) connect(events);
    while (socket_ && receive(events)) {
    }
    return events;
  }

  void send(std::string message) override {
    if (!socket_) return;
    if (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      reconnect();
  }

  void reconnect() override {
    if (!socket_) return;
    socket_.reset();
    waiting_.push_back({.change = ConnectionChange::kClosed, .bytes = {}});
    set_timer(pause_.next());
  }

  void confirm() override { pause_.reset(); }

  void set_identity(std::string /*certificate*/, std::string /*private_key*/) override {}

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  void set_timer(Seconds delay) {
    itimerspec when{};
    const double whole = std::floor(delay.value);
    when.it_value.tv_sec = static_cast<std::time_t>(whole);
    when.it_value.tv_nsec = std::max(1L, std::lround((delay.value - whole) * 1e9));
    ::timerfd_settime(timer_.get(), 0, &when, nullptr);
  }

  void connect(std::vector<ConnectionEvent>& events) {
    auto socket = os::connect_unix(path_, SOCK_SEQPACKET);
    if (!socket) {
      set_timer(pause_.next());
      return;
    }
    socket_ = std::move(*socket);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
    watch(socket_.get());
    events.push_back({.change = ConnectionChange::kOpened, .bytes = {}});
  }

  // One message; false when none waits.
  bool receive(std::vector<ConnectionEvent>& events) {
    const ssize_t size = ::recv(socket_.get(), nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size > 0) {
      std::string bytes(static_cast<std::size_t>(size), '\0');
      ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      events.push_back({.change = ConnectionChange::kMessage, .bytes = std::move(bytes)});
      return true;
    }
    reconnect();
    std::move(waiting_.begin(), waiting_.end(), std::back_inserter(events));
    waiting_.clear();
    return false;
  }

  std::string path_;
  ReconnectPause pause_;
  os::UniqueFd timer_;
  os::UniqueFd events_;
  os::UniqueFd socket_;
  std::vector<ConnectionEvent> waiting_;
};

}  // namespace

Seconds ReconnectPause::next() {
  const double drawn = std::uniform_real_distribution<double>(longest_ / 2, longest_)(random_);
  longest_ = std::min(longest_ * 2, kMost);
  return Seconds{drawn};
}

Result<std::unique_ptr<ControllerLink>> link_by_unix_socket(const std::string& path) {
  REGATTA_TRY_DO(os::unix_address(path));
  auto link = std::make_unique<UnixLink>(path);
  REGATTA_TRY_DO(link->open());
  return std::unique_ptr<ControllerLink>(std::move(link));
}

}  // namespace regatta::node_agent
