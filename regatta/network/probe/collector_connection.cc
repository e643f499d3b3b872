#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/collector.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kUnsentMost = std::size_t{1} << 20;
constexpr Seconds kConnectTimeout{1};
constexpr Seconds kAnswerPatience{3};
constexpr Seconds kSilenceMost{5};  // of the collector's machine
constexpr int kRefused = 5;         // times longer until it tries again
constexpr Seconds kWell{10};        // that a connection lasts until trouble is news again
constexpr std::string_view kUnix = "unix:";

struct Place {
  os::HostPort tcp;
  std::string path;  // instead
};

Result<Place> parse_place(const std::string& at) {
  if (at.starts_with(kUnix)) {
    Place place{.tcp = {}, .path = at.substr(kUnix.size())};
    if (place.path.empty())
      return Error{Code::kInvalidInput, at + ": names no socket; write it like unix:/run/probe"};
    REGATTA_TRY_DO(os::unix_address(place.path));
    return place;
  }
  REGATTA_TRY(tcp, os::parse_host_port(with_report_port(at)));
  if (tcp.host.empty())
    return Error{Code::kInvalidInput, at + ": names no host; write it like head-1" + at};
  if (std::stoul(tcp.port) == 0)
    return Error{Code::kInvalidInput, fmt::format("{}: nobody listens at port 0; give the port of "
                                                  "regatta probe --listen, like {}:{}",
                                                  at, tcp.host, kReportPort)};
  return Place{.tcp = std::move(tcp), .path = {}};
}

// A collector makes its socket, but no folder, and nothing that is in its place goes by itself.
Status check_socket(const std::string& at) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path path = at.substr(kUnix.size());
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return Error{Code::kInvalidInput,
                 at + ": there is no folder " + folder.string() +
                     "; make it, or name the socket where regatta probe --listen has it"};
  if (fs::exists(path, ignored) && !fs::is_socket(path, ignored))
    return Error{Code::kInvalidInput,
                 at + ": is no socket; name the one that regatta probe --listen has made"};
  return {};
}

Status send_whole(int fd, std::string_view text) {
  // A few bytes into an empty buffer: all of them or none.
  const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count == static_cast<ssize_t>(text.size())) return {};
  return os::errno_error("cannot greet the collector", count < 0 ? errno : EAGAIN);
}

// Gives to take(line) what has come, if anything; `gone`: the error where the other end has closed.
template <typename Take>
Status receive(int socket, LineSplitter& lines, const char* gone, Take&& take) {
  std::array<char, kHandshakeBytesMax> block{};
  const ssize_t count = ::recv(socket, block.data(), block.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (count <= 0) return Error{Code::kUnavailable, gone};
  lines.append(std::string_view(block.data(), static_cast<std::size_t>(count)));
  while (const auto line = lines.next()) {
    if (lines.is_too_long(*line))
      return Error{Code::kInvalidInput,
                   fmt::format("a line is longer than {} bytes", lines.line_max())};
    REGATTA_TRY_DO(take(*line));
  }
  return {};
}

}  // namespace

struct CollectorConnection::Impl {
  explicit Impl(CollectorConnectionOptions its) : options(std::move(its)) {}
  ~Impl() {
    {
      const MutexLock lock(mutex);
      stop = true;
    }
    changed.notify_all();
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake.get(), &one, sizeof one) == sizeof one);
    if (thread.joinable()) thread.join();
  }

  const CollectorConnectionOptions options;
  os::HostPort place;
  std::string path;  // instead of a place

  Mutex mutex;
  ConditionVariable changed;
  int fd REGATTA_GUARDED_BY(mutex) = -1;         // of a collector that accepted the handshake
  std::string unsent REGATTA_GUARDED_BY(mutex);  // the rest of a line that was sent in part
  bool stop REGATTA_GUARDED_BY(mutex) = false;

  std::set<std::string> noted;  // the thread's own, since all was well
  os::UniqueFd wake;
  std::thread thread;

  bool has_stopped() {
    const MutexLock lock(mutex);
    return stop;
  }
  void note(const std::string& text) {
    if (noted.insert(text).second && options.note) options.note(text);
  }
  Result<os::UniqueFd> connect_to() const;
  Status ask_in(int socket, LineSplitter& lines);
  Status listen(int socket, LineSplitter& lines);
  Status stay(int socket, LineSplitter& lines);
  void keep_connected();
};

Result<os::UniqueFd> CollectorConnection::Impl::connect_to() const {
  if (!path.empty()) return os::connect_unix(path);
  REGATTA_TRY(socket, os::connect_tcp(place, kConnectTimeout));
  const auto limit = static_cast<unsigned>(kSilenceMost.value * 1e3);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return socket;
}

// Says who this is and waits for the answer.
Status CollectorConnection::Impl::ask_in(int socket, LineSplitter& lines) {
  Handshake handshake = options.handshake;
  handshake.clock = os::system_now();
  REGATTA_TRY_DO(send_whole(socket, handshake_line(handshake) + "\n"));
  std::optional<Status> answer;
  const Seconds until = os::monotonic_now() + kAnswerPatience;
  while (!answer) {
    constexpr int kLookMs = 100;  // whether to stop
    pollfd wait{socket, POLLIN, 0};
    if (has_stopped() || os::monotonic_now() > until)
      return Error{Code::kTimeout, "the collector does not answer"};
    if (::poll(&wait, 1, kLookMs) <= 0) continue;
    REGATTA_TRY_DO(
        receive(socket, lines, "the collector hangs up", [&](std::string_view line) -> Status {
          // An order may come right behind the answer.
          if (answer) return options.on_line ? options.on_line(line) : Status();
          answer = parse_answer(line);
          return {};
        }));
  }
  return *answer;
}

// Until the collector ends the connection, whose last words are the error, or nobody needs it.
Status CollectorConnection::Impl::listen(int socket, LineSplitter& lines) {
  for (;;) {
    std::array<pollfd, 2> wait{pollfd{socket, POLLIN, 0}, pollfd{wake.get(), POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR)
      return os::errno_error("the collector's lines");
    if (has_stopped()) return {};
    REGATTA_TRY_DO(receive(socket, lines, "", [&](std::string_view line) -> Status {
      if (line.starts_with("no ")) return parse_answer(line);
      return options.on_line ? options.on_line(line) : Status();
    }));
  }
}

// Lines go to the collector as long as the connection lasts.
Status CollectorConnection::Impl::stay(int socket, LineSplitter& lines) {
  {
    const MutexLock lock(mutex);
    fd = socket;
    unsent.clear();
  }
  Status end = listen(socket, lines);
  const MutexLock lock(mutex);
  fd = -1;
  return end;
}

void CollectorConnection::Impl::keep_connected() {
  bool had_trouble = false;
  for (;;) {
    Seconds pause = options.again;
    auto socket = connect_to();
    LineSplitter lines(kHandshakeBytesMax);
    Status state = socket ? ask_in(socket->get(), lines) : Status(socket.error());
    if (has_stopped()) return;
    if (state) {
      if (had_trouble) note("reports to " + options.collector + " again");
      const Seconds begun = os::monotonic_now();
      state = stay(socket->get(), lines);
      if (has_stopped()) return;
      // One that comes in only to be sent away again says so once.
      if (os::monotonic_now() - begun > kWell) noted.clear();
      const std::string why = state ? "" : state.error().message;
      note("the collector at " + options.collector + " is gone" +
           (why.empty() ? "" : " (" + why + ")") + "; this goes on without it");
    } else {
      note((socket ? options.collector + ": " : "") + state.error().message + "; this tries again");
    }
    had_trouble = true;
    if (!state && state.error().code == Code::kConflict) pause = kRefused * pause;
    MutexLock lock(mutex);
    changed.wait_for(lock, pause, [this]() REGATTA_REQUIRES(mutex) { return stop; });
    if (stop) return;
  }
}

Status check_collector(const std::string& at) {
  REGATTA_TRY(place, parse_place(at));
  if (!place.path.empty()) return check_socket(at);
  const Status found = os::resolve_host(place.tcp);
  // Name servers may be down now and up later.
  return !found && found.error().code == Code::kInvalidInput ? found : Status();
}

CollectorConnection::CollectorConnection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CollectorConnection::~CollectorConnection() = default;
CollectorConnection::CollectorConnection(CollectorConnection&&) noexcept = default;
CollectorConnection& CollectorConnection::operator=(CollectorConnection&&) noexcept = default;

Result<CollectorConnection> CollectorConnection::open(CollectorConnectionOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  const std::string& at = impl->options.collector;
  REGATTA_TRY(place, parse_place(at));
  impl->place = std::move(place.tcp);
  impl->path = std::move(place.path);
  impl->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->wake) return os::errno_error(at);
  impl->thread = os::signal_masked_thread([raw = impl.get()] { raw->keep_connected(); });
  return CollectorConnection(std::move(impl));
}

void CollectorConnection::send(const std::string& line) {
  Impl& impl = *impl_;
  const MutexLock lock(impl.mutex);
  if (impl.fd < 0) return;
  impl.unsent += line;
  const ssize_t count =
      ::send(impl.fd, impl.unsent.data(), impl.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) impl.unsent.erase(0, static_cast<std::size_t>(count));
  const bool is_lost = count < 0 && errno != EAGAIN && errno != EINTR;
  // The thread that listens sees it.
  if (is_lost || impl.unsent.size() > kUnsentMost)
    ::shutdown(std::exchange(impl.fd, -1), SHUT_RDWR);
}

}  // namespace regatta::probe
