#include "regatta/platform/node_agent/internal/node_agent.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/memory.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/monitoring/metrics_text.h"
#include "regatta/platform/node_agent/internal/rank_log.h"

namespace regatta::node_agent {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kSilenceLeastNs = 3 * kSecondNs;  // before the connection is given up
constexpr std::int64_t kPruneEveryNs = 600 * kSecondNs;
constexpr std::int64_t kMeasureNs = kSecondNs;
constexpr double kMibBytes = 1 << 20;
constexpr int kCannotRun = 126;  // exit status, as in shells

Seconds seconds_of(std::int64_t ns) {
  return Seconds{static_cast<double>(ns) / kNsPerSecond};
}

std::int64_t ns_of(Seconds time) {
  return static_cast<std::int64_t>(time.value * kNsPerSecond);
}

Seconds run_time(const ReplicaExit& exit) {
  return Seconds{static_cast<double>(std::max<std::int64_t>(exit.running_ms, 0)) / 1000};
}

std::string replica_text(const control::ReplicaKey& key) {
  return fmt::format("job {}, attempt {}, replica {}", key.job, key.attempt, key.replica);
}

}  // namespace

NodeAgent::NodeAgent(NodeAgentOptions options, Files files, std::unique_ptr<ControllerLink> link)
    : options_(std::move(options)),
      lock_(std::move(files.lock)),
      journal_(std::move(files.journal)),
      lease_(std::move(files.lease)),
      runner_(std::move(files.runner)),
      link_(std::move(link)),
      logs_({.run_folder = [this](const auto& key) { return runner_.run_folder(key); },
             .is_over =
                 [this](const auto& key) {
                   const auto running = core_->started();
                   return std::find(running.begin(), running.end(), key) == running.end();
                 },
             .send = [this](const auto& part) { send(part); }}),
      replica_meter_(options_.facts.cpu_milli / 1000.0, options_.facts.memory_mib * kMibBytes,
                     options_.facts.devices),
      failed_devices_(options_.facts.failed_devices) {
  if (!options_.device_reader.empty())
    device_reader_ = std::make_unique<DeviceReader>(options_.device_reader);
}

Result<std::unique_ptr<NodeAgent>> NodeAgent::create(NodeAgentOptions options,
                                                     std::unique_ptr<ControllerLink> link,
                                                     CertificateRenewal renewal) {
  const std::string folder = options.runner.state_folder;
  REGATTA_TRY_DO(os::make_folder(folder, 0711));
  auto lock = RunLock::take(folder);
  if (!lock && lock.error().code == Code::kConflict)
    return Error{Code::kConflict,
                 folder + ": another agent works in this folder; give --state another one"};
  if (!lock) return lock.error();
  REGATTA_TRY(boot_id, os::boot_id());
  REGATTA_TRY(journal, JournalFile::open(folder + "/journal", boot_id));
  REGATTA_TRY(runner, ReplicaRunner::create(options.runner));
  REGATTA_TRY(lease, LeaseFile::create(runner.lease_path(), boot_id, ns_of(kFirstLease)));
  Files files{.lock = std::move(*lock),
              .journal = std::move(journal),
              .lease = std::move(lease),
              .runner = std::move(runner)};
  std::unique_ptr<NodeAgent> agent(
      new NodeAgent(std::move(options), std::move(files), std::move(link)));
  agent->boot_id_ = boot_id;
  agent->renewal_ = std::move(renewal);
  REGATTA_TRY_DO(agent->adopt());
  return agent;
}

Status NodeAgent::adopt() {
  core_.emplace(seconds_of(lease_.lease_ns()), journal_.take_entries(),
                seconds_of(lease_.last_contact_ns()));
  core_->keep_until(seconds_of(lease_.kept_until_ns()));
  std::vector<control::ReplicaKey> known;
  for (const control::ReplicaReport& report : core_->complete_report())
    known.push_back(report.key);
  runner_.set_known(known);
  for (const control::ReplicaKey& key : core_->started()) {
    std::optional<ReplicaExit> exit;
    if (journal_.is_of_earlier_boot()) {
      exit = runner_.close_after_boot(key);
      exit->is_node_fault = true;
    } else {
      REGATTA_TRY(adopted, runner_.adopt(key));
      exit = adopted;
    }
    if (exit)
      core_->ended(key, exit->exit_status, exit->signal, exit->is_node_fault, run_time(*exit));
  }
  return carry_out();
}

void NodeAgent::send(const node_protocol::NodeMessage& message) {
  link_->send(node_protocol::encode(message));
}

Status NodeAgent::run(int stop_fd) {
  Seconds logs_due{-1};
  for (;;) {
    pollfd events[] = {{.fd = stop_fd, .events = POLLIN, .revents = 0},
                       {.fd = link_->descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = runner_.descriptor(), .events = POLLIN, .revents = 0}};
    static_cast<void>(::poll(events, std::size(events), wait_ms(logs_due)));
    if (events[0].revents != 0) {
      ::rmdir(runner_.cgroup_root().c_str());  // stays while replicas run
      return {};
    }
    // The time first: orders that waited while this process stood still meet a lease that is over.
    REGATTA_TRY_DO(handle_time());
    if (events[2].revents != 0) handle_ended();
    REGATTA_TRY_DO(handle_link());
    REGATTA_TRY_DO(carry_out());
    logs_due = logs_.serve();
  }
}

int NodeAgent::wait_ms(Seconds logs_due) const {
  std::int64_t wait_ns = std::max<std::int64_t>(next_heartbeat_ns_ - boottime_ns(), 0);
  const double lease_s = core_->first_end().value - seconds_of(boottime_ns()).value;
  if (lease_s < 1) wait_ns = std::min(wait_ns, std::max<std::int64_t>(ns_of(Seconds{lease_s}), 0));
  if (logs_due.value >= 0) wait_ns = std::min(wait_ns, ns_of(logs_due));
  return static_cast<int>(wait_ns / 1'000'000) + (wait_ns % 1'000'000 != 0 ? 1 : 0);
}

void NodeAgent::handle_ended() {
  for (const EndedReplica& ended : runner_.take_ended()) {
    os::log_info(fmt::format(
        "{}: over: {}", replica_text(ended.key),
        ended.exit.reason.empty() ? "all ranks succeeded" : printable(ended.exit.reason, 200)));
    core_->ended(ended.key, ended.exit.exit_status, ended.exit.signal, ended.exit.is_node_fault,
                 run_time(ended.exit));
  }
}

Status NodeAgent::handle_link() {
  for (const ConnectionEvent& event : link_->take_events()) {
    switch (event.change) {
      case ConnectionChange::kOpened:
        is_open_ = true;
        latest_answer_ns_ = boottime_ns();
        send_hello();
        break;
      case ConnectionChange::kClosed:
        if (is_open_ || event.bytes != latest_problem_)
          os::log_warning("no connection to the controller: " + printable(event.bytes, 200));
        latest_problem_ = event.bytes;
        is_open_ = false;
        is_welcome_ = false;
        logs_.clear();
        break;
      case ConnectionChange::kMessage:
        latest_answer_ns_ = boottime_ns();
        REGATTA_TRY_DO(handle_message(event.bytes));
        break;
    }
  }
  return {};
}

void NodeAgent::send_hello() {
  node_protocol::NodeHello hello;
  hello.capabilities = {"logs", "log_follow", "metrics", "replica_leases"};
  if (options_.runner.slices.are_enforced())
    hello.capabilities.emplace_back(control::kSlicesCapability);
  hello.facts = options_.facts;
  hello.facts.failed_devices = failed_devices_;
  hello.address = options_.address;
  hello.journal_id = journal_.id();
  hello.boot_id = boot_id_;
  hello.sent_ns = boottime_ns();
  send(hello);
}

Status NodeAgent::handle_message(const std::string& bytes) {
  const auto message = node_protocol::decode_controller_message(bytes);
  if (!message) {
    os::log_error(message.error().message);
    link_->reconnect();
    return {};
  }
  if (const auto* welcome = std::get_if<node_protocol::NodeWelcome>(&*message)) take(*welcome);
  if (const auto* answer = std::get_if<node_protocol::HeartbeatAnswer>(&*message))
    renew_lease(answer->sent_ns);
  if (const auto* orders = std::get_if<node_protocol::NodeOrders>(&*message)) {
    const Seconds now = seconds_of(boottime_ns());
    for (const control::ReplicaOrder& order : orders->orders)
      core_->obey(order, now);
  }
  if (const auto* request = std::get_if<node_protocol::LogRequest>(&*message))
    logs_.request(*request);
  if (const auto* renewed = std::get_if<node_protocol::RenewedCertificate>(&*message))
    if (renewal_.renewed) renewal_.renewed(renewed->certificate);
  if (const auto* extension = std::get_if<node_protocol::LeaseExtension>(&*message)) {
    lease_.keep_until(std::min(extension->sent_ns, boottime_ns()) + ns_of(extension->lease));
    core_->keep_until(seconds_of(lease_.kept_until_ns()));
  }
  if (const auto* refusal = std::get_if<node_protocol::NodeRefusal>(&*message)) {
    os::log_error("the controller refuses this node: " + printable(refusal->reason, 300));
    link_->reconnect();
  }
  return carry_out();
}

void NodeAgent::take(const node_protocol::NodeWelcome& welcome) {
  is_welcome_ = true;
  link_->confirm();
  latest_problem_.clear();
  heartbeat_ns_ = ns_of(welcome.heartbeat);
  lease_.renew(lease_.last_contact_ns(), ns_of(welcome.lease));
  renew_lease(welcome.sent_ns);
  reading_changes_.forget();
  core_->welcomed(welcome.lease);
  lease_.end_extension();
  send(node_protocol::NodeReports{.is_complete = true, .reports = core_->complete_report()});
  send_heartbeat(boottime_ns());
}

// A controller that repeats a time which this agent has not reached does not count.
void NodeAgent::renew_lease(std::int64_t sent_ns) {
  core_->answered(seconds_of(std::min(sent_ns, boottime_ns())));
  lease_.renew(std::max(lease_.last_contact_ns(), std::min(sent_ns, boottime_ns())),
               lease_.lease_ns());
}

void NodeAgent::send_heartbeat(std::int64_t now) {
  send(node_protocol::NodeHeartbeat{
      .sent_ns = now, .sequence = ++sequence_, .failed_devices = failed_devices_});
  next_heartbeat_ns_ = now + heartbeat_ns_;
}

void NodeAgent::measure_devices(std::int64_t now) {
  // A heartbeat that comes a little early still measures.
  next_measure_ns_ = now + kMeasureNs * 9 / 10;
  if (options_.facts.devices == 0) {
    if (options_.publish_metrics) options_.publish_metrics(metrics_text({}));
    return;
  }
  const double now_s = seconds_of(now).value;
  node_protocol::DeviceReadings readings;
  if (device_reader_ == nullptr) {
    readings = replica_meter_.read(runner_.measured(), now_s);
  } else if (const auto state = device_reader_->latest(now_s)) {
    readings = state->readings;
    failed_devices_ = state->failed;
  }
  // All the devices that the controller knows, and no others.
  const std::uint32_t all = static_cast<std::uint32_t>(
      (std::uint64_t{1} << static_cast<unsigned>(options_.facts.devices)) - 1);
  if (readings.devices != all) {
    readings.source = node_protocol::ReadingSource::kNone;
    readings.devices = all;
    const auto count = static_cast<std::size_t>(options_.facts.devices);
    readings.use.assign(count, node_protocol::kUnknownPercent);
    readings.memory.assign(count, node_protocol::kUnknownPercent);
  }
  failed_devices_ &= all;
  if (options_.publish_metrics) options_.publish_metrics(metrics_text(readings));
  if (!is_welcome_) return;
  if (const auto changes = reading_changes_.next(readings, now_s)) send(*changes);
}

std::string NodeAgent::metrics_text(const node_protocol::DeviceReadings& readings) const {
  monitoring::MetricsText text;
  const auto add_devices = [&](std::string_view name, std::string_view help, auto value) {
    text.begin(name, "gauge", help);
    for (int device = 0; device < options_.facts.devices; ++device)
      if (const std::optional<double> known = value(device))
        text.sample(*known, {{"device", std::to_string(device)}});
  };
  const auto part = [](std::uint8_t percent) {
    return percent == node_protocol::kUnknownPercent ? std::optional<double>() : percent / 100.0;
  };
  add_devices("regatta_device_use_ratio", "Part of the latest second in which the device worked.",
              [&](int device) { return part(at(readings.use, device)); });
  add_devices("regatta_device_memory_ratio", "Part of the device's memory in use.",
              [&](int device) { return part(at(readings.memory, device)); });
  add_devices("regatta_device_failed", "1: the device is broken.", [&](int device) {
    return std::optional<double>(failed_devices_ >> static_cast<unsigned>(device) & 1);
  });
  text.begin("regatta_device_source_info", "gauge", "Where the figures of the devices come from.");
  text.sample(
      1, {{"source", at(node_protocol::kReadingSourceNames, static_cast<int>(readings.source))}});
  text.add("regatta_agent_replicas", "gauge", "Replicas that run on the node.",
           static_cast<double>(core_->started().size()));
  text.add("regatta_agent_connected", "gauge", "1: the controller knows this node.",
           is_welcome_ ? 1 : 0);
  text.add("regatta_agent_heartbeats_total", "counter", "Heartbeats that were sent.",
           static_cast<double>(sequence_));
  text.add("regatta_agent_resident_memory_bytes", "gauge", "Resident memory of the agent.",
           static_cast<double>(os::resident_memory(::getpid()).value));
  return text.take();
}

Status NodeAgent::handle_time() {
  const std::int64_t now = boottime_ns();
  const bool is_lease_over = seconds_of(now) > core_->first_end();
  if (now < next_heartbeat_ns_ && !is_lease_over) return {};
  core_->tick(seconds_of(now));
  runner_.trim_files();
  if (now >= next_prune_ns_) {
    runner_.prune();
    next_prune_ns_ = now + kPruneEveryNs;
  }
  if (now < next_heartbeat_ns_) return carry_out();
  next_heartbeat_ns_ = now + heartbeat_ns_;
  REGATTA_TRY_DO(carry_out());
  if (now >= next_measure_ns_) measure_devices(now);
  if (!is_open_) return {};
  if (now - latest_answer_ns_ > std::max(kSilenceLeastNs, 4 * heartbeat_ns_)) {
    link_->reconnect();
    return {};
  }
  if (!is_welcome_) return {};
  send_heartbeat(now);
  if (renewal_.due_request)
    if (const auto request = renewal_.due_request())
      send(node_protocol::CertificateRequest{.request = *request});
  return {};
}

Status NodeAgent::carry_out() {
  for (;;) {
    const AgentActions actions = core_->take_actions();
    REGATTA_TRY_DO(journal_.append(actions.journal));
    for (const JournalEntry& entry : actions.journal)
      if (entry.phase == EntryPhase::kForgotten) runner_.forget(entry.key);
    for (const control::ReplicaOrder& order : actions.starts)
      start(order);
    for (const control::ReplicaKey& key : actions.stops)
      runner_.stop(key);
    for (const control::ReplicaKey& key : actions.kills)
      runner_.kill(key);
    if (is_welcome_ && !actions.reports.empty())
      send(node_protocol::NodeReports{.is_complete = false, .reports = actions.reports});
    // A replica that could not be started is over at once.
    if (actions.starts.empty()) return {};
  }
}

void NodeAgent::start(const control::ReplicaOrder& order) {
  const Status started = runner_.start(order);
  if (started) {
    os::log_info(replica_text(order.key) + ": started");
    return;
  }
  os::log_error(replica_text(order.key) + ": not started: " + started.error().message);
  // The job's user reads it there.
  RankLogWriter(runner_.run_folder(order.key), 0, 0)
      .write("regatta: " + started.error().message + "\n");
  // A user that is not known here, or not allowed: another server may not help. All else is the
  // server's fault.
  const bool is_jobs_fault =
      started.error().code == Code::kNotFound || started.error().code == Code::kUnsupported;
  core_->ended(order.key, is_jobs_fault ? kCannotRun : 0, 0, !is_jobs_fault);
}

}  // namespace regatta::node_agent
