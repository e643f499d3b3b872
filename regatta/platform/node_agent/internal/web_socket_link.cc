// Connects an agent to a controller by a WebSocket; a thread of its own runs the loop of sockets.
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/text.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/web_socket_client.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/node_agent/internal/controller_link.h"
#include "regatta/platform/node_agent/internal/precedence.h"

namespace regatta::node_agent {
namespace {

class WebSocketLink : public ControllerLink {
 public:
  WebSocketLink(http::ClientOptions options, std::string target)
      : options_(std::move(options)),
        servers_(split(options_.url, ',')),
        target_(std::move(target)),
        pause_(std::random_device()()),
        ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    loop_.post([this] { connect(); });
    thread_ = os::signal_masked_thread([this] {
      run_before_others();
      loop_.run();
    });
  }
  WebSocketLink(const WebSocketLink&) = delete;
  WebSocketLink& operator=(const WebSocketLink&) = delete;
  ~WebSocketLink() override {
    loop_.post([this] {
      socket_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  int descriptor() const override { return ready_.get(); }

  std::vector<ConnectionEvent> take_events() override {
    std::uint64_t count = 0;
    static_cast<void>(::read(ready_.get(), &count, sizeof count) < 0);
    MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }

  void send(std::string message) override {
    loop_.post([this, bytes = std::move(message)] {
      if (socket_ != nullptr && !socket_->send(bytes)) close("more waits than may");
    });
  }

  void reconnect() override {
    loop_.post([this] {
      if (socket_ != nullptr) close("");
    });
  }

  void confirm() override {
    loop_.post([this] { pause_.reset(); });
  }

  void set_identity(std::string certificate, std::string private_key) override {
    loop_.post([this, certificate = std::move(certificate), key = std::move(private_key)] {
      options_.certificate_chain = certificate;
      options_.private_key = key;
    });
  }

 private:
  void add(ConnectionEvent event) {
    {
      MutexLock lock(mutex_);
      events_.push_back(std::move(event));
    }
    const std::uint64_t one = 1;
    static_cast<void>(::write(ready_.get(), &one, sizeof one) < 0);
  }

  void connect() {
    options_.url = servers_[server_];
    http::connect_web_socket(
        loop_, options_, target_, {}, [this](Result<std::unique_ptr<http::WebSocket>> socket) {
          if (socket) {
            use(std::move(*socket));
          } else {
            add({.change = ConnectionChange::kClosed, .bytes = socket.error().message});
            server_ = (server_ + 1) % servers_.size();
            loop_.after(pause_.next(), [this] { connect(); });
          }
        });
  }

  void use(std::unique_ptr<http::WebSocket> socket) {
    socket_ = std::move(socket);
    const std::int64_t number = ++number_;
    add({.change = ConnectionChange::kOpened, .bytes = {}});
    socket_->on_message([this](std::string_view bytes) {
      add({.change = ConnectionChange::kMessage, .bytes = std::string(bytes)});
    });
    // Not within the call of the WebSocket that is closed by it.
    socket_->on_closed([this, number] {
      loop_.post([this, number] {
        if (socket_ != nullptr && number_ == number) close("the controller closed the connection");
      });
    });
  }

  void close(const std::string& reason) {
    socket_.reset();
    // It may have lost the lead, or be gone.
    server_ = (server_ + 1) % servers_.size();
    add({.change = ConnectionChange::kClosed, .bytes = reason});
    loop_.after(pause_.next(), [this] { connect(); });
  }

  // Touched by the loop's thread alone.
  http::ClientOptions options_;
  std::vector<std::string> servers_;  // URLs of all controllers
  std::size_t server_ = 0;            // the one that is asked next
  std::string target_;
  ReconnectPause pause_;
  http::EventLoop loop_;
  std::unique_ptr<http::WebSocket> socket_;
  std::int64_t number_ = 0;  // of the connection

  os::UniqueFd ready_;
  Mutex mutex_;
  std::vector<ConnectionEvent> events_ REGATTA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ControllerLink>> link_by_web_socket(http::ClientOptions options,
                                                           std::string target) {
  options.response_limit = Seconds{30};
  REGATTA_TRY_DO([&]() -> Status {
    const auto checked = http::HttpClient::create(options);
    if (!checked) return checked.error();
    return {};
  }());
  return std::unique_ptr<ControllerLink>(
      std::make_unique<WebSocketLink>(std::move(options), std::move(target)));
}

}  // namespace regatta::node_agent
