// From static shares of a cluster to mixed ones: pods and services of GenTD and training jobs of
// Philly on one cluster, with one freedom of the scheduler more in each row.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/cluster_replay/replay_table.h"
#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/demand_tables.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::cluster_replay {
namespace {

constexpr double kDay = 86400;
constexpr Seconds kPast{6 * 3600.0};         // of GenTD
constexpr Seconds kReplayed{16.5 * 3600.0};  // what both tables of GenTD have after it
constexpr int kServerDevices = 8;
// Pods and services at their highest have this share of the devices, training has the rest.
constexpr double kOnlineShare = 0.575;
constexpr int kServiceReplicas = 28;  // of each of two services
constexpr double kPhillyDay = 30;     // of the first job that comes in the replay
constexpr int kBatchMemoryMib = 40 * 1024;
constexpr int kDeviceMemoryMib = 80 * 1024;
constexpr sched::Checkpointing kCheckpointing{{1800}, {10}, {60}};
// Two replicas of an elastic job do so much of what one does.
constexpr double kDoubled = 1.8;

struct MixedLoad {
  std::vector<TracedJob> services;  // with their demand, of which a scheduler may know
  std::vector<TracedJob> pods;
  std::vector<TracedJob> batch;
  int pods_most = 0;  // at one time
};

int most_at_once(const std::vector<TracedJob>& jobs) {
  std::vector<std::pair<double, int>> changes;
  for (const TracedJob& job : jobs) {
    changes.emplace_back(job.request.submitted.value, 1);
    changes.emplace_back((job.request.submitted + job.run_time).value, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0;
  int most = 0;
  for (const auto& [time, change] : changes)
    most = std::max(most, now += change);
  return most;
}

// Jobs of the day before wait when the replay begins; those of the trace's next hours come in it.
void add_batch(std::vector<TracedJob> philly, MixedLoad& load) {
  for (TracedJob& job : philly) {
    const double time = job.request.submitted.value - kPhillyDay * kDay;
    if (time < -kDay || time >= kReplayed.value) continue;
    job.request.submitted = {std::max(0.0, time)};
    job.request.queue = "batch";
    job.request.checkpointing = kCheckpointing;
    sched::Role& role = job.request.roles.front();
    role.device_memory_mib = kBatchMemoryMib;
    role.duty.shares = {1};
    load.batch.push_back(std::move(job));
  }
}

Result<MixedLoad> read_load(const BenchOptions& bench) {
  const DemandTableOptions options{.past = kPast, .service_replicas = kServiceReplicas};
  MixedLoad load;
  REGATTA_TRY(duty, bench_program::read_text(bench.folder / "gentd/gpu_duty_cycle.csv"));
  REGATTA_TRY(pods, read_duty_jobs(duty, "gpu_duty_cycle.csv", options));
  REGATTA_TRY(requests, bench_program::read_text(bench.folder / "gentd/qps_1min.csv"));
  REGATTA_TRY(services, read_service_jobs(requests, "qps_1min.csv", options));
  REGATTA_TRY(philly_text, bench_program::read_text(bench.folder / "philly/philly_jobs.csv"));
  REGATTA_TRY(philly, read_philly_jobs(philly_text, "philly_jobs.csv"));
  load.pods_most = most_at_once(pods);
  for (TracedJob& job : pods) {
    job.request.priority = job.request.is_preemptible ? 5 : 10;
    load.pods.push_back(std::move(job));
  }
  for (TracedJob& job : services) {
    job.request.priority = 10;
    // The need of a replica for its device, from the past alone: demand over that of all replicas.
    std::vector<float> past;
    for (int i = 0; i < job.demand.past; ++i)
      past.push_back(
          std::min(1.0F, at(job.demand.amounts, i) /
                             static_cast<float>(job.demand.per_replica * kServiceReplicas)) *
          static_cast<float>(job.demand.full_share));
    job.request.roles.front().duty = mixing::profile_of(past, job.demand.interval, kPast * -1.0);
    load.services.push_back(std::move(job));
  }
  add_batch(std::move(philly), load);
  return load;
}

struct MixedStep {
  std::string label;
  bool has_partition = false;
  bool is_elastic = false;
  bool mixes = false;
  bool sizes_services = false;
  // By examples/sched_policy_mixed.yaml: no two jobs with a latency target share a device, and
  // none misses.
  bool is_strict = false;
};

const std::vector<MixedStep>& steps() {
  static const std::vector<MixedStep> list = {
      {.label = "static shares", .has_partition = true},
      {.label = "reclaim"},
      {.label = "reclaim, elastic", .is_elastic = true},
      {.label = "reclaim, elastic, mixing", .is_elastic = true, .mixes = true},
      {.label = "reclaim, elastic, mixing, forecast",
       .is_elastic = true,
       .mixes = true,
       .sizes_services = true},
      {.label = "reclaim, elastic, strict mixing", .is_elastic = true, .is_strict = true}};
  return list;
}

// A job whose replicas may double.
void make_elastic(TracedJob& job) {
  sched::Role& role = job.request.roles.front();
  role.replicas_max = 2 * role.replicas_min;
  const int devices = role.replicas_min * role.devices;
  job.request.throughput = {{devices, 1}, {2 * devices, kDoubled}};
}

Result<ReplayInput> input_of(const MixedLoad& load, const MixedStep& step) {
  ReplayInput input;
  const int online = load.pods_most + 2 * kServiceReplicas;
  const int devices = static_cast<int>(online / kOnlineShare / kServerDevices) * kServerDevices;
  add_servers(input.nodes, {"gpu", devices / kServerDevices, kServerDevices});
  for (sched::ClusterNode& node : input.nodes)
    node.device_memory_mib = kDeviceMemoryMib;
  for (TracedJob service : load.services) {
    // Replicas that follow the demand are full; else they have what was seen in the past.
    if (step.sizes_services) {
      service.request.roles.front().duty = {};
      service.request.roles.front().duty.shares = {static_cast<float>(service.demand.full_share)};
    }
    input.jobs.push_back(std::move(service));
  }
  input.jobs.insert(input.jobs.end(), load.pods.begin(), load.pods.end());
  for (TracedJob job : load.batch) {
    if (step.is_elastic) make_elastic(job);
    input.jobs.push_back(std::move(job));
  }
  std::stable_sort(input.jobs.begin(), input.jobs.end(),
                   [](const TracedJob& a, const TracedJob& b) {
                     return a.request.submitted < b.request.submitted;
                   });
  sched::QuotaQueue batch{.name = "batch", .parent = ""};
  if (step.has_partition)
    batch.limit[static_cast<std::size_t>(sched::Resource::kCompute)] =
        static_cast<long long>(sched::kDeviceMilli) * (devices - online);
  REGATTA_TRY(quotas, sched::QuotaTree::create({batch,
                                                {.name = "online", .parent = ""},
                                                {.name = "intermittent", .parent = ""}}));
  input.quotas = quotas;
  return input;
}

// A user takes the policy of the last step from the file, and so does this.
Result<sched::SchedulingPolicy> strict_policy() {
  const std::string file = REGATTA_EXAMPLES "/sched_policy_mixed.yaml";
  REGATTA_TRY(text, bench_program::read_text(file));
  return sched::parse_scheduling_policy(text, file);
}

Result<sched::SchedulingPolicy> policy_of(const MixedStep& step) {
  if (step.is_strict) {
    REGATTA_TRY(policy, strict_policy());
    policy.name = step.label;
    return policy;
  }
  sched::SchedulingPolicy policy;
  policy.name = step.label;
  policy.order = sched::JobOrder::kShortest;
  policy.ageing = {24 * 3600.0};
  policy.preempts = !step.has_partition;
  policy.protected_run_time = {600};
  policy.resizes = step.is_elastic || step.sizes_services;
  policy.mixes = step.mixes;
  policy.sizes_services = step.sizes_services;
  return policy;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string row_of(const MixedStep& step, const ReplayResult& result, double seconds) {
  int ended = 0;
  std::vector<double> waits;  // of batch jobs for their start; until now where there was none
  double longest_online_wait = 0;
  for (const JobOutcome& job : result.jobs) {
    const Seconds start = job.first_start.value >= 0 ? job.first_start : kReplayed;
    if (job.job_class == sched::JobClass::kBatch) {
      ended += job.ended.value >= 0 ? 1 : 0;
      waits.push_back((start - job.submitted).value);
    } else if (mixing::has_latency_target(job.job_class)) {
      longest_online_wait = std::max(longest_online_wait, (start - job.submitted).value);
    }
  }
  std::sort(waits.begin(), waits.end());
  const double mean_wait =
      std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(waits.size());
  return fmt::format(
      "| {} | {:.1f} | {:.1f} | {:.1f} | {} | {:.1f} | {:.2f} | {:.2f} | {} of {} | {}, {}, {} | "
      "{:.0f} | {:.2f} | {} | {} | {} | {:.0f} |",
      step.label, 100 * result.used_share, 100 * result.online_share, 100 * result.allocated_share,
      ended, result.waiting_jobs, mean_wait / 3600, waits[waits.size() / 2] / 3600,
      result.missed.all(), result.service_intervals, result.missed.away, result.missed.replicas,
      result.missed.devices, longest_online_wait, 100 * result.delayed_share, result.evictions,
      result.resizes, result.mixes, seconds);
}

// For tools/replay_curves.py.
std::string curves_json(const MixedStep& step, const ReplayResult& result) {
  std::string points;
  for (const CurvePoint& point : result.curves) {
    if (point.from > kReplayed) break;
    points += fmt::format(
        R"({}{{"from_s":{:.0f},"allocated_share":{:.4f},"used_share":{:.4f},"waiting_jobs":{:.2f}}})",
        points.empty() ? "" : ",", point.from.value, point.allocated_share, point.used_share,
        point.waiting_jobs);
  }
  return fmt::format(R"({{"policy":"{}","curves":[{}]}})", step.label, points);
}

}  // namespace

Status replay_mixed(const BenchOptions& bench) {
  REGATTA_TRY(load, read_load(bench));
  fmt::print(
      "| scheduler | used, % | of it online, % | allocated, % | batch jobs ended | jobs that wait, "
      "mean | batch: mean wait for the start, h | median, h | missed intervals | away, replicas, "
      "devices | longest start of a service, s | delayed, % | evictions | resizes | mixes | s |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::string curves;
  for (const MixedStep& step : steps()) {
    if (step.label.find(bench.policy) == std::string::npos) continue;
    REGATTA_TRY(input, input_of(load, step));
    ReplayOptions options;
    options.decision_interval = {60};
    options.repeat_interval = {600};
    options.profile_interval = {3600};
    options.measured_until = kReplayed;
    options.stops_at = kReplayed;
    options.interference = bench.interference;
    options.progress = [&](const ReplayProgress& progress) {
      fmt::print(stderr, "\r{}: hour {:.1f}, {} ended, {} waiting   ", step.label,
                 progress.now.value / 3600, progress.ended, progress.waiting);
    };
    const double begun = seconds_now();
    REGATTA_TRY(policy, policy_of(step));
    policy.interference = bench.interference;
    REGATTA_TRY(result, replay_cluster(input, policy, options));
    fmt::print(stderr, "\n");
    fmt::print("{}\n", row_of(step, result, seconds_now() - begun));
    std::fflush(stdout);
    curves += (curves.empty() ? "" : ",\n") + curves_json(step, result);
  }
  if (bench.curves.empty()) return {};
  std::ofstream file(bench.curves, std::ios::binary);
  file << "{\"replays\":[" << curves << "]}\n";
  if (!file.flush())
    return Error{Code::kUnavailable, bench.curves + ": cannot be written; give another file"};
  return {};
}

}  // namespace regatta::cluster_replay
