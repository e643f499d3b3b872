#include "bench/http/http_load.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"

namespace regatta::http_bench {
namespace {

using tls::StreamProgress;

Status wait_for(int fd, StreamProgress progress) {
  pollfd one{
      .fd = fd,
      .events = static_cast<short>(progress == StreamProgress::kWantWrite ? POLLOUT : POLLIN),
      .revents = 0};
  if (::poll(&one, 1, 10'000) > 0) return {};
  return Error{Code::kTimeout, "the server does not answer"};
}

// A request is smaller than the socket's buffer.
Status send_request(LoadConnection& connection, const std::string& request) {
  connection.received = 0;
  connection.sent_s = os::monotonic_now().value;
  if (connection.stream.write(request).bytes == request.size()) return {};
  return Error{Code::kUnavailable, "sending failed: " + connection.stream.problem()};
}

}  // namespace

Result<LoadConnection> open_connection(const tls::TlsContext& context, std::uint16_t port) {
  REGATTA_TRY(fd, os::connect_tcp({"127.0.0.1", std::to_string(port)}, Seconds{5}));
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return os::errno_error("setting up a connection");
  REGATTA_TRY(stream, tls::TlsStream::connect(context, fd.get(), "127.0.0.1"));
  LoadConnection connection{.fd = std::move(fd), .stream = std::move(stream)};
  for (;;) {
    const StreamProgress progress = connection.stream.handshake();
    if (progress == StreamProgress::kDone) return connection;
    if (progress == StreamProgress::kFailed || progress == StreamProgress::kEnded)
      return Error{Code::kUnavailable, "handshake: " + connection.stream.problem()};
    REGATTA_TRY_DO(wait_for(connection.fd.get(), progress));
  }
}

Result<std::size_t> ask(LoadConnection& connection, const std::string& request,
                        const std::string& end) {
  REGATTA_TRY_DO(send_request(connection, request));
  std::string response;
  std::array<char, 4096> bytes{};
  while (!response.ends_with(end)) {
    const auto [progress, count] = connection.stream.read(bytes.data(), bytes.size());
    if (progress == StreamProgress::kDone)
      response.append(bytes.data(), count);
    else if (progress == StreamProgress::kWantRead)
      REGATTA_TRY_DO(wait_for(connection.fd.get(), progress));
    else
      return Error{Code::kUnavailable, "the server ended the connection"};
  }
  return response.size();
}

Result<LoadResult> run_load(std::vector<LoadConnection>& connections, const std::string& request,
                            std::size_t response_bytes, Seconds time) {
  const os::UniqueFd poller(::epoll_create1(EPOLL_CLOEXEC));
  if (!poller) return os::errno_error("epoll");
  for (std::size_t i = 0; i < connections.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (::epoll_ctl(poller.get(), EPOLL_CTL_ADD, connections[i].fd.get(), &event) != 0)
      return os::errno_error("epoll");
    REGATTA_TRY_DO(send_request(connections[i], request));
  }
  std::vector<float> latencies;
  std::array<epoll_event, 256> events{};
  std::array<char, 16 << 10> bytes{};
  const double begin_s = os::monotonic_now().value;
  double now_s = begin_s;
  while (now_s - begin_s < time.value) {
    const int count =
        ::epoll_wait(poller.get(), events.data(), static_cast<int>(events.size()), 1000);
    now_s = os::monotonic_now().value;
    for (int i = 0; i < count; ++i) {
      LoadConnection& one = connections[events[static_cast<std::size_t>(i)].data.u64];
      const auto [progress, came] = one.stream.read(bytes.data(), bytes.size());
      if (progress == StreamProgress::kWantRead) continue;
      if (progress != StreamProgress::kDone)
        return Error{Code::kUnavailable, "the server ended a connection"};
      one.received += came;
      if (one.received < response_bytes) continue;
      latencies.push_back(static_cast<float>(os::monotonic_now().value - one.sent_s));
      REGATTA_TRY_DO(send_request(one, request));
    }
  }
  if (latencies.empty()) return Error{Code::kTimeout, "no request was answered"};
  std::ranges::sort(latencies);
  const auto at = [&latencies](double part) {
    return Seconds{
        latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))]};
  };
  return LoadResult{static_cast<long long>(latencies.size()), Seconds{now_s - begin_s}, at(0.5),
                    at(0.99)};
}

}  // namespace regatta::http_bench
