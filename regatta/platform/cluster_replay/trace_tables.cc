#include "regatta/platform/cluster_replay/trace_tables.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/packing/cluster_tables.h"
#include "regatta/platform/packing/table_rows.h"

namespace regatta::cluster_replay {
namespace {

constexpr int kServerDevices = 8;
constexpr int kJobDevicesMax = 4096;
constexpr int kNodeCoresMax = 1000;
constexpr double kMemoryGibMax = 1 << 20;
constexpr NumberRange kTimes{0, 1e9};
constexpr double kShortest = 1;  // a run time of 0 is one of less than a second

void sort_by_submission(std::vector<TracedJob>& jobs) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const TracedJob& a, const TracedJob& b) {
    return a.request.submitted < b.request.submitted;
  });
}

// A time of the line, nothing where the trace has none.
Result<std::optional<double>> optional_time(const packing::TableRows& rows,
                                            std::string_view column) {
  if (rows.text(column).empty()) return std::optional<double>();
  REGATTA_TRY(time, rows.real(column, kTimes));
  return std::optional<double>(time);
}

// The times of a job before the end of the trace is known.
struct Lifetime {
  double created = 0;
  std::optional<double> deleted;
};

Result<Lifetime> read_lifetime(const packing::TableRows& rows) {
  REGATTA_TRY(created, optional_time(rows, "creation_time"));
  REGATTA_TRY(deleted, optional_time(rows, "deletion_time"));
  return Lifetime{created.value_or(0), deleted};
}

// Gives each job its run time; jobs that were not deleted run to the last time of the trace.
void set_run_times(std::vector<TracedJob>& jobs, const std::vector<Lifetime>& lifetimes) {
  double last = 0;
  for (const Lifetime& lifetime : lifetimes)
    last = std::max(last, std::max(lifetime.created, lifetime.deleted.value_or(0)));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Lifetime& lifetime = lifetimes[i];
    jobs[i].request.submitted = {lifetime.created};
    jobs[i].run_time = {std::max(kShortest, lifetime.deleted.value_or(last) - lifetime.created)};
  }
  sort_by_submission(jobs);
}

sched::ClusterNode node_with(std::string name, std::string device_type, int devices) {
  sched::ClusterNode node;
  node.name = std::move(name);
  node.device_type = std::move(device_type);
  node.devices = devices;
  node.cpu_milli = kAmpleCpuMilli;
  node.memory_mib = kAmpleMemoryMib;
  return node;
}

}  // namespace

Result<std::vector<TracedJob>> read_philly_jobs(std::string_view text, const std::string& file) {
  REGATTA_TRY(rows,
              packing::TableRows::open(text, file, {"submit_s", "duration_s", "num_gpus", "vc"}));
  std::vector<TracedJob> jobs;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    REGATTA_TRY(submitted, rows.real("submit_s", kTimes));
    REGATTA_TRY(duration, rows.real("duration_s", {kShortest, kTimes.high}));
    REGATTA_TRY(devices, rows.number("num_gpus", {1, kJobDevicesMax}));
    TracedJob job;
    job.request.name = fmt::format("philly-{}", jobs.size());
    job.request.queue = rows.text("vc");
    job.request.roles = {whole_device_role(devices, kServerDevices)};
    job.request.submitted = {submitted};
    job.run_time = {duration};
    jobs.push_back(std::move(job));
  }
  sort_by_submission(jobs);
  return jobs;
}

Result<std::vector<TracedJob>> read_dlrm_instances(std::string_view text, const std::string& file) {
  REGATTA_TRY(rows, packing::TableRows::open(text, file,
                                             {"role", "app_name", "cpu_request", "gpu_request",
                                              "memory_request", "creation_time", "deletion_time"}));
  std::vector<TracedJob> jobs;
  std::vector<Lifetime> lifetimes;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    REGATTA_TRY(cores, rows.number("cpu_request", {0, kNodeCoresMax}));
    REGATTA_TRY(devices, rows.number("gpu_request", {0, sched::kNodeDevicesMax}));
    REGATTA_TRY(memory_gib, rows.real("memory_request", {0, kMemoryGibMax}));
    REGATTA_TRY(lifetime, read_lifetime(rows));
    TracedJob job;
    job.request.name = fmt::format("dlrm-{}", jobs.size());
    job.request.queue = "online";
    job.request.user = rows.text("app_name");
    job.request.job_class = sched::JobClass::kOnline;
    job.request.is_preemptible = false;
    sched::Role role;
    role.name = rows.text("role");
    role.devices = devices;
    role.cpu_milli = 1000 * cores;
    role.memory_mib = static_cast<int>(1024 * memory_gib);
    job.request.roles = {role};
    jobs.push_back(std::move(job));
    lifetimes.push_back(lifetime);
  }
  set_run_times(jobs, lifetimes);
  return jobs;
}

Result<std::vector<TracedJob>> read_openb_jobs(std::string_view text, const std::string& file) {
  REGATTA_TRY(pods, packing::read_pods(text, file));
  REGATTA_TRY(rows,
              packing::TableRows::open(text, file, {"qos", "creation_time", "deletion_time"}));
  std::vector<TracedJob> jobs;
  std::vector<Lifetime> lifetimes;
  for (packing::Pod& pod : pods) {
    REGATTA_TRY(is_row, rows.next());
    REGATTA_CHECK(is_row);
    REGATTA_TRY(lifetime, read_lifetime(rows));
    TracedJob job;
    job.request.name = fmt::format("openb-{}", jobs.size());
    job.request.queue = rows.text("qos");
    job.request.device_types = std::move(pod.gpu_models);
    sched::Role role;
    role.name = "pod";
    role.devices = pod.gpus;
    role.device_milli = pod.gpus > 0 ? pod.gpu_milli : sched::kDeviceMilli;
    role.cpu_milli = pod.cpu_milli;
    role.memory_mib = pod.memory_mib;
    job.request.roles = {role};
    jobs.push_back(std::move(job));
    lifetimes.push_back(lifetime);
  }
  set_run_times(jobs, lifetimes);
  return jobs;
}

Result<std::vector<sched::ClusterNode>> read_spot_nodes(std::string_view text,
                                                        const std::string& file) {
  REGATTA_TRY(rows, packing::TableRows::open(
                        text, file, {"gpu_model", "gpu_capacity_num", "cpu_num", "node_name"}));
  std::vector<sched::ClusterNode> nodes;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) return nodes;
    REGATTA_TRY(devices, rows.number("gpu_capacity_num", {0, sched::kNodeDevicesMax}));
    REGATTA_TRY(cores, rows.number("cpu_num", {0, kNodeCoresMax}));
    sched::ClusterNode node = node_with(std::string(rows.text("node_name")),
                                        std::string(rows.text("gpu_model")), devices);
    node.cpu_milli = 1000 * cores;
    nodes.push_back(std::move(node));
  }
}

std::vector<sched::ClusterNode> cluster_nodes_of(const std::vector<packing::GpuNode>& nodes) {
  std::vector<sched::ClusterNode> cluster;
  cluster.reserve(nodes.size());
  for (const packing::GpuNode& node : nodes) {
    cluster.push_back(node_with(node.name, node.gpu_model, node.gpus));
    cluster.back().cpu_milli = node.cpu_milli;
    cluster.back().memory_mib = node.memory_mib;
  }
  return cluster;
}

void add_servers(std::vector<sched::ClusterNode>& nodes, const ServerGroup& group) {
  const int first_leaf = nodes.empty() ? 0 : nodes.back().leaf + 1;
  for (int i = 0; i < group.servers; ++i) {
    nodes.push_back(
        node_with(fmt::format("server-{}", nodes.size()), group.device_type, group.devices));
    nodes.back().leaf = first_leaf + i / group.leaf_servers;
  }
}

Result<sched::QuotaTree> queues_of(const std::vector<TracedJob>& jobs) {
  std::set<std::string> names;
  for (const TracedJob& job : jobs)
    if (!job.request.queue.empty()) names.insert(job.request.queue);
  if (names.empty()) return sched::QuotaTree();
  std::vector<sched::QuotaQueue> queues;
  for (const std::string& name : names) {
    queues.emplace_back();
    queues.back().name = name;
  }
  return sched::QuotaTree::create(std::move(queues));
}

}  // namespace regatta::cluster_replay
