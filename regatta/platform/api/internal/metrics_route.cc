#include "regatta/platform/api/internal/metrics_route.h"

#include <array>
#include <map>
#include <string>
#include <utility>

#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/http/compression.h"
#include "regatta/base/os/memory.h"
#include "regatta/platform/monitoring/metrics_text.h"

namespace regatta::api {
namespace {

using monitoring::MetricsText;
using monitoring::TenantSums;

constexpr double kMsPerSecond = 1000;

double as_number(auto value) {
  return static_cast<double>(value);
}

void add_cluster(const control::ClusterTables& tables, MetricsText& text) {
  std::array<long long, control::kJobPhaseNames.size()> phases{};
  for (const auto& [id, job] : tables.jobs)
    ++phases[static_cast<std::size_t>(job.phase)];
  text.begin("regatta_jobs", "gauge", "Jobs by phase.");
  for (std::size_t i = 0; i < phases.size(); ++i)
    text.sample(as_number(phases[i]), {{"phase", control::kJobPhaseNames[i]}});
  long long silent = 0;
  for (const control::ManagedNode& node : tables.nodes)
    silent += node.is_silent ? 1 : 0;
  text.add("regatta_nodes", "gauge", "Nodes that have joined.", as_number(tables.nodes.size()));
  text.add("regatta_nodes_silent", "gauge", "Nodes that are not heard.", as_number(silent));
  text.add("regatta_node_silences_total", "counter", "Nodes that were not heard any more.",
           as_number(tables.silences));
  text.add("regatta_lost_replicas_total", "counter", "Replicas that are lost with their nodes.",
           as_number(tables.lost_replicas));
}

void add_controller(controller::ControllerRuntime& runtime,
                    const controller::NodeSessions& sessions, MetricsText& text) {
  const controller::DecisionStats& stats = runtime.decision_stats();
  text.add("regatta_nodes_connected", "gauge", "Nodes whose agent is connected.",
           as_number(sessions.count()));
  text.add("regatta_decisions_total", "counter", "Decisions of the scheduler.",
           as_number(stats.decisions));
  text.add("regatta_decision_actions_total", "counter", "Actions that were carried out.",
           as_number(stats.actions));
  text.add("regatta_decision_outdated_actions_total", "counter",
           "Actions that the state did not allow any more.", as_number(stats.outdated));
  text.add("regatta_decision_seconds", "gauge", "Time of the last decision.",
           stats.last_time.value);
  text.add("regatta_store_revision", "gauge", "The latest change that is durable.",
           as_number(runtime.durable()));
  text.add("regatta_store_waiting_changes", "gauge", "Changes that wait for the disk.",
           as_number(runtime.waiting_changes()));
  text.add("regatta_store_read_only", "gauge", "1 while the disk is full or nearly.",
           runtime.is_read_only() ? 1 : 0);
  text.add("regatta_controller_resident_memory_bytes", "gauge",
           "Resident memory of the controller.", as_number(os::resident_memory(::getpid()).value));
}

void add_devices(const monitoring::DeviceTable& devices, MetricsText& text) {
  long long used = 0;
  long long failed = 0;
  long long away = 0;
  long long free = 0;
  long long measured = 0;
  double use = 0;
  for (std::size_t place = 0; place < devices.count(); ++place) {
    const unsigned state = devices.state()[place];
    if ((state & monitoring::kDeviceFailed) != 0)
      ++failed;
    else if ((state & monitoring::kDeviceHasJob) != 0)
      ++used;
    else if (state != 0)
      ++away;
    else
      ++free;
    if ((state & monitoring::kDeviceHasJob) == 0 ||
        devices.use()[place] == node_protocol::kUnknownPercent)
      continue;
    ++measured;
    use += devices.use()[place] / 100.0;
  }
  text.begin("regatta_devices", "gauge", "Devices by state.");
  text.sample(as_number(free), {{"state", "free"}});
  text.sample(as_number(used), {{"state", "used"}});
  text.sample(as_number(failed), {{"state", "failed"}});
  text.sample(as_number(away), {{"state", "unavailable"}});
  text.add("regatta_devices_measured", "gauge", "Devices that jobs have and whose use is known.",
           as_number(measured));
  text.add("regatta_devices_working", "gauge", "The sum of the use of these, from 0 to 1 each.",
           use);
}

// One metric of all tenants.
template <typename Value>
void add_tenants(const monitoring::TenantLedger& ledger, MetricsText& text,
                 const std::array<std::string_view, 3>& name_type_help, const Value& value) {
  text.begin(name_type_help[0], name_type_help[1], name_type_help[2]);
  for (const auto& [name, account] : ledger.tenants())
    text.sample(as_number(value(account)), {{"queue", name.first}, {"user", name.second}});
}

void add_all_tenants(const monitoring::TenantLedger& ledger, MetricsText& text) {
  using Account = monitoring::TenantAccount;
  const auto add_sum = [&](std::string_view name, std::string_view help, auto member) {
    add_tenants(ledger, text, {name, "counter", help},
                [member](const Account& account) { return account.sums.*member; });
  };
  add_tenants(ledger, text, {"regatta_tenant_devices", "gauge", "Devices that the tenant has."},
              [](const Account& account) { return account.devices; });
  add_tenants(ledger, text,
              {"regatta_tenant_pending_jobs", "gauge", "Jobs that wait and are not held."},
              [](const Account& account) { return account.pending; });
  add_sum("regatta_tenant_device_seconds_total", "Time that jobs had devices.",
          &TenantSums::device_s);
  add_sum("regatta_tenant_measured_device_seconds_total", "Of it, that whose use is known.",
          &TenantSums::measured_s);
  add_sum("regatta_tenant_used_device_seconds_total", "Of it, that in which the devices worked.",
          &TenantSums::used_s);
  add_sum("regatta_tenant_waiting_seconds_total", "Time that jobs waited.", &TenantSums::waiting_s);
  add_sum("regatta_tenant_money_total", "Device hours by the price of their type.",
          &TenantSums::money);
  add_sum("regatta_tenant_starts_total", "Attempts that began.", &TenantSums::starts);
  add_sum("regatta_tenant_evictions_total", "Attempts that ended for other jobs.",
          &TenantSums::evictions);
}

void add_alerts(const controller::ClusterMonitor& monitor, MetricsText& text) {
  std::map<std::string, long long> firing;
  for (const monitoring::AlertRule& rule : monitor.alerts().rules())
    firing[rule.name];
  for (const auto& [id, alert] : monitor.alerts().alerts())
    if (alert.phase == monitoring::AlertPhase::kFiring) ++firing[alert.rule];
  text.begin("regatta_alerts_firing", "gauge", "Alerts that fire, by rule.");
  for (const auto& [rule, count] : firing)
    text.sample(as_number(count), {{"rule", rule}});
  const auto& end_ms = monitor.options().certificate_end_ms;
  if (end_ms)
    text.add("regatta_certificate_end_timestamp_seconds", "gauge",
             "When the controller's certificate ends.", as_number(end_ms()) / kMsPerSecond);
}

}  // namespace

void get_metrics(controller::ControllerRuntime& runtime, const controller::NodeSessions& sessions,
                 controller::ClusterMonitor* monitor, const ApiRequest& request) {
  MetricsText text;
  add_cluster(runtime.tables(), text);
  add_controller(runtime, sessions, text);
  if (monitor != nullptr) {
    add_devices(monitor->devices(), text);
    add_all_tenants(monitor->tenants(), text);
    add_alerts(*monitor, text);
  }
  http::Response response;
  response.content_type = monitoring::kMetricsContentType;
  response.body = text.take();
  http::compress_for(request.http(), response);
  request.exchange->respond(std::move(response));
}

}  // namespace regatta::api
