#include "regatta/probe/uplink.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "regatta/os/clock.h"
#include "regatta/os/errno_text.h"
#include "regatta/os/system_clock.h"
#include "regatta/os/tcp.h"
#include "regatta/os/unix_socket.h"
#include "regatta/probe/lines.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kUnsentMost = std::size_t{1} << 20;
constexpr Seconds kDialPatience{1};
constexpr Seconds kAnswerPatience{3};
constexpr Seconds kSilenceMost{5};  // of the collector's machine
constexpr int kRefused = 5;         // times longer until it tries again
constexpr std::string_view kUnix = "unix:";

Status send_whole(int fd, std::string_view text) {
  // A few bytes into an empty buffer: all of them or none.
  const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count == static_cast<ssize_t>(text.size())) return {};
  return os::errno_error("cannot greet the collector", count < 0 ? errno : EAGAIN);
}

}  // namespace

struct Uplink::Impl {
  explicit Impl(UplinkOptions its) : options(std::move(its)) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  const UplinkOptions options;
  os::HostPort place;
  std::string path;  // instead of a place

  std::mutex mutex;
  std::condition_variable changed;
  os::UniqueFd fd;      // with a collector that let us in
  std::string unsent;   // of lines that were begun
  std::string parting;  // what the collector said when it ended the connection
  bool stop = false;

  std::string last_note;  // the thread's own
  std::thread thread;

  bool has_stopped() {
    const std::lock_guard lock(mutex);
    return stop;
  }
  void note(const std::string& text) {
    if (text == last_note) return;
    last_note = text;
    if (options.note) options.note(text);
  }
  Result<os::UniqueFd> dial();
  Status ask_in(int socket);
  void keep_connected();
};

Result<os::UniqueFd> Uplink::Impl::dial() {
  if (!path.empty()) return os::dial_unix(path);
  REGATTA_TRY(socket, os::dial_tcp(place, kDialPatience));
  const auto limit = static_cast<unsigned>(kSilenceMost.value * 1e3);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return socket;
}

// Says who this is and waits for the answer.
Status Uplink::Impl::ask_in(int socket) {
  Hello hello = options.hello;
  hello.clock = os::system_now();
  REGATTA_TRY_DO(send_whole(socket, hello_line(hello) + "\n"));
  std::optional<Status> answer;
  Lines lines(kLongestHello);
  const Seconds until = os::monotonic_now() + kAnswerPatience;
  while (!answer) {
    constexpr int kLookMs = 100;  // whether to stop
    pollfd wait{socket, POLLIN, 0};
    if (has_stopped() || os::monotonic_now() > until)
      return Error{Code::kTimeout, "the collector does not answer"};
    if (::poll(&wait, 1, kLookMs) <= 0) continue;
    std::array<char, kLongestHello> block{};
    const ssize_t count = ::recv(socket, block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Error{Code::kUnavailable, "the collector hangs up"};
    REGATTA_TRY_DO(lines.add(std::string_view(block.data(), static_cast<std::size_t>(count)),
                             [&](std::string_view line) -> Status {
                               answer = parse_answer(line);
                               return {};
                             }));
  }
  return *answer;
}

void Uplink::Impl::keep_connected() {
  bool had_trouble = false;
  for (;;) {
    Seconds pause = options.again;
    auto socket = dial();
    const Status in = socket ? ask_in(socket->get()) : Status(socket.error());
    std::unique_lock lock(mutex);
    if (stop) return;
    if (in) {
      fd = std::move(*socket);
      unsent.clear();
      lock.unlock();
      if (had_trouble) note("reports to " + options.collector + " again");
      last_note.clear();
      lock.lock();
      changed.wait(lock, [&] { return stop || !fd; });
      if (stop) return;
      const std::string why = std::exchange(parting, {});
      lock.unlock();
      had_trouble = true;
      note("the collector at " + options.collector + " is gone" +
           (why.empty() ? "" : " (" + why + ")") + "; this goes on without it");
      lock.lock();
    } else {
      lock.unlock();
      had_trouble = true;
      if (in.error().code == Code::kConflict) pause = kRefused * pause;
      note((socket ? options.collector + ": " : "") + in.error().message + "; this tries again");
      lock.lock();
    }
    changed.wait_for(lock, std::chrono::duration<double>(pause.value), [&] { return stop; });
    if (stop) return;
  }
}

Uplink::Uplink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Uplink::~Uplink() = default;
Uplink::Uplink(Uplink&&) noexcept = default;
Uplink& Uplink::operator=(Uplink&&) noexcept = default;

Result<Uplink> Uplink::open(UplinkOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  const std::string& at = impl->options.collector;
  if (at.starts_with(kUnix)) {
    impl->path = at.substr(kUnix.size());
    REGATTA_TRY_DO(os::unix_address(impl->path));
  } else {
    REGATTA_TRY(place, os::parse_host_port(with_report_port(at)));
    if (place.host.empty())
      return Error{Code::kInvalidInput, at + ": names no host; write it like collector-1" + at};
    impl->place = std::move(place);
  }
  // Signals are for the thread that probes.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  impl->thread = std::thread([raw = impl.get()] { raw->keep_connected(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return Uplink(std::move(impl));
}

void Uplink::tell(const std::string& line) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  if (!impl.fd) return;
  impl.unsent += line;
  const ssize_t count =
      ::send(impl.fd.get(), impl.unsent.data(), impl.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) impl.unsent.erase(0, static_cast<std::size_t>(count));
  const bool is_lost = count < 0 && errno != EAGAIN && errno != EINTR;
  if (!is_lost && impl.unsent.size() <= kUnsentMost) return;
  std::array<char, kLongestHello> block{};
  const ssize_t said = ::recv(impl.fd.get(), block.data(), block.size(), MSG_DONTWAIT);
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(said, 0));
  const std::string_view text(block.data(), bytes);
  if (const std::size_t end = text.find('\n'); end != std::string_view::npos)
    if (const Status answer = parse_answer(text.substr(0, end)); !answer)
      impl.parting = answer.error().message;
  impl.fd.reset();
  impl.changed.notify_all();
}

}  // namespace regatta::probe
