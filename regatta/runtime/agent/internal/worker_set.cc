#include "regatta/runtime/agent/internal/worker_set.h"

#include <csignal>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/rpc/worker_channel.h"
#include "regatta/runtime/agent/agent.pb.h"
#include "regatta/runtime/agent/internal/worker_process.h"

namespace regatta::agent {
namespace {

constexpr Seconds kHeartbeatEvery{0.5};
// Ends are seen at once by their closed pipes, pauses within this time.
constexpr int kPollMilliseconds = 50;
constexpr Seconds kReapTimeout{2.0};

}  // namespace

struct WorkerSet::Impl {
  Sink sink;
  os::UniqueFd wake;
  Mutex mutex;
  std::vector<proto::SessionRequest> requests REGATTA_GUARDED_BY(mutex);
  bool must_end REGATTA_GUARDED_BY(mutex) = false;
  // Used by the thread alone.
  std::list<WorkerProcess> workers;
  std::optional<os::CarrierWatch> carriers;
  std::optional<Seconds> kill_at;  // a Stop is under way
  Seconds next_heartbeat;
  std::thread thread;

  void loop();
  void wait_for_events();
  void handle_requests();
  void launch(const proto::Launch& launch);
  void reply(const proto::Reply& reply);
  void begin_stop(const proto::Stop& stop);
  void forward_lines(WorkerProcess& worker, bool at_end) const;
  // True when the worker ended.
  bool report_changes(WorkerProcess& worker) const;
  void watch_carriers();
  void send_carrier(const os::CarrierEvent& change, bool initial) const;
  void run_timers();
  void kill_all();
  bool is_ending() {
    const MutexLock lock(mutex);
    return must_end;
  }
};

WorkerSet::WorkerSet(Sink sink) : impl_(std::make_unique<Impl>()) {
  impl_->sink = std::move(sink);
  impl_->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  impl_->thread = std::thread([impl = impl_.get()] { impl->loop(); });
}

WorkerSet::~WorkerSet() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->must_end = true;
  }
  ::eventfd_write(impl_->wake.get(), 1);
  impl_->thread.join();
}

void WorkerSet::submit(proto::SessionRequest request) {
  {
    const MutexLock lock(impl_->mutex);
    impl_->requests.push_back(std::move(request));
  }
  ::eventfd_write(impl_->wake.get(), 1);
}

void WorkerSet::Impl::loop() {
  proto::AgentEvent ready;
  ready.mutable_ready()->set_pid(::getpid());
  sink(ready);
  if (auto watch = os::CarrierWatch::open()) {
    carriers.emplace(*std::move(watch));
    for (const auto& state : carriers->state()) {
      if (!state.up) send_carrier(state, true);
    }
  } else {
    os::log_warning("carrier changes are not watched: " + watch.error().message);
  }
  while (!is_ending()) {
    wait_for_events();
    handle_requests();
    for (auto worker = workers.begin(); worker != workers.end();) {
      worker->flush();
      forward_lines(*worker, false);
      worker = report_changes(*worker) ? workers.erase(worker) : std::next(worker);
    }
    watch_carriers();
    run_timers();
  }
  kill_all();
}

void WorkerSet::Impl::wait_for_events() {
  std::vector<pollfd> fds{{wake.get(), POLLIN, 0}};
  if (carriers) fds.push_back({carriers->fd(), POLLIN, 0});
  for (const auto& worker : workers) {
    if (worker.output_fd() >= 0) fds.push_back({worker.output_fd(), POLLIN, 0});
    if (worker.log_fd() >= 0) fds.push_back({worker.log_fd(), POLLIN, 0});
    if (worker.has_output_queued()) fds.push_back({worker.input_fd(), POLLOUT, 0});
  }
  ::poll(fds.data(), fds.size(), kPollMilliseconds);
  eventfd_t count = 0;
  ::eventfd_read(wake.get(), &count);
}

void WorkerSet::Impl::handle_requests() {
  std::vector<proto::SessionRequest> pending;
  {
    const MutexLock lock(mutex);
    pending.swap(requests);
  }
  for (const auto& request : pending) {
    if (request.has_launch()) launch(request.launch());
    if (request.has_reply()) reply(request.reply());
    if (request.has_stop()) begin_stop(request.stop());
  }
}

void WorkerSet::Impl::launch(const proto::Launch& launch) {
  auto worker = WorkerProcess::start(launch);
  if (worker) {
    workers.push_back(*std::move(worker));
    return;
  }
  proto::AgentEvent event;
  auto* failure = event.mutable_launch_failure();
  failure->set_run(launch.run());
  failure->set_rank(launch.rank());
  failure->set_code(rpc::to_string(worker.error().code));
  failure->set_message(worker.error().message);
  sink(event);
}

void WorkerSet::Impl::reply(const proto::Reply& reply) {
  for (auto& worker : workers) {
    if (worker.rank() == reply.rank()) worker.send(reply.line());
  }
}

void WorkerSet::Impl::begin_stop(const proto::Stop& stop) {
  for (const auto& worker : workers) {
    worker.send_signal(SIGTERM);
  }
  kill_at = os::monotonic_now() + Seconds{stop.grace_s()};
}

void WorkerSet::Impl::forward_lines(WorkerProcess& worker, bool at_end) const {
  proto::AgentEvent event;
  for (auto& text : worker.read_log(at_end)) {
    auto* line = event.mutable_log();
    line->set_run(worker.run());
    line->set_rank(worker.rank());
    line->set_text(std::move(text));
    sink(event);
  }
  for (auto& text : worker.read_output(at_end)) {
    auto* line = event.mutable_line();
    line->set_run(worker.run());
    line->set_rank(worker.rank());
    line->set_text(std::move(text));
    sink(event);
  }
}

bool WorkerSet::Impl::report_changes(WorkerProcess& worker) const {
  while (const auto change = worker.next_change()) {
    proto::AgentEvent event;
    using Kind = WorkerStateChange::Kind;
    if (change->kind == Kind::kPaused || change->kind == Kind::kContinued) {
      auto* pause = event.mutable_pause();
      pause->set_run(worker.run());
      pause->set_rank(worker.rank());
      pause->set_paused(change->kind == Kind::kPaused);
      pause->set_signal(change->value);
      sink(event);
      continue;
    }
    forward_lines(worker, true);
    auto* exit = event.mutable_exit();
    exit->set_run(worker.run());
    exit->set_rank(worker.rank());
    if (change->kind == Kind::kKilled) exit->set_signal(change->value);
    if (change->kind == Kind::kExited) exit->set_status(change->value);
    exit->set_stopping(kill_at.has_value());
    sink(event);
    return true;
  }
  return false;
}

void WorkerSet::Impl::watch_carriers() {
  while (carriers) {
    auto change = carriers->next(Seconds{0});
    if (!change) {
      os::log_warning("carrier changes are no longer watched: " + change.error().message);
      carriers.reset();
      return;
    }
    if (!*change) return;
    send_carrier(**change, false);
  }
}

void WorkerSet::Impl::send_carrier(const os::CarrierEvent& change, bool initial) const {
  proto::AgentEvent event;
  event.mutable_carrier()->set_interface(change.interface);
  event.mutable_carrier()->set_up(change.up);
  event.mutable_carrier()->set_initial(initial);
  sink(event);
}

void WorkerSet::Impl::run_timers() {
  const Seconds now = os::monotonic_now();
  if (kill_at && now >= *kill_at) {
    for (const auto& worker : workers) {
      worker.send_signal(SIGKILL);
    }
  }
  proto::AgentEvent event;
  if (kill_at && workers.empty()) {
    kill_at.reset();
    event.mutable_stopped();
    sink(event);
  }
  if (now >= next_heartbeat) {
    next_heartbeat = now + kHeartbeatEvery;
    event.mutable_heartbeat();
    sink(event);
  }
}

void WorkerSet::Impl::kill_all() {
  const Seconds give_up = os::monotonic_now() + kReapTimeout;
  while (!workers.empty() && os::monotonic_now() < give_up) {
    for (const auto& worker : workers) {
      worker.send_signal(SIGKILL);
    }
    workers.remove_if([](WorkerProcess& worker) {
      const auto change = worker.next_change();
      return change && (change->kind == WorkerStateChange::Kind::kExited ||
                        change->kind == WorkerStateChange::Kind::kKilled);
    });
    os::sleep_for(Seconds{0.005});
  }
}

}  // namespace regatta::agent
