#include "regatta/network/heal/event_socket.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/json.h"
#include "regatta/base/net/line_server.h"
#include "regatta/base/os/socket.h"

namespace regatta::heal {
namespace {

constexpr std::size_t kLineMax = 65536;
constexpr std::size_t kClientsMax = 64;
// A locator reports each of its faults once a second, and all clients together can take 20 ms at
// most from the healer.
constexpr double kLinesPerSecond = 500;
constexpr double kBurstLines = 32;

}  // namespace

struct EventSocket::Impl {
  std::string path;  // to remove; empty: another process removes it
  std::function<std::string()> greeting;
  std::optional<net::LineServer> server;

  ~Impl() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

EventSocket::EventSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventSocket::EventSocket(EventSocket&&) noexcept = default;
EventSocket& EventSocket::operator=(EventSocket&&) noexcept = default;
EventSocket::~EventSocket() = default;

Result<os::UniqueFd> listen_for_reports(const std::string& path) {
  auto listener = os::listen_unix(path);
  if (!listener && listener.error().code == Code::kConflict)
    return Error{Code::kConflict, path + ": another healer listens here; end it first"};
  if (!listener && listener.error().code == Code::kInvalidInput) return listener.error();
  if (!listener)
    return Error{Code::kInvalidInput,
                 listener.error().message + "; choose another path for the socket"};
  return listener;
}

Result<EventSocket> EventSocket::open(const std::string& path,
                                      std::function<std::string()> greeting) {
  REGATTA_TRY(listener, listen_for_reports(path));
  REGATTA_TRY(socket, share(std::move(listener), std::move(greeting)));
  socket.impl_->path = path;
  return socket;
}

Result<EventSocket> EventSocket::share(os::UniqueFd listener,
                                       std::function<std::string()> greeting) {
  auto impl = std::make_unique<Impl>();
  impl->greeting = std::move(greeting);
  REGATTA_TRY(server,
              net::LineServer::create(
                  std::move(listener),
                  {.clients_max = kClientsMax,
                   .line_max = kLineMax,
                   .refusal = json_line({{"error", "too many subscribers; end another one"}}),
                   .first_line_limit = {},
                   .lines_per_second = kLinesPerSecond,
                   .burst_lines = kBurstLines}));
  impl->server.emplace(std::move(server));
  return EventSocket(std::move(impl));
}

int EventSocket::fd() const {
  return impl_->server->fd();
}

std::vector<FaultReport> EventSocket::consume_reports(const topo::Graph& graph) {
  net::LineServer& server = *impl_->server;
  std::vector<FaultReport> reports;
  const net::LineHandlers handlers{
      .connected = [&](net::ClientId client,
                       int) { server.send(client, impl_->greeting() + "\n"); },
      .line = [&](net::ClientId client, std::string_view line) -> Status {
        if (line.empty()) return {};
        auto report = parse_report(graph, line);
        if (report) {
          reports.push_back(std::move(*report));
        } else {
          server.send(client, json_line({{"error", report.error().message}}) + "\n");
        }
        return {};
      },
      .closed = {}};
  // An error of the poll is not lasting: the next call polls again.
  static_cast<void>(server.serve(Seconds{}, handlers));
  return reports;
}

void EventSocket::broadcast(const std::string& line) {
  impl_->server->send_to_all(line + "\n");
}

std::size_t EventSocket::subscribers() const {
  return impl_->server->client_count();
}

}  // namespace regatta::heal
