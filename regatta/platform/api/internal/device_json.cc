#include "regatta/platform/api/internal/device_json.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/api/internal/json_object.h"

namespace regatta::api {
namespace {

using monitoring::DeviceTable;
using monitoring::PlaceRuns;
using node_protocol::kUnknownPercent;

constexpr double kPercent = 100;

std::string_view bytes_of(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The lower 32 bits of a job's number, the lowest byte first.
void append_job(control::JobId job, std::string& bytes) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(static_cast<std::uint64_t>(job) >> shift & 0xff);
}

std::string list_of(const PlaceRuns& runs) {
  std::string list;
  for (const std::uint32_t number : runs)
    append_item(list, std::to_string(number));
  return finished_list(std::move(list));
}

std::string bytes_in(const PlaceRuns& runs, const std::vector<std::uint8_t>& values) {
  std::string bytes;
  for (std::size_t i = 0; i < runs.size(); i += 2)
    bytes += bytes_of(values).substr(runs[i], runs[i + 1]);
  return http::base64(bytes);
}

std::string jobs_in(const PlaceRuns& runs, const std::vector<control::JobId>& jobs) {
  std::string bytes;
  for (std::size_t i = 0; i < runs.size(); i += 2)
    for (std::uint32_t place = runs[i]; place < runs[i] + runs[i + 1]; ++place)
      append_job(jobs[place], bytes);
  return http::base64(bytes);
}

// The mean of what is known of the devices, or null.
std::string mean_json(const std::vector<std::uint8_t>& values, std::uint32_t first,
                      std::uint32_t devices) {
  double sum = 0;
  int known = 0;
  for (std::uint32_t device = 0; device < 32 && first + device < values.size(); ++device) {
    if ((devices >> device & 1) == 0 || values[first + device] == kUnknownPercent) continue;
    sum += values[first + device];
    ++known;
  }
  return known == 0 ? "null" : fmt::format("{:.4g}", sum / known);
}

std::string shared_json(const std::vector<node_protocol::SharedTenant>& tenants) {
  std::string list;
  for (const node_protocol::SharedTenant& tenant : tenants) {
    JsonObject item;
    item.add("tenant", tenant.name);
    item.add("device", tenant.device);
    item.add("use_percent", tenant.use_percent);
    item.add("memory_mib", tenant.memory_mib);
    append_item(list, item.take());
  }
  return finished_list(std::move(list));
}

// By tenant, over all nodes.
std::string all_shared_json(const DeviceTable& devices) {
  struct Sum {
    int devices = 0;
    int use_percent = 0;
    long long memory_mib = 0;
  };
  std::map<std::string, Sum> sums;
  for (int node = 0; node < static_cast<int>(devices.nodes().size()); ++node) {
    for (const node_protocol::SharedTenant& tenant : devices.shared(node)) {
      Sum& sum = sums[tenant.name];
      ++sum.devices;
      sum.use_percent += tenant.use_percent;
      sum.memory_mib += tenant.memory_mib;
    }
  }
  std::string list;
  for (const auto& [name, sum] : sums) {
    JsonObject item;
    item.add("tenant", name);
    item.add("devices", sum.devices);
    item.add("use_percent", sum.use_percent);
    item.add("memory_mib", sum.memory_mib);
    append_item(list, item.take());
  }
  return finished_list(std::move(list));
}

}  // namespace

std::string devices_json(controller::ClusterMonitor& monitor,
                         const control::ClusterTables& tables) {
  DeviceTable& devices = monitor.devices();
  std::string names;
  std::string counts;
  std::string sources;
  for (std::size_t i = 0; i < devices.nodes().size(); ++i) {
    std::string name;
    append_json_quoted(tables.nodes[i].facts.name, name);
    append_item(names, name);
    counts += static_cast<char>(devices.nodes()[i].count);
    sources += static_cast<char>(devices.nodes()[i].source);
  }
  std::string jobs;
  for (const control::JobId job : devices.jobs())
    append_job(job, jobs);
  JsonObject object;
  object.add("cursor", devices.cursor());
  object.add("count", devices.count());
  object.add_raw("nodes", finished_list(std::move(names)));
  object.add("counts", http::base64(counts));
  object.add("sources", http::base64(sources));
  object.add("use", http::base64(bytes_of(devices.use())));
  object.add("memory", http::base64(bytes_of(devices.memory())));
  object.add("state", http::base64(bytes_of(devices.state())));
  object.add("job", http::base64(jobs));
  return object.take();
}

std::string device_event(controller::ClusterMonitor& monitor, std::string& cursor) {
  DeviceTable& devices = monitor.devices();
  const monitoring::DeviceChanges changes = devices.changes_since(cursor);
  cursor = changes.cursor;
  if (!changes.is_reset && changes.use.empty() && changes.state.empty()) return "";
  JsonObject object;
  object.add("kind", "device");
  object.add("cursor", changes.cursor);
  if (changes.is_reset) object.add("reset", true);
  if (!changes.use.empty()) {
    JsonObject use;
    use.add_raw("runs", list_of(changes.use));
    use.add("use", bytes_in(changes.use, devices.use()));
    use.add("memory", bytes_in(changes.use, devices.memory()));
    object.add_raw("use", use.take());
  }
  if (!changes.state.empty()) {
    JsonObject state;
    state.add_raw("runs", list_of(changes.state));
    state.add("state", bytes_in(changes.state, devices.state()));
    state.add("job", jobs_in(changes.state, devices.jobs()));
    object.add_raw("state", state.take());
  }
  return object.take();
}

std::string device_history_json(controller::ClusterMonitor& monitor,
                                const control::ClusterTables& tables, int node) {
  const DeviceTable& devices = monitor.devices();
  const monitoring::NodePlaces places = at(devices.nodes(), node);
  std::string list;
  for (std::uint32_t i = 0; i < places.count; ++i) {
    JsonObject item;
    item.add("use", http::base64(bytes_of(devices.use_history(places.first + i))));
    item.add("memory", http::base64(bytes_of(devices.memory_history(places.first + i))));
    append_item(list, item.take());
  }
  JsonObject object;
  object.add("node", at(tables.nodes, node).facts.name);
  object.add("source", at(node_protocol::kReadingSourceNames, static_cast<int>(places.source)));
  object.add("step_s", monitoring::kStepTime.value);
  object.add("end_ms", devices.history_end_ms());
  object.add_raw("devices", finished_list(std::move(list)));
  object.add_raw("shared", shared_json(devices.shared(node)));
  return object.take();
}

std::string job_devices_json(controller::ClusterMonitor& monitor,
                             const control::ClusterTables& tables, const control::ManagedJob& job) {
  const DeviceTable& devices = monitor.devices();
  const monitoring::JobAccount* const known = monitor.tenants().job(job.id);
  const monitoring::JobAccount account = known == nullptr ? monitoring::JobAccount() : *known;
  std::string replicas;
  for (std::size_t i = 0; job.attempt != nullptr && i < job.attempt->replicas.size(); ++i) {
    const control::Replica& replica = job.attempt->replicas[i];
    const std::uint32_t first = at(devices.nodes(), replica.node).first;
    JsonObject item;
    item.add("replica", i);
    item.add("node", at(tables.nodes, replica.node).facts.name);
    item.add("devices", replica.devices);
    item.add_raw("use_percent", mean_json(devices.use(), first, replica.devices));
    item.add_raw("memory_percent", mean_json(devices.memory(), first, replica.devices));
    append_item(replicas, item.take());
  }
  JsonObject object;
  object.add_revision("job", job.id);
  object.add("handle", control::handle_of(job));
  object.add("device_seconds", account.device_s);
  object.add("measured_device_seconds", account.measured_s);
  object.add("used_device_seconds", account.used_s);
  const auto percent = [&account](double part) {
    return account.measured_s > 0 ? fmt::format("{:.4g}", kPercent * part / account.measured_s)
                                  : std::string("null");
  };
  object.add_raw("use_percent", percent(account.used_s));
  object.add_raw("memory_percent", percent(account.memory_s));
  object.add_raw("replicas", finished_list(std::move(replicas)));
  return object.take();
}

std::string tenants_json(controller::ClusterMonitor& monitor,
                         const control::ClusterTables& tables) {
  std::string items;
  for (const auto& [name, account] : monitor.tenants().tenants()) {
    JsonObject item;
    item.add("queue", name.first);
    item.add("user", name.second);
    item.add("devices", account.devices);
    item.add("pending", account.pending);
    item.add("device_seconds", account.sums.device_s);
    item.add("measured_device_seconds", account.sums.measured_s);
    item.add("used_device_seconds", account.sums.used_s);
    item.add("waiting_seconds", account.sums.waiting_s);
    item.add("starts", account.sums.starts);
    item.add("evictions", account.sums.evictions);
    item.add("money", account.sums.money);
    append_item(items, item.take());
  }
  JsonObject prices;
  for (const auto& [type, price] : monitor.options().prices)
    prices.add(type, price);
  JsonObject object;
  object.add_revision("rev", tables.last_revision);
  object.add("currency", monitor.options().currency);
  object.add_raw("prices", prices.take());
  object.add_raw("items", finished_list(std::move(items)));
  object.add_raw("shared", all_shared_json(monitor.devices()));
  return object.take();
}

std::string alerts_json(const controller::ClusterMonitor& monitor,
                        const control::ClusterTables& tables) {
  std::string items;
  for (const auto& [id, alert] : monitor.alerts().alerts())
    append_item(items, monitoring::alert_json(alert));
  JsonObject object;
  object.add_revision("rev", tables.last_revision);
  object.add_raw("items", finished_list(std::move(items)));
  return object.take();
}

}  // namespace regatta::api
