#include "regatta/platform/controller/cluster_monitor.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/monitoring/alert_conditions.h"

namespace regatta::controller {
namespace {

constexpr Seconds kSecond{1};
constexpr int kSecondsPerStep = static_cast<int>(monitoring::kStepTime.value);
constexpr std::string_view kJobKeys = "job/";
constexpr std::string_view kNodeKeys = "node/";
constexpr double kMsPerSecond = 1000;

std::int64_t unix_ms() {
  return static_cast<std::int64_t>(os::system_now().value * kMsPerSecond);
}

// The parts of a node that are read live: their record is late while the disk of the store is full.
int flags_of(const control::ManagedNode& node) {
  return (node.is_silent ? 1 : 0) | (node.is_fenced ? 2 : 0) | (node.is_connected ? 4 : 0);
}

}  // namespace

struct ClusterMonitor::Impl {
  Impl(http::EventLoop& event_loop, ControllerRuntime& given_runtime, MonitorOptions given,
       std::string epoch)
      : loop(event_loop),
        runtime(given_runtime),
        options(std::move(given)),
        devices(std::move(epoch)),
        ledger(options.prices) {}

  const control::ClusterTables& tables() const { return runtime.tables(); }

  Status load() {
    const Seconds now = os::monotonic_now();
    devices.update_layout(tables());
    flags.resize(tables().nodes.size(), -1);
    REGATTA_TRY_DO(ledger.load(tables(), now, unix_ms(), runtime.options().control.lease));
    REGATTA_TRY_DO(book.load(tables(), now));
    for (const auto& [id, job] : tables().jobs)
      see_trouble(id, job);
    for (const control::JobId id : tables().live)
      see_places(id, tables().jobs.at(id));
    last_tick = now;
    return {};
  }

  void committed(std::span<const store::Change> changes) {
    const Seconds now = os::monotonic_now();
    for (const store::Change& change : changes) {
      const std::string_view key = change.key;
      if (key.starts_with(kJobKeys)) {
        see_job(parse_number<control::JobId>(key.substr(kJobKeys.size())).value_or(0), now);
      } else if (key.starts_with(kNodeKeys)) {
        devices.update_layout(tables());
        devices.update_node(tables(), tables().find_node(key.substr(kNodeKeys.size())));
      }
    }
  }

  void see_job(control::JobId id, Seconds now) {
    const control::ManagedJob* const job = tables().find_job(id);
    if (job == nullptr) return;
    ledger.see(tables(), id, now);
    see_trouble(id, *job);
    see_places(id, *job);
  }

  // The nodes on which the job was and is.
  void see_places(control::JobId id, const control::ManagedJob& job) {
    std::set<int> nodes;
    if (job.attempt != nullptr)
      for (const control::Replica& replica : job.attempt->replicas)
        nodes.insert(replica.node);
    std::set<int> touched = nodes;
    const auto before = job_nodes.find(id);
    if (before != job_nodes.end()) touched.insert(before->second.begin(), before->second.end());
    for (const int node : touched)
      devices.update_node(tables(), node);
    if (nodes.empty())
      job_nodes.erase(id);
    else
      job_nodes[id].assign(nodes.begin(), nodes.end());
  }

  void see_trouble(control::JobId id, const control::ManagedJob& job) {
    if (job.phase == control::JobPhase::kFailed &&
        static_cast<double>(unix_ms() - job.ended_ms) / kMsPerSecond <
            monitoring::kFailedJobTime.value)
      facts.failed_jobs.insert(id);
    if (job.failures > 0 && !control::is_over(job.phase))
      facts.restarted_jobs.insert(id);
    else
      facts.restarted_jobs.erase(id);
  }

  void read(int node, const node_protocol::DeviceReadings* readings) {
    devices.update_layout(tables());
    if (readings == nullptr)
      devices.forget(node);
    else
      devices.take(node, *readings);
  }

  void tick() {
    loop.after(kSecond, [this, alive = std::weak_ptr(life)] {
      if (!alive.expired()) tick();
    });
    const Seconds now = os::monotonic_now();
    const double elapsed = (now - last_tick).value;
    last_tick = now;
    devices.update_layout(tables());
    see_flags();
    devices.end_second([&](const monitoring::JobSecond& second) {
      ledger.add_use(second.job, {.measured_s = second.measured * elapsed,
                                  .used_s = second.used * elapsed,
                                  .memory_s = second.memory * elapsed});
      monitoring::JobSecond& sum = step_use[second.job];
      sum.measured += second.measured;
      sum.used += second.used;
    });
    if (++seconds % kSecondsPerStep == 0) end_step(now);
    observe(now);
    if (now - last_stored >= options.tenants_interval) store_tenants(now);
  }

  void see_flags() {
    flags.resize(tables().nodes.size(), -1);
    for (int index = 0; index < static_cast<int>(flags.size()); ++index) {
      const int now = flags_of(at(tables().nodes, index));
      if (std::exchange(at(flags, index), now) != now) devices.update_node(tables(), index);
    }
  }

  void end_step(Seconds now) {
    devices.end_step(unix_ms());
    facts.job_use.clear();
    for (const auto& [id, sum] : std::exchange(step_use, {}))
      if (sum.measured > 0) facts.job_use[id] = 100 * sum.used / sum.measured;
    facts.oldest_ms.clear();
    for (const auto& [queue, keys] : tables().pending) {
      control::JobId oldest = 0;  // numbers rise with the time of submission
      for (const auto& [priority, id] : keys)
        if ((oldest == 0 || id < oldest) && !tables().jobs.at(id).is_held) oldest = id;
      if (oldest != 0) facts.oldest_ms[queue] = tables().jobs.at(oldest).submitted_ms;
    }
    std::erase_if(facts.failed_jobs, [&](control::JobId id) {
      const control::ManagedJob* const job = tables().find_job(id);
      return job == nullptr || static_cast<double>(unix_ms() - job->ended_ms) / kMsPerSecond >=
                                   monitoring::kFailedJobTime.value;
    });
    ledger.advance(now);
  }

  void observe(Seconds now) {
    facts.is_disk_low = runtime.is_read_only();
    facts.decision_time = runtime.decision_stats().last_time;
    if (options.certificate_end_ms) facts.certificate_end_ms = options.certificate_end_ms();
    book.observe(find_conditions(book.rules(), tables(), facts, unix_ms()), now, unix_ms());
    std::vector<monitoring::Alert> messages = book.take_messages();
    if (!options.tell) {
      for (const monitoring::Alert& message : messages)
        book.set_told(message.id, message.phase);
      messages.clear();
    }
    store_alerts();
    if (messages.empty()) return;
    // Told once they are stored: else a controller that is ended now would forget that it told.
    runtime.when_durable([this, alive = std::weak_ptr(life), messages = std::move(messages)] {
      if (!alive.expired())
        for (const monitoring::Alert& message : messages)
          tell(message);
    });
  }

  void tell(const monitoring::Alert& message) {
    options.tell(message, [this, &event_loop = loop, alive = std::weak_ptr(life), id = message.id,
                           phase = message.phase] {
      event_loop.post([this, alive, id, phase] {
        if (alive.expired()) return;
        book.set_told(id, phase);
        store_alerts();
      });
    });
  }

  void store_alerts() {
    auto records = book.take_records();
    if (records.empty()) return;
    runtime.change([&](auto& core, const control::Moment&) {
      for (auto& [key, value] : records)
        core.set_observed(key, std::move(value));
      return 0;
    });
  }

  void store_tenants(Seconds now) {
    if (runtime.is_read_only()) return;
    last_stored = now;
    ledger.advance(now);
    auto records = ledger.take_records(unix_ms());
    if (records.empty()) return;
    runtime.change([&](auto& core, const control::Moment&) {
      for (auto& [key, value] : records)
        core.set_observed(key, std::move(value));
      return 0;
    });
  }

  http::EventLoop& loop;
  ControllerRuntime& runtime;
  MonitorOptions options;
  monitoring::DeviceTable devices;
  monitoring::TenantLedger ledger;
  monitoring::AlertBook book;
  monitoring::ClusterFacts facts;
  std::unordered_map<control::JobId, std::vector<int>> job_nodes;  // of live jobs
  std::map<control::JobId, monitoring::JobSecond> step_use;
  std::vector<int> flags;  // of nodes, as they were seen last
  Seconds last_tick;
  Seconds last_stored;
  long long seconds = 0;
  std::shared_ptr<int> life = std::make_shared<int>(0);
};

Result<std::unique_ptr<ClusterMonitor>> ClusterMonitor::open(http::EventLoop& loop,
                                                             ControllerRuntime& runtime,
                                                             NodeSessions& sessions,
                                                             MonitorOptions options,
                                                             std::string epoch) {
  auto impl = std::make_unique<Impl>(loop, runtime, std::move(options), std::move(epoch));
  REGATTA_TRY_DO(impl->load());
  Impl* const self = impl.get();
  const std::weak_ptr alive(impl->life);
  runtime.on_commit([self, alive](std::span<const store::Change> changes) {
    if (!alive.expired()) self->committed(changes);
  });
  sessions.on_readings([self, alive](int node, const node_protocol::DeviceReadings* readings) {
    if (!alive.expired()) self->read(node, readings);
  });
  self->tick();
  return std::unique_ptr<ClusterMonitor>(new ClusterMonitor(std::move(impl)));
}

ClusterMonitor::ClusterMonitor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ClusterMonitor::~ClusterMonitor() {
  impl_->life.reset();
}

monitoring::DeviceTable& ClusterMonitor::devices() {
  impl_->devices.update_layout(impl_->tables());
  return impl_->devices;
}

const monitoring::TenantLedger& ClusterMonitor::tenants() {
  impl_->ledger.advance(os::monotonic_now());
  return impl_->ledger;
}

const monitoring::AlertBook& ClusterMonitor::alerts() const {
  return impl_->book;
}

const MonitorOptions& ClusterMonitor::options() const {
  return impl_->options;
}

Status ClusterMonitor::set_alert_rules(std::string_view body) {
  REGATTA_TRY_DO(impl_->book.set_rules(body, "body"));
  impl_->store_alerts();
  return {};
}

store::Revision ClusterMonitor::alert_rules_revision() const {
  const auto record = impl_->tables().observed.find(std::string(monitoring::kAlertRulesKey));
  return record == impl_->tables().observed.end() ? 0 : record->second.revision;
}

}  // namespace regatta::controller
