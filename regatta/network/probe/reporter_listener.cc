#include "regatta/network/probe/reporter_listener.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "regatta/base/net/line_server.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kPendingMax = 256;  // connections before their handshake
constexpr Seconds kHandshakeTimeout{5};
constexpr std::size_t kRefusalsMax = 16;
constexpr std::string_view kUnix = "unix:";

struct ReporterConnection {
  std::string from;
  NodeId server;  // not valid before the handshake
  Seconds heard_at;
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
  std::optional<net::LineServer> lines;
  std::map<net::ClientId, ReporterConnection> connections;
  std::vector<net::ClientId> reporting;  // by NodeId; 0: none
  std::size_t pending = 0;
  std::vector<RefusedReporter> refusals;
  std::vector<NodeId> arrivals;

  ~Impl() {
    if (!path.empty()) ::unlink(path.c_str());
  }

  void connected(net::ClientId id, int fd);
  void forget(net::ClientId id);
  void refuse(net::ClientId id, const std::string& why);
  void refuse_late();
  Status handshake(net::ClientId id, ReporterConnection& connection, std::string_view line);
  Status accept_line(net::ClientId id, std::string_view line, const LineHandler& handle);
};

void ReporterListener::Impl::connected(net::ClientId id, int fd) {
  // Ids grow, so the first pending connection is the oldest.
  if (pending >= kPendingMax) {
    const auto oldest = std::ranges::find_if(
        connections, [](const auto& one) { return !one.second.server.is_valid(); });
    refuse(oldest->first, "too many others connect");
  }
  if (path.empty()) os::enable_keepalive(fd);
  connections[id] = {.from = path.empty() ? to_string(os::peer_endpoint(fd)) : "a local process",
                     .server = {},
                     .heard_at = os::monotonic_now()};
  ++pending;
}

void ReporterListener::Impl::forget(net::ClientId id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  const NodeId server = found->second.server;
  if (!server.is_valid()) {
    --pending;
  } else if (reporting[server.index()] == id) {
    reporting[server.index()] = 0;
  }
  connections.erase(found);
}

void ReporterListener::Impl::refuse(net::ClientId id, const std::string& why) {
  lines->send(id, answer_line(Error{Code::kInvalidInput, why}) + "\n");
  lines->close(id);
  if (refusals.size() < kRefusalsMax) refusals.push_back({connections.at(id).from, why});
  forget(id);
}

void ReporterListener::Impl::refuse_late() {
  const Seconds now = os::monotonic_now();
  while (pending > 0) {
    const auto late = std::ranges::find_if(connections, [&](const auto& one) {
      return !one.second.server.is_valid() && now - one.second.heard_at > kHandshakeTimeout;
    });
    if (late == connections.end()) return;
    refuse(late->first, "it did not say who it is");
  }
}

Status ReporterListener::Impl::handshake(net::ClientId id, ReporterConnection& connection,
                                         std::string_view line) {
  REGATTA_TRY(handshake, parse_handshake(line));
  REGATTA_TRY(server, check(handshake, expected, os::system_now()));
  net::ClientId& reporter = reporting[server.index()];
  if (reporter != 0) {
    const ReporterConnection& other = connections.at(reporter);
    // A reporter whose machine is lost looks connected for a while.
    const Seconds fresh = std::max(Seconds{2}, 6 * expected.period);
    if (os::monotonic_now() - other.heard_at < fresh)
      return Error{Code::kConflict, "another prober reports for server " + handshake.server +
                                        ", from " + other.from + "; end one of them"};
    lines->close(reporter);
    connections.erase(reporter);
  }
  reporter = id;
  connection.server = server;
  --pending;
  arrivals.push_back(server);
  lines->set_line_max(id, longest[server.index()]);
  lines->send(id, answer_line({}) + "\n");
  return {};
}

Status ReporterListener::Impl::accept_line(net::ClientId id, std::string_view line,
                                           const LineHandler& handle) {
  ReporterConnection& connection = connections.at(id);
  if (!connection.server.is_valid()) return handshake(id, connection, line);
  connection.heard_at = os::monotonic_now();
  return handle(connection.server, line);
}

ReporterListener::ReporterListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReporterListener::~ReporterListener() = default;
ReporterListener::ReporterListener(ReporterListener&&) noexcept = default;
ReporterListener& ReporterListener::operator=(ReporterListener&&) noexcept = default;

Result<ReporterListener> ReporterListener::open(const std::string& at, ExpectedReporters expected,
                                                std::vector<std::size_t> longest) {
  auto impl = std::make_unique<Impl>();
  REGATTA_TRY_DO(os::raise_descriptor_limit(expected.servers.size() + kPendingMax + 64));
  os::UniqueFd listener;
  if (at.starts_with(kUnix)) {
    const std::string path = at.substr(kUnix.size());
    REGATTA_TRY(unix_listener, listen_at_path(path));
    listener = std::move(unix_listener);
    impl->path = path;
    impl->address = at;
  } else {
    REGATTA_TRY(place, parse_place(at));
    REGATTA_TRY(tcp_listener, os::listen_tcp(place, 1024));
    int on = 1;
    if (::ioctl(tcp_listener.get(), FIONBIO, &on) != 0) return os::errno_error(at);
    listener = std::move(tcp_listener);
    impl->address = to_string(os::local_endpoint(listener.get()));
  }
  impl->reporting.resize(expected.servers.size());
  impl->expected = std::move(expected);
  impl->longest = std::move(longest);
  REGATTA_TRY(lines,
              net::LineServer::create(
                  std::move(listener),
                  {.clients_max = impl->expected.servers.size() + kPendingMax + 1,
                   .line_max = kHandshakeBytesMax,
                   .refusal = answer_line(Error{Code::kInvalidInput, "too many others connect"})}));
  impl->lines.emplace(std::move(lines));
  return ReporterListener(std::move(impl));
}

Status ReporterListener::wait(Seconds limit, const LineHandler& handle) {
  Impl& impl = *impl_;
  const net::LineHandlers handlers{
      .connected = [&](net::ClientId id, int fd) { impl.connected(id, fd); },
      .line = [&](net::ClientId id,
                  std::string_view line) { return impl.accept_line(id, line, handle); },
      .closed =
          [&](net::ClientId id, const Status& why) {
            if (why) {
              impl.forget(id);
            } else {
              impl.refuse(id, why.error().message);
            }
          }};
  const Seconds until = os::monotonic_now() + limit;
  for (Seconds left = limit; left.value > 0; left = until - os::monotonic_now()) {
    REGATTA_TRY(was_interrupted, impl.lines->serve(left, handlers));
    impl.refuse_late();
    if (was_interrupted) return {};  // by a signal: the caller looks which
  }
  return {};
}

bool ReporterListener::send(NodeId server, std::string_view line) {
  Impl& impl = *impl_;
  const net::ClientId id = impl.reporting[server.index()];
  if (id == 0) return false;
  const bool is_sent = impl.lines->send(id, line);
  if (!is_sent) impl.forget(id);
  return is_sent;
}

std::vector<NodeId> ReporterListener::consume_arrivals() {
  return std::exchange(impl_->arrivals, {});
}

std::vector<RefusedReporter> ReporterListener::consume_refusals() {
  return std::exchange(impl_->refusals, {});
}

const std::string& ReporterListener::address() const {
  return impl_->address;
}

}  // namespace regatta::probe
