#include "regatta/app/cli/internal/heal_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "regatta/app/cli/internal/hang_watch.h"
#include "regatta/app/cli/internal/heal_output.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/healer_state.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {
namespace {

int restarts_of(const std::optional<Supervision>& supervision) {
  return supervision ? supervision->shared.restarts : 0;
}

// Bytes of events that wait for a reader of standard output: some thousand.
constexpr std::size_t kOutputSize = 1 << 20;

heal::Event warning(std::string text, Seconds now) {
  return {heal::EventKind::kWarning, now, {}, {}, {}, std::move(text)};
}

// Prints events, with the seconds since the first process began, like those of `regatta probe`, and
// sends them to subscribers. Waits for no reader of standard output.
class EventPrinter {
 public:
  EventPrinter(const HealedFabric& fabric, Seconds now)
      : fabric_(fabric), began_(fabric.supervision ? fabric.supervision->shared.began : now) {}

  void start(Seconds now) {
    const std::string& socket = fabric_.socket;
    output_.push(
        fabric_.as_json
            ? json_line(report::healing_json(fabric_.graph, socket, fabric_.is_dry_run, now)) + "\n"
            : report::healing_text(fabric_.graph, socket, fabric_.is_dry_run));
    output_.flush();
  }
  // Without events too: it writes what waits.
  void publish(const std::vector<heal::Event>& events, Seconds now) {
    for (const heal::Event& event : events) {
      const std::string line = json_line(to_json(fabric_.graph, event));
      fabric_.event_socket.broadcast(line);
      print(event, line);
    }
    output_.flush();
    if (const std::size_t dropped = output_.consume_dropped()) {
      const heal::Event event =
          warning(fmt::format("{} not printed, because nobody read standard output",
                              pluralized(dropped, "event")),
                  now);
      print(event, json_line(to_json(fabric_.graph, event)));
      output_.flush();
    }
  }
  // Becomes writable when publish() has something to do; -1: nothing waits.
  int fd() const { return output_.fd(); }

 private:
  void print(const heal::Event& event, const std::string& line) {
    output_.push(fabric_.as_json
                     ? line + "\n"
                     : report::timed_line(event.at - began_, to_text(fabric_.graph, event)));
  }

  const HealedFabric& fabric_;
  Seconds began_;
  OutputQueue output_{STDOUT_FILENO, kOutputSize};
};

// Keeps for the next process what this one knows. Where that fails, healing goes on.
class KeptState {
 public:
  explicit KeptState(const HealedFabric& fabric) : fabric_(fabric) {
    if (fabric.supervision) writer_.emplace(fabric.supervision->state);
  }

  // Tells a failure once, until it is another one.
  void keep(Seconds now, std::vector<heal::Event>& events) {
    if (!writer_) return;
    const Status kept = writer_->update(fabric_.healer.state());
    std::string failure = kept ? "" : kept.error().message;
    if (failure == told_) return;
    told_ = std::move(failure);
    if (told_.empty()) return;
    events.push_back(warning(
        fmt::format("what the next healer has to know cannot be kept ({}); healing goes on. Start "
                    "regatta heal again, so that a kill costs nothing",
                    told_),
        now));
  }

 private:
  const HealedFabric& fabric_;
  std::optional<heal::StateWriter> writer_;
  std::string told_;
};

std::string note_text(const heal::FaultReport& report) {
  return report.noted + (report.why.empty() ? "" : ": " + report.why) +
         "; nothing is withdrawn, people have to correct it";
}

void accept(const heal::FaultReport& report, heal::Healer& healer) {
  const Seconds now = os::monotonic_now();
  if (!report.noted.empty()) healer.note(note_text(report), now);
  for (const heal::Fault& fault : report.faults)
    healer.report(fault, report.why, now, report.is_probed);
  if (report.losses) healer.report_losses(*report.losses, now, report.losses_span);
}

// Waits until the healer has something to do, something arrives or `output_fd` is writable, at most
// kLongestPause: a signal may have come before the wait. False when the fabric is gone.
bool wait_for_news(const HealedFabric& fabric, int output_fd) {
  double limit = kLongestPause.value;
  if (const auto next = fabric.healer.next())
    limit = std::clamp((*next - os::monotonic_now()).value, 0.0, kLongestPause.value);
  std::array<pollfd, 4> waits{pollfd{fabric.switches.fd(), POLLIN, 0},
                              pollfd{fabric.event_socket.fd(), POLLIN, 0},
                              pollfd{fabric.end_fd, POLLIN, 0}, pollfd{output_fd, POLLOUT, 0}};
  ::poll(waits.data(), waits.size(), static_cast<int>(limit * 1e3 + 1));
  return waits[2].revents == 0;
}

// "signal 9 (Killed) ended the healer; a new one goes on with 1 held fault (restart 1)".
heal::Event restart_event(const Supervised& shared, const std::string& goes_on_with, Seconds now) {
  const std::string end =
      shared.hung == Seconds{}
          ? os::signal_text(shared.signal) + " ended the healer"
          : fmt::format("the healer hung for {:.1f} s and was killed", shared.hung.value);
  heal::Event event{heal::EventKind::kRestarted, now, {}, {}, {}, {}};
  event.count = shared.restarts;
  event.message =
      fmt::format("{}; a new one goes on with {} (restart {})", end, goes_on_with, shared.restarts);
  return event;
}

// Begins with what a killed process knew, if there was one.
Result<std::vector<heal::Event>> start_healer(const HealedFabric& fabric, Seconds now) {
  if (restarts_of(fabric.supervision) == 0) return fabric.healer.start(now);
  const auto text = fabric.supervision->state.read();
  const auto before = text ? heal::parse_state(fabric.graph, *text) : text.error();
  REGATTA_TRY(events, fabric.healer.start(now, before ? *before : heal::HealerState{}));
  std::vector<heal::Event> all = {restart_event(
      fabric.supervision->shared,
      before ? pluralized(before->damper.held.size(), "held fault") : "the installed routes alone",
      now)};
  if (!before) {
    const std::string_view remedy =
        fabric.switches.reads_installed()
            ? "withdrawals that are installed are held for a clean period"
            : "look for next hops that it withdrew, because nobody returns them";
    all.push_back(
        warning(fmt::format("what the killed healer held is not known ({}); healing goes on. {}",
                            before.error().message, remedy),
                now));
  }
  std::ranges::move(events, std::back_inserter(all));
  return all;
}

}  // namespace

Result<heal::EventSocket> open_event_socket(const std::string& socket, const topo::Graph& graph,
                                            const heal::Healer& healer,
                                            const std::optional<Supervision>& supervision) {
  const auto greeting = [&graph, &healer, restarts = restarts_of(supervision)] {
    nlohmann::json held = held_to_json(graph, healer.held(), os::monotonic_now());
    held["restarts"] = restarts;
    return json_line(std::move(held));
  };
  if (!supervision) return heal::EventSocket::open(socket, greeting);
  return heal::EventSocket::share(os::UniqueFd(supervision->shared.listener), greeting);
}

Status heal_until_stopped(const HealedFabric& fabric) {
  const std::atomic<bool>& stop = watch_stop_signals();
  const auto beat = [&supervision = fabric.supervision] {
    if (supervision) static_cast<void>(supervision->heartbeat.beat().has_value());
  };
  fabric.switches.while_waiting(beat);
  const Seconds start = os::monotonic_now();
  EventPrinter printer(fabric, start);
  KeptState kept(fabric);
  REGATTA_TRY(first, start_healer(fabric, start));
  kept.keep(start, first);
  if (restarts_of(fabric.supervision) == 0) printer.start(start);
  printer.publish(first, start);
  while (!stop) {
    beat();
    if (!wait_for_news(fabric, printer.fd())) return lab::gone(fabric.lab);
    for (const heal::FaultReport& report : fabric.event_socket.consume_reports(fabric.graph))
      accept(report, fabric.healer);
    const Seconds now = os::monotonic_now();
    REGATTA_TRY(events, fabric.healer.step(now));
    kept.keep(now, events);
    printer.publish(events, now);
  }
  return {};
}

}  // namespace regatta::cli
