#include "regatta/app/cli/internal/heal_supervisor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "regatta/app/cli/internal/kept_process.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/heal/event_socket.h"
#include "regatta/network/heal/healer_state.h"

namespace regatta::cli {
namespace {

// After so many ends soon after a start, the state may be what kills it.
constexpr int kForgets = 3;

// The socket's path while this listens there.
struct SocketPath {
  explicit SocketPath(std::string at) : path(std::move(at)) {}
  SocketPath(const SocketPath&) = delete;
  SocketPath& operator=(const SocketPath&) = delete;
  ~SocketPath() { ::unlink(path.c_str()); }

  std::string path;
};

// Until the process has ended or may be started again, at most half a second: a signal may have
// come before the wait.
void wait_for_end(KeptProcess& child) {
  constexpr Seconds kLongest{0.5};
  const Seconds now = os::monotonic_now();
  if (child.end(now)) {
    os::sleep_for(std::clamp(child.due() - now, Seconds{}, kLongest));
    return;
  }
  const auto ends = os::open_pidfd(child.pid());
  if (!ends) return os::sleep_for(Seconds{0.01});
  pollfd wait{ends->get(), POLLIN, 0};
  ::poll(&wait, 1, static_cast<int>(kLongest.value * 1e3));
}

// Whether it ended because somebody wants it to, or nobody reads what it prints any more.
bool is_meant(const os::ExitState& end) {
  return !end.signal || *end.signal == SIGPIPE ||
         std::ranges::find(kStopSignals, *end.signal) != kStopSignals.end();
}

int keep_healing(KeptProcess& child, Supervised& supervised, heal::SharedText& state) {
  const std::atomic<bool>& stop = watch_stop_signals();
  bool is_told = false;
  for (;;) {
    if (stop && child.end(os::monotonic_now())) return 0;  // nothing runs any more
    if (stop && !std::exchange(is_told, true))
      static_cast<void>(os::send_signal(child.pid(), SIGTERM).has_value());
    wait_for_end(child);
    const Seconds now = os::monotonic_now();
    const auto& end = child.end(now);
    if (!end) continue;
    if (stop || is_meant(*end)) return end->shell_status();
    supervised.signal = *end->signal;
    supervised.restarts = static_cast<int>(child.restarts()) + 1;
    if (child.quick_ends() >= kForgets) static_cast<void>(state.write("").has_value());
    child.restart(now);
  }
}

}  // namespace

std::string to_string(const Supervised& supervised) {
  return fmt::format("{}:{}:{}:{}:{:.6f}", supervised.listener, supervised.state,
                     supervised.restarts, supervised.signal, supervised.began.value);
}

Result<Supervised> parse_supervised(const std::string& text) {
  const std::vector<std::string> fields = split(text, ':');
  Supervised out;
  const std::array<int*, 4> numbers = {&out.listener, &out.state, &out.restarts, &out.signal};
  bool is_good = fields.size() == numbers.size() + 1;
  for (std::size_t i = 0; is_good && i < numbers.size(); ++i) {
    const auto number = parse_number<int>(fields[i]);
    is_good = number && *number >= 0;
    if (is_good) *numbers[i] = *number;
  }
  const auto began = is_good ? parse_number<double>(fields.back()) : std::nullopt;
  if (!began)
    return Error{Code::kInvalidInput, "--supervised: is for regatta heal itself; leave it out"};
  out.began.value = *began;
  return out;
}

Result<int> supervise_healer(
    const std::string& socket,
    const std::function<std::vector<std::string>(const Supervised&)>& arguments) {
  REGATTA_TRY(listener, heal::listen_for_reports(socket));
  const SocketPath path(socket);
  REGATTA_TRY(state, heal::SharedText::create());
  REGATTA_TRY(folder, os::executable_folder());
  Supervised supervised{.listener = listener.get(),
                        .state = state.fd(),
                        .restarts = 0,
                        .signal = 0,
                        .began = os::monotonic_now()};
  // Apart from the terminal's Ctrl-C, of which this process tells it.
  KeptProcess child([&] {
    std::vector<std::string> command = arguments(supervised);
    command.insert(command.begin(), folder + "/regatta");
    return os::spawn(
        command, {.environment = {}, .open_fds = {listener.get(), state.fd()}, .own_group = true});
  });
  REGATTA_TRY_DO(child.start(os::monotonic_now()));
  return keep_healing(child, supervised, state);
}

}  // namespace regatta::cli
