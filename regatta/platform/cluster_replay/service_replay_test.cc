// Services that follow their demand beside elastic batch jobs, in simulated time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/test_files.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::cluster_replay {
namespace {

const std::filesystem::path kRequests =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster/gentd/qps_1min.csv")
        .lexically_normal();

// Each replica has one device, and the highest demand takes `replicas_max` of them.
struct ReplayedService {
  std::string name;
  int replicas_max = 1;
  std::vector<double> demand;  // of each interval
  std::vector<int> replicas;   // after the decision at the start of each

  double per_replica() const {
    return *std::max_element(demand.begin(), demand.end()) / replicas_max;
  }
};

struct ServiceReplay {
  int servers = 1;  // of 8 devices
  double interval = 60;
  double restart = 60;  // until a replica serves
  sched::SchedulingPolicy policy = *sched::find_scheduling_policy("regatta");
  std::vector<ReplayedService> services;
  std::vector<TracedJob> batch;
  ReplayResult result;

  double length() const { return interval * static_cast<double>(services.front().demand.size()); }
  ReplayedService& service(std::string_view name) {
    return *std::find_if(services.begin(), services.end(),
                         [&](const ReplayedService& each) { return each.name == name; });
  }
};

TracedJob service_job(const ServiceReplay& replay, const ReplayedService& service) {
  TracedJob job;
  job.request.name = service.name;
  job.request.job_class = sched::JobClass::kTidal;
  job.request.priority = 5;
  job.request.is_preemptible = false;
  job.request.roles = {whole_device_role(1, 8)};
  job.request.roles[0].replicas_max = service.replicas_max;
  job.request.checkpointing.restart = {replay.restart};
  job.request.throughput = {{1, 1}};  // it ends at its time, whatever its size
  job.request.demand = sched::ServiceDemand{
      .interval = {replay.interval}, .history = {}, .per_replica = service.per_replica()};
  job.run_time = {replay.length()};
  return job;
}

// Jobs of 1 to 4 devices that may double, one each `every` seconds.
std::vector<TracedJob> elastic_jobs(double length, double every, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  std::vector<TracedJob> jobs;
  for (int i = 0; i * every < length; ++i) {
    TracedJob job;
    job.request.name = "batch-" + std::to_string(i);
    job.request.roles = {whole_device_role(1, 8)};
    job.request.roles[0].replicas_min = 1 + static_cast<int>(random.below(4));
    job.request.roles[0].replicas_max = 2 * job.request.roles[0].replicas_min;
    job.request.submitted = {i * every};
    job.request.checkpointing = {{600}, {2}, {60}};
    job.run_time = {1800 + 60.0 * static_cast<double>(random.below(180))};
    jobs.push_back(job);
  }
  return jobs;
}

void run(ServiceReplay& replay) {
  ReplayInput input;
  add_servers(input.nodes, {"T", replay.servers, 8, 4});
  for (const ReplayedService& service : replay.services)
    input.jobs.push_back(service_job(replay, service));
  input.jobs.insert(input.jobs.end(), replay.batch.begin(), replay.batch.end());
  ReplayOptions options;
  options.decision_interval = options.repeat_interval = {replay.interval};
  options.measured_until = {replay.length()};
  options.update_demand = [&](Seconds now, std::string_view name, sched::ServiceDemand& demand) {
    const std::vector<double>& all = replay.service(name).demand;
    const auto seen =
        std::min(static_cast<std::ptrdiff_t>(now.value / replay.interval), std::ssize(all));
    demand.history.assign(all.begin(), all.begin() + seen);
  };
  options.after_decision = [&](const sched::ClusterSnapshot& snapshot, const sched::JobQueue&,
                               const sched::SchedulingDecision& decision) {
    std::map<std::string, int> counts;
    for (const sched::RunningJob& job : snapshot.running)
      counts[job.request.name] = static_cast<int>(job.replicas.size());
    for (const sched::SchedulingAction& action : decision.actions)
      counts[action.job] = static_cast<int>(action.replicas.size());
    for (ReplayedService& service : replay.services)
      service.replicas.push_back(counts[service.name]);
  };
  auto result = replay_cluster(input, replay.policy, options);
  ASSERT_TRUE(result) << result.error().message;
  replay.result = std::move(*result);
}

struct ServiceFigures {
  double missed_share = 0;  // of the intervals, of which more is asked than replicas serve
  double replicas_mean = 0;
  double needed_mean = 0;
};

// From interval `first` on. A replica serves `restart` after the decision that adds it, and not
// after the one that takes it away.
ServiceFigures figures_of(const ServiceReplay& replay, const ReplayedService& service, int first) {
  ServiceFigures figures;
  const int delay = static_cast<int>(std::ceil(replay.restart / replay.interval));
  const int intervals = static_cast<int>(service.demand.size());
  for (int t = first; t < intervals; ++t) {
    int serving = service.replicas_max;
    for (int before = std::max(0, t - delay); before <= t; ++before)
      serving = std::min(serving, at(service.replicas, before));
    const double needed = std::ceil(at(service.demand, t) / service.per_replica() - 1e-9);
    figures.missed_share += needed > serving ? 1.0 / (intervals - first) : 0;
    figures.replicas_mean += at(service.replicas, t) / static_cast<double>(intervals - first);
    figures.needed_mean += needed / (intervals - first);
  }
  return figures;
}

void report(const ServiceReplay& replay, const std::string& name, const ServiceFigures& figures) {
  std::printf(
      "%s: %.3f %% of the intervals missed, %.2f replicas of %.2f needed; devices in use "
      "%.1f %%, at work %.1f %%; %d evictions, %d resizes\n",
      name.c_str(), 100 * figures.missed_share, figures.replicas_mean, figures.needed_mean,
      100 * replay.result.allocated_share, 100 * replay.result.busy_share, replay.result.evictions,
      replay.result.resizes);
}

TEST(ServiceReplay, AServiceHasItsReplicasBeforeTheRampAndBatchHasTheRest) {
  ServiceReplay replay{.servers = 4, .interval = 300, .restart = 300};
  replay.policy.budget.reclaim_lead = {600};  // the restart, and the time between two decisions
  packing::RandomSequence random(1);
  ReplayedService chat{.name = "chat", .replicas_max = 24};
  constexpr int kDayIntervals = 288;
  for (int t = 0; t < 3 * kDayIntervals; ++t)
    chat.demand.push_back((100 - 85 * std::cos(2 * std::numbers::pi * t / kDayIntervals)) *
                          (1 + 0.1 * (random.uniform() - 0.5)));
  replay.services = {chat};
  replay.batch = elastic_jobs(replay.length(), 900, 2);
  run(replay);
  const ServiceFigures figures = figures_of(replay, replay.services[0], kDayIntervals);
  report(replay, "chat", figures);
  EXPECT_LE(figures.missed_share, replay.policy.budget.missed_share);
  EXPECT_LT(figures.replicas_mean, 1.25 * figures.needed_mean);
  EXPECT_GT(replay.result.allocated_share, 0.97);

  ServiceReplay fixed{.servers = 4, .interval = 300, .restart = 300};
  fixed.policy.sizes_services = false;
  fixed.services = {chat};
  run(fixed);
  EXPECT_GT(figures_of(fixed, fixed.services[0], kDayIntervals).missed_share, 0.9);
}

// Requests of one type of the trace.
std::vector<double> requests_of(const std::string& text, const std::string& type) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (kept.empty() || line.find("," + type + ",") != std::string::npos) kept += line + "\n";
  const auto requests = mixing::read_requests(kept, "qps_1min.csv");
  EXPECT_TRUE(requests) << requests.error().message;
  return requests ? *requests : std::vector<double>{};
}

TEST(ServiceReplay, ServicesOfAPublicTraceKeepTheirBudgetBesideBatch) {
  if (!std::filesystem::exists(kRequests)) GTEST_SKIP() << "no " << kRequests;
  const std::string text = read_test_file(kRequests);
  ServiceReplay replay{.servers = 4};
  for (const char* const type : {"Gen", "API"})
    replay.services.push_back(
        {.name = type, .replicas_max = 12, .demand = requests_of(text, type)});
  // One clock: the shorter series ends with zeros.
  const std::size_t minutes =
      std::max(replay.services[0].demand.size(), replay.services[1].demand.size());
  for (ReplayedService& service : replay.services)
    service.demand.resize(minutes);
  replay.batch = elastic_jobs(replay.length(), 600, 3);
  run(replay);
  for (const ReplayedService& service : replay.services) {
    const ServiceFigures figures = figures_of(replay, service, 4 * 60);
    report(replay, service.name, figures);
    EXPECT_LE(figures.missed_share, replay.policy.budget.missed_share) << service.name;
    EXPECT_LT(figures.replicas_mean, 0.8 * service.replicas_max) << service.name;
  }
  EXPECT_GT(replay.result.allocated_share, 0.95);
}

}  // namespace
}  // namespace regatta::cluster_replay
