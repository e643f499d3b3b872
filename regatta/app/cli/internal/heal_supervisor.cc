#include "regatta/app/cli/internal/heal_supervisor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "regatta/app/cli/internal/hang_watch.h"
#include "regatta/app/cli/internal/heal_restart_policy.h"
#include "regatta/app/cli/internal/kept_process.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/heal/event_socket.h"

namespace regatta::cli {
namespace {

// In place of a state that may be what ends the process: heal::parse_state() rejects it.
constexpr std::string_view kForgotten =
    "forgotten: three processes in a row ended early, perhaps by what they knew";
// It beats at least each second: it waits kLongestPause for news, and a second for a kernel. Before
// the first beat it reads the description of the fabric.
constexpr HangLimits kHangLimits{.first = Seconds{60}, .between = Seconds{2}};
// For each beat once it is to end.
constexpr Seconds kGrace{3};

// The socket's path while this listens there.
struct SocketPath {
  explicit SocketPath(std::string at) : path(std::move(at)) {}
  SocketPath(const SocketPath&) = delete;
  SocketPath& operator=(const SocketPath&) = delete;
  ~SocketPath() { ::unlink(path.c_str()); }

  std::string path;
};

// Until the process has ended or may be started again, at most kLongestPause: a signal may have
// come before the wait.
void wait_for_end(KeptProcess& child) {
  const Seconds now = os::monotonic_now();
  if (child.end(now)) {
    os::sleep_for(std::clamp(child.due() - now, Seconds{}, kLongestPause));
    return;
  }
  const auto ends = os::open_pidfd(child.pid());
  if (!ends) return os::sleep_for(Seconds{0.01});
  pollfd wait{ends->get(), POLLIN, 0};
  ::poll(&wait, 1, static_cast<int>(kLongestPause.value * 1e3));
}

// Whether it ended because somebody wants it to, or nobody reads what it prints any more.
bool is_meant(const os::ExitState& end) {
  return !end.signal || *end.signal == SIGPIPE ||
         std::ranges::find(kStopSignals, *end.signal) != kStopSignals.end();
}

// The files that both processes have.
struct SharedFiles {
  heal::SharedText state;
  heal::Heartbeat heartbeat;
};

// Kills a process that hangs. Returns for how long it had hung, or 0.
Seconds end_hanging(const KeptProcess& child, const SharedFiles& shared, HangWatch& watch) {
  if (!watch.hangs(shared.heartbeat.beats(), os::monotonic_now())) return {};
  static_cast<void>(os::send_signal(child.pid(), SIGKILL).has_value());
  return watch.silence();
}

Error internal_flag() {
  return {Code::kInvalidInput, "--supervised: is for regatta heal itself; leave it out"};
}

// Until it ends and is not to be started again; returns how it ended.
os::ExitState keep_healing(KeptProcess& child, Supervised& supervised, SharedFiles& shared) {
  const std::atomic<bool>& stop = watch_stop_signals();
  const Seconds begin = os::monotonic_now();
  HangWatch watch(kHangLimits, begin);
  RestartPolicy policy(begin);
  Seconds hung;
  bool is_told = false;
  for (;; wait_for_end(child)) {
    const Seconds now = os::monotonic_now();
    const bool stops = stop;
    const auto& end = child.end(now);
    if (!end) {
      if (stops && !std::exchange(is_told, true)) {
        watch.set_limit(kGrace);
        static_cast<void>(os::send_signal(child.pid(), SIGTERM).has_value());
      }
      if (hung == Seconds{}) hung = end_hanging(child, shared, watch);
      continue;
    }
    if (stops || is_meant(*end)) return *end;
    supervised.signal = *end->signal;
    supervised.hung = hung;
    supervised.restarts = static_cast<int>(child.restarts()) + 1;
    if (policy.end(now, hung)) static_cast<void>(shared.state.write(kForgotten).has_value());
    static_cast<void>(shared.heartbeat.reset().has_value());
    if (!child.restart(now)) continue;
    hung = {};
    watch.restart(now);
    policy.restart(now);
  }
}

}  // namespace

std::string to_string(const Supervised& supervised) {
  return fmt::format("{}:{}:{}:{}:{}:{:.6f}:{:.6f}", supervised.listener, supervised.state,
                     supervised.heartbeat, supervised.restarts, supervised.signal,
                     supervised.hung.value, supervised.began.value);
}

Result<Supervised> parse_supervised(const std::string& text) {
  const std::vector<std::string> fields = split(text, ':');
  Supervised out;
  const std::array<int*, 5> numbers = {&out.listener, &out.state, &out.heartbeat, &out.restarts,
                                       &out.signal};
  const std::array<Seconds*, 2> times = {&out.hung, &out.began};
  bool is_good = fields.size() == numbers.size() + times.size();
  for (std::size_t i = 0; is_good && i < numbers.size(); ++i) {
    const auto number = parse_number<int>(fields[i]);
    is_good = number && *number >= 0;
    if (is_good) *numbers[i] = *number;
  }
  for (std::size_t i = 0; is_good && i < times.size(); ++i) {
    const auto time = parse_number<double>(fields[numbers.size() + i]);
    is_good = time.has_value();
    if (is_good) times[i]->value = *time;
  }
  if (is_good) return out;
  return internal_flag();
}

Result<std::optional<Supervision>> find_supervision(const std::string& flag) {
  if (flag.empty()) return std::optional<Supervision>();
  REGATTA_TRY(shared, parse_supervised(flag));
  for (const int fd : {shared.listener, shared.state, shared.heartbeat})
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return internal_flag();
  return std::optional<Supervision>({shared, heal::SharedText(os::UniqueFd(shared.state)),
                                     heal::Heartbeat(os::UniqueFd(shared.heartbeat)), ::getppid()});
}

Result<int> supervise_healer(
    const std::string& socket,
    const std::function<std::vector<std::string>(const Supervised&)>& arguments,
    const std::function<Status()>& hand_back) {
  REGATTA_TRY(listener, heal::listen_for_reports(socket));
  const SocketPath path(socket);
  REGATTA_TRY(state, heal::SharedText::create());
  REGATTA_TRY(heartbeat, heal::Heartbeat::create());
  SharedFiles shared{std::move(state), std::move(heartbeat)};
  REGATTA_TRY(folder, os::executable_folder());
  Supervised supervised{.listener = listener.get(),
                        .state = shared.state.fd(),
                        .heartbeat = shared.heartbeat.fd(),
                        .restarts = 0,
                        .signal = 0,
                        .hung = {},
                        .began = os::monotonic_now()};
  // Apart from the terminal's Ctrl-C, of which this process tells it.
  KeptProcess child([&] {
    std::vector<std::string> command = arguments(supervised);
    command.insert(command.begin(), folder + "/regatta");
    return os::spawn(command,
                     {.environment = {},
                      .open_fds = {listener.get(), shared.state.fd(), shared.heartbeat.fd()},
                      .own_group = true});
  });
  REGATTA_TRY_DO(child.start(os::monotonic_now()));
  const os::ExitState end = keep_healing(child, supervised, shared);
  if (!end.signal) return end.shell_status();
  REGATTA_TRY_DO(hand_back());
  const bool is_stopped = watch_stop_signals();
  return is_stopped ? 0 : end.shell_status();
}

}  // namespace regatta::cli
