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

// Each replica has one device.
struct ReplayedService {
  std::string name;
  int replicas_max = 1;
  std::vector<float> demand;  // of each interval
  int past = 0;               // so many of them are before the replay
  double per_replica = 1;
  long long replicas = 0;  // sum over the decisions, of which there is one in each interval

  int intervals() const { return static_cast<int>(demand.size()) - past; }
  int needed(int interval) const {
    return static_cast<int>(std::ceil(at(demand, interval) / per_replica - 1e-5));
  }
};

// The highest demand takes all its replicas.
ReplayedService service_of(const std::string& name, int replicas_max,
                           const std::vector<double>& demand, int past) {
  ReplayedService service{.name = name,
                          .replicas_max = replicas_max,
                          .demand = {demand.begin(), demand.end()},
                          .past = past};
  service.per_replica = *std::max_element(demand.begin(), demand.end()) / replicas_max;
  return service;
}

struct ServiceReplay {
  int servers = 1;  // of 8 devices
  double interval = 60;
  double restart = 60;  // until a replica serves
  sched::SchedulingPolicy policy = *sched::find_scheduling_policy("regatta");
  std::vector<ReplayedService> services;
  std::vector<TracedJob> batch;
  ReplayResult result;

  double length() const { return interval * services.front().intervals(); }
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
  job.request.demand = sched::ServiceDemand{
      .interval = {replay.interval},
      .history = {service.demand.begin(), service.demand.begin() + service.past},
      .per_replica = service.per_replica};
  job.run_time = {replay.length()};
  job.demand = {.interval = {replay.interval},
                .amounts = service.demand,
                .past = service.past,
                .per_replica = service.per_replica};
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
  options.after_decision = [&](const sched::ClusterSnapshot& snapshot, const sched::JobQueue&,
                               const sched::SchedulingDecision& decision) {
    std::map<std::string, long long> counts;
    for (const sched::RunningJob& job : snapshot.running)
      counts[job.request.name] = std::ssize(job.replicas);
    for (const sched::SchedulingAction& action : decision.actions)
      counts[action.job] = std::ssize(action.replicas);
    for (ReplayedService& service : replay.services)
      service.replicas += counts[service.name];
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

double missed_share(const ServiceReplay& replay, const ReplayedService& service) {
  const auto outcome =
      std::find_if(replay.result.jobs.begin(), replay.result.jobs.end(),
                   [&](const JobOutcome& job) { return job.name == service.name; });
  return static_cast<double>(outcome->missed.all()) / service.intervals();
}

ServiceFigures figures_of(const ServiceReplay& replay, const ReplayedService& service) {
  ServiceFigures figures;
  const double intervals = service.intervals();
  figures.missed_share = missed_share(replay, service);
  figures.replicas_mean = static_cast<double>(service.replicas) / intervals;
  for (int t = service.past; t < std::ssize(service.demand); ++t)
    figures.needed_mean += service.needed(t) / intervals;
  std::printf(
      "%s: %.3f %% of %.0f intervals missed, %.2f replicas of %.2f needed; devices in use %.1f %%, "
      "at work %.1f %%; %d evictions, %d resizes\n",
      service.name.c_str(), 100 * figures.missed_share, intervals, figures.replicas_mean,
      figures.needed_mean, 100 * replay.result.allocated_share, 100 * replay.result.busy_share,
      replay.result.evictions, replay.result.resizes);
  return figures;
}

TEST(ServiceReplay, AServiceHasItsReplicasBeforeTheRampAndBatchHasTheRest) {
  ServiceReplay replay{.servers = 4, .interval = 300, .restart = 300};
  replay.policy.budget.reclaim_lead = {600};  // the restart, and the time between two decisions
  packing::RandomSequence random(1);
  std::vector<double> demand;
  constexpr int kDayIntervals = 288;
  for (int t = 0; t < 3 * kDayIntervals; ++t)
    demand.push_back((100 - 85 * std::cos(2 * std::numbers::pi * t / kDayIntervals)) *
                     (1 + 0.1 * (random.uniform() - 0.5)));
  const ReplayedService chat = service_of("chat", 24, demand, kDayIntervals);
  replay.services = {chat};
  replay.batch = elastic_jobs(replay.length(), 900, 2);
  run(replay);
  const ServiceFigures figures = figures_of(replay, replay.services[0]);
  EXPECT_LE(figures.missed_share, replay.policy.budget.missed_share);
  EXPECT_LT(figures.replicas_mean, 1.25 * figures.needed_mean);
  // With the first hours, in which batch jobs fill an empty cluster.
  EXPECT_GT(replay.result.allocated_share, 0.96);

  // With what it needs in the mean, all the time.
  ServiceReplay fixed{.servers = 4, .interval = 300, .restart = 300};
  fixed.policy.sizes_services = false;
  fixed.services = {chat};
  fixed.services[0].replicas_max = static_cast<int>(std::ceil(figures.needed_mean));
  run(fixed);
  EXPECT_GT(missed_share(fixed, fixed.services[0]), 0.4);
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
  std::vector<std::vector<double>> requests = {requests_of(text, "Gen"), requests_of(text, "API")};
  // One clock: the shorter series ends with zeros.
  const std::size_t minutes = std::max(requests[0].size(), requests[1].size());
  for (std::vector<double>& series : requests)
    series.resize(minutes);
  constexpr int kPast = 4 * 60;
  replay.services = {service_of("Gen", 12, requests[0], kPast),
                     service_of("API", 12, requests[1], kPast)};
  replay.batch = elastic_jobs(replay.length(), 600, 3);
  run(replay);
  for (const ReplayedService& service : replay.services) {
    const ServiceFigures figures = figures_of(replay, service);
    EXPECT_LE(figures.missed_share, replay.policy.budget.missed_share) << service.name;
    EXPECT_LT(figures.replicas_mean, 0.8 * service.replicas_max) << service.name;
  }
  EXPECT_GT(replay.result.allocated_share, 0.95);
}

}  // namespace
}  // namespace regatta::cluster_replay
