// Spot jobs below services: the jobs of Philly run where the instances of dlrm leave room, and are
// evicted when these come.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/cluster_replay/replay_table.h"
#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/mixing/demand_forecast.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::cluster_replay {
namespace {

constexpr double kDay = 86400;
// The days of Philly that lie on the 31 days of dlrm: its busy part begins then.
constexpr double kFirstDay = 20;
constexpr double kDays = 31;
constexpr Seconds kDecisionInterval{60};
constexpr Seconds kForecastInterval{60};
constexpr sched::Checkpointing kCheckpointing{{1800}, {0}, {60}};
constexpr int kServerDevices = 8;
constexpr const char* kSpotQueue = "spot";
// Days by which the jobs of Philly are turned within their 31 days against the services: the order
// of the queue and the forecast were chosen at 7 days, and on other days of Philly.
constexpr int kTurns[] = {0, 3, 10, 17, 24};

struct SpotTrace {
  std::vector<TracedJob> jobs;  // of both traces, by their submission
  int always_on = 0;            // GPUs of instances that run all the time; left out
};

bool is_always_on(const TracedJob& job) {
  return job.request.submitted.value <= 0 && job.run_time.value >= (kDays - 0.1) * kDay;
}

Result<SpotTrace> read_traces(const BenchOptions& bench, int turn) {
  REGATTA_TRY(dlrm_text, bench_program::read_text(bench.folder / "dlrm/dlrm_instances_2025.csv"));
  REGATTA_TRY(instances, read_dlrm_instances(dlrm_text, "dlrm_instances_2025.csv"));
  REGATTA_TRY(philly_text, bench_program::read_text(bench.folder / "philly/philly_jobs.csv"));
  REGATTA_TRY(spot_jobs, read_philly_jobs(philly_text, "philly_jobs.csv"));
  SpotTrace trace;
  for (TracedJob& job : instances) {
    const int devices = job.request.roles.front().devices;
    if (devices == 0) continue;
    if (is_always_on(job)) {
      trace.always_on += devices;
      continue;
    }
    job.request.priority = 1;
    trace.jobs.push_back(std::move(job));
  }
  for (TracedJob& job : spot_jobs) {
    job.request.submitted -= {kFirstDay * kDay};
    if (job.request.submitted.value < 0 || job.request.submitted.value >= kDays * kDay) continue;
    job.request.submitted = {std::fmod(job.request.submitted.value + turn * kDay, kDays * kDay)};
    job.request.checkpointing = kCheckpointing;
    trace.jobs.push_back(std::move(job));
  }
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TracedJob& a, const TracedJob& b) {
                     return a.request.submitted < b.request.submitted;
                   });
  return trace;
}

// GPUs that services ask for, at the end of each interval.
std::vector<double> service_demand(const std::vector<TracedJob>& jobs) {
  std::vector<double> demand(static_cast<std::size_t>(kDays * kDay / kForecastInterval.value) + 1);
  const auto interval_of = [&](double time) {
    return std::min(demand.size() - 1, static_cast<std::size_t>(time / kForecastInterval.value));
  };
  for (const TracedJob& job : jobs) {
    if (job.request.priority == 0) continue;
    const double begin = job.request.submitted.value;
    demand[interval_of(begin)] += job.request.roles.front().devices;
    demand[interval_of(begin + job.run_time.value)] -= job.request.roles.front().devices;
  }
  for (std::size_t i = 1; i < demand.size(); ++i)
    demand[i] += demand[i - 1];
  return demand;
}

// The queues of the spot jobs share what services and the reserve for their growth leave.
class SpotLimit {
 public:
  SpotLimit(const std::vector<TracedJob>& jobs, int devices, mixing::ForecastOptions options)
      : devices_(devices),
        demand_(service_demand(jobs)),
        forecast_(mixing::forecast_series(demand_, options)) {
    for (const TracedJob& job : jobs)
      if (job.request.priority == 0) leaves_.insert(job.request.queue);
  }

  Result<sched::QuotaTree> tree(Seconds now) const {
    sched::QuotaQueue spot{.name = kSpotQueue, .parent = ""};
    if (now.value >= 0) {
      // The interval that is not over is not known.
      const auto seen = static_cast<std::size_t>(std::clamp(
          now.value / kForecastInterval.value - 1, 0.0, static_cast<double>(demand_.size()) - 1));
      const double peak =
          std::max(demand_[seen], std::isfinite(forecast_[seen]) ? forecast_[seen] : demand_[seen]);
      spot.limit[static_cast<std::size_t>(sched::Resource::kCompute)] =
          static_cast<long long>(sched::kDeviceMilli * std::max(0.0, devices_ - std::ceil(peak)));
    }
    std::vector<sched::QuotaQueue> queues{spot, {.name = "online", .parent = ""}};
    for (const std::string& leaf : leaves_)
      queues.push_back({.name = leaf, .parent = kSpotQueue});
    return sched::QuotaTree::create(std::move(queues));
  }

 private:
  int devices_ = 0;
  std::vector<double> demand_;
  std::vector<double> forecast_;
  std::set<std::string> leaves_;
};

struct SpotPolicy {
  std::string label;
  sched::SchedulingPolicy policy;
  bool has_forecast = false;
};

std::vector<SpotPolicy> spot_policies() {
  sched::SchedulingPolicy lowest;
  lowest.name = "lowest_priority_first";
  lowest.preempts = true;
  lowest.victims = sched::VictimRule::kLowestPriority;
  sched::SchedulingPolicy least = lowest;
  least.victims = sched::VictimRule::kLeastLoss;
  sched::SchedulingPolicy ordered = least;
  ordered.order = sched::JobOrder::kLeastService;
  return {{"backfill, lowest priority first", lowest, false},
          {"the same with victims of least loss", least, false},
          {"and least device time first", ordered, false},
          {"and with the forecast kept free", ordered, true}};
}

// One policy on one cluster with one turn of the trace.
Result<ReplayRow> replay_spot_policy(const BenchOptions& bench, const SpotPolicy& policy,
                                     const ReplayInput& input, const SpotLimit& limit,
                                     const std::string& cluster) {
  ReplayOptions options;
  options.decision_interval = kDecisionInterval;
  options.measured_from = {kDay};
  options.measured_until = {kDays * kDay};
  if (policy.has_forecast)
    options.before_decision = [&](const sched::ClusterSnapshot& snapshot, sched::JobQueue& queue) {
      auto tree = limit.tree(snapshot.now);
      REGATTA_CHECK(tree.has_value());
      queue.quotas = std::move(*tree);
    };
  BenchOptions unpredicted = bench;
  unpredicted.predicted_every = 0;
  REGATTA_TRY(row, replay_row(input, {policy.label, policy.policy}, cluster, unpredicted, options));
  row.is_spot = true;
  return row;
}

// Evictions and mean waiting of spot jobs over all turns of one policy.
struct SpotTotal {
  double evictions = 0;
  double waiting = 0;
};

void print_totals(const std::string& cluster, const std::vector<SpotPolicy>& policies,
                  const std::vector<SpotTotal>& totals) {
  for (std::size_t i = 0; i < policies.size(); ++i) {
    if (totals[i].waiting <= 0 || totals[0].waiting <= 0) continue;
    fmt::print("| {}, mean | {} | {:.0f} ({:+.0f} %) | {:.0f} ({:+.0f} %) |\n", cluster,
               policies[i].label, totals[i].evictions / std::size(kTurns),
               100 * (totals[i].evictions / totals[0].evictions - 1),
               totals[i].waiting / std::size(kTurns),
               100 * (totals[i].waiting / totals[0].waiting - 1));
  }
}

}  // namespace

Status replay_spot(const BenchOptions& bench) {
  print_head(bench, true);
  const std::vector<SpotPolicy> policies = spot_policies();
  for (const int devices : {1640, 1560}) {
    std::vector<SpotTotal> totals(policies.size());
    std::string cluster;
    for (const int turn : kTurns) {
      REGATTA_TRY(trace, read_traces(bench, turn));
      cluster = fmt::format("{}", devices + trace.always_on);
      if (!bench.has("spot") && !bench.has("spot" + cluster)) break;
      ReplayInput input;
      input.jobs = std::move(trace.jobs);
      add_servers(input.nodes, {"gpu", devices / kServerDevices, kServerDevices});
      // Two minutes ahead, as spot jobs end every minute.
      const mixing::ForecastOptions forecast{.lead = 2, .quantile = 0.9};
      const SpotLimit limit(input.jobs, devices, forecast);
      REGATTA_TRY(quotas, limit.tree({-1}));
      input.quotas = quotas;
      for (std::size_t i = 0; i < policies.size(); ++i) {
        if (policies[i].label.find(bench.policy) == std::string::npos) continue;
        REGATTA_TRY(row, replay_spot_policy(bench, policies[i], input, limit,
                                            fmt::format("{}, turned {} d", cluster, turn)));
        print_row(bench, row);
        const JobGroupSummary& spot = row.result.by_priority.begin()->second;
        totals[i].evictions += spot.evictions;
        totals[i].waiting += spot.delay.mean.value;
      }
    }
    if (!bench.as_json) print_totals(cluster, policies, totals);
  }
  return {};
}

}  // namespace regatta::cluster_replay
