#include "bench/reliability/decided_gang.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bench/reliability/gang_tables.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/node_events.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::reliability {
namespace {

using cluster_replay::NodeEvent;
using cluster_replay::TracedJob;

// Nodes of other jobs, besides the gang and its spares. Each job has one node.
constexpr int kOtherNodes = 32;
constexpr Seconds kOtherMedian = 2 * kDay;
constexpr double kOtherLogSpread = 1;
// They ask for so much of what the gang and the repairs leave.
constexpr int kOtherNodesAsked = 70;
constexpr Seconds kReplayed = 70 * kDay;  // failures; the gang ends before

struct Setting {
  std::string name;
  int spares = 0;  // nodes that are kept free
  bool avoids_failing = false;
  bool is_preemptible = false;  // the other jobs
};

TracedJob gang_job(const GangOptions& options) {
  TracedJob job;
  job.request.name = "gang";
  job.request.roles = {
      cluster_replay::whole_device_role(options.nodes * options.devices_per_node, 8)};
  job.request.priority = 10;
  job.request.is_preemptible = false;
  job.request.run_time = {options.horizon, 0};
  job.request.checkpointing = {
      .interval = options.checkpoint.interval,
      .write = options.checkpoint.save,
      .restart = options.detect + options.replace + options.checkpoint.load};
  job.run_time = options.horizon;
  return job;
}

std::vector<TracedJob> jobs_of(const GangOptions& options, bool is_preemptible,
                               std::uint64_t seed) {
  std::vector<TracedJob> jobs = {gang_job(options)};
  packing::RandomSequence random(seed);
  const Seconds mean = kOtherMedian * std::exp(kOtherLogSpread * kOtherLogSpread / 2);
  const double between = mean.value / kOtherNodesAsked;
  // The first of them fill their nodes at once.
  for (Seconds at{1}; at < kReplayed;
       at += {std::ssize(jobs) < kOtherNodesAsked ? 0 : -between * std::log1p(-random.uniform())}) {
    TracedJob job;
    job.request.name = fmt::format("other{}", jobs.size());
    job.request.roles = {cluster_replay::whole_device_role(8, 8)};
    job.request.is_preemptible = is_preemptible;
    job.request.submitted = at;
    job.request.run_time = {kOtherMedian, kOtherLogSpread};
    job.request.checkpointing = {.interval = {1800}, .write = {}, .restart = {120}};
    const double quantile = std::clamp(random.uniform(), 1e-9, 1 - 1e-9);
    job.run_time = kOtherMedian * std::exp(kOtherLogSpread * sched::normal_quantile(quantile));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// All nodes stop for each planned stop, and are not to blame.
void add_planned_stops(const GangOptions& options, int nodes, std::vector<NodeEvent>& events) {
  std::vector<bool> is_away(static_cast<std::size_t>(nodes));
  std::vector<NodeEvent> all;
  std::size_t next = 0;
  for (int stop = 0; stop < options.planned.count; ++stop) {
    const Seconds begin = options.horizon * ((stop + 0.5) / options.planned.count);
    for (; next < events.size() && events[next].at <= begin; ++next)
      is_away[static_cast<std::size_t>(events[next].node)] =
          events[next].health == sched::NodeHealth::kFailed;
    for (int node = 0; node < nodes; ++node) {
      // A node that is away stays so: its return is another event.
      if (is_away[static_cast<std::size_t>(node)]) continue;
      all.push_back({begin, node, sched::NodeHealth::kFailed, true});
      all.push_back({begin + options.planned.duration, node, sched::NodeHealth::kReady, true});
    }
  }
  events.insert(events.end(), all.begin(), all.end());
  std::stable_sort(events.begin(), events.end(),
                   [](const NodeEvent& a, const NodeEvent& b) { return a.at < b.at; });
}

struct GangFigures {
  double ettr = 0;
  double undone = 0;
  double restarting = 0;
  double degraded = 0;
  int replaced = 0;
  int moved = 0;
  double others_wait_h = 0;  // of the other jobs, in the mean
  int evictions = 0;
  double decision_ms = 0;
  int decisions = 0;
};

Result<GangFigures> run_decided(const GangOptions& options, const Setting& setting,
                                std::uint64_t seed) {
  cluster_replay::ReplayInput input;
  cluster_replay::add_servers(input.nodes, {.device_type = "h100",
                                            .servers = options.nodes + options.spares + kOtherNodes,
                                            .devices = options.devices_per_node});
  REGATTA_TRY(drawn,
              cluster_replay::draw_failures(std::move(input.nodes), {.mix = options.mix,
                                                                     .lemons = options.lemons,
                                                                     .repair = options.repair,
                                                                     .warm_up = options.warm_up,
                                                                     .duration = kReplayed,
                                                                     .seed = seed}));
  input.nodes = std::move(drawn.nodes);
  input.node_events = std::move(drawn.events);
  add_planned_stops(options, static_cast<int>(input.nodes.size()), input.node_events);
  input.jobs = jobs_of(options, setting.is_preemptible, seed);
  REGATTA_TRY(quotas, cluster_replay::queues_of(input.jobs));
  input.quotas = std::move(quotas);
  REGATTA_TRY(policy, sched::find_scheduling_policy("regatta"));
  policy.avoids_failing = setting.avoids_failing;
  policy.node_repair = options.repair.mean;
  policy.spares = {.nodes = setting.spares, .share = 0, .gang_devices = 1024};
  GangFigures figures;
  cluster_replay::ReplayOptions replay;
  replay.decision_interval = {1};
  replay.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  replay.after_decision = [&](const sched::ClusterSnapshot&, const sched::JobQueue&,
                              const sched::SchedulingDecision& decision) {
    for (const sched::SchedulingAction& action : decision.actions) {
      if (action.job != "gang") continue;
      figures.replaced += action.kind == sched::ActionKind::kReplace ? 1 : 0;
      figures.moved += action.kind == sched::ActionKind::kMove ? 1 : 0;
    }
  };
  REGATTA_TRY(result, cluster_replay::replay_cluster(input, policy, replay));
  const cluster_replay::JobOutcome& gang = result.jobs.front();
  if (gang.ended.value <= 0)
    return Error{Code::kExhausted, fmt::format("{}: the gang does not end", setting.name)};
  const Seconds all = gang.ended - gang.first_start;
  figures.ettr = options.horizon / all;
  figures.undone = gang.lost / all;
  figures.restarting = gang.restarting / all;
  figures.degraded = gang.degraded / all;
  for (std::size_t i = 1; i < result.jobs.size(); ++i)
    figures.others_wait_h +=
        result.jobs[i].pending / kHour / static_cast<double>(result.jobs.size() - 1);
  figures.evictions = result.evictions;
  figures.decisions = static_cast<int>(result.decision_times.decisions);
  figures.decision_ms = 1e3 * result.decision_times.total.value / figures.decisions;
  return figures;
}

template <typename Get>
std::vector<double> sorted_values(const std::vector<GangFigures>& figures, Get get) {
  std::vector<double> values;
  for (const GangFigures& one : figures)
    values.push_back(static_cast<double>(get(one)));
  std::sort(values.begin(), values.end());
  return values;
}

Result<std::vector<std::string>> decided_row(const GangOptions& options, const Setting& setting,
                                             int seeds) {
  std::vector<GangFigures> figures;
  for (int seed = 1; seed <= seeds; ++seed) {
    REGATTA_TRY(one, run_decided(options, setting, static_cast<std::uint64_t>(seed)));
    figures.push_back(one);
  }
  const auto percent = [&](double GangFigures::*part) {
    return fmt::format(
        "{:.2f}", 100 * median(sorted_values(figures, [&](const auto& f) { return f.*part; })));
  };
  const auto count = [&](int GangFigures::*part) {
    return fmt::format("{:.0f}",
                       median(sorted_values(figures, [&](const auto& f) { return f.*part; })));
  };
  const auto ettr = sorted_values(figures, [](const auto& f) { return f.ettr; });
  return std::vector<std::string>{
      setting.name,
      fmt::format("{:.2f} ({:.2f} to {:.2f})", 100 * median(ettr), 100 * ettr.front(),
                  100 * ettr.back()),
      percent(&GangFigures::undone),
      percent(&GangFigures::restarting),
      percent(&GangFigures::degraded),
      count(&GangFigures::replaced),
      count(&GangFigures::moved),
      fmt::format("{:.1f}",
                  median(sorted_values(figures, [](const auto& f) { return f.others_wait_h; }))),
      count(&GangFigures::evictions),
      count(&GangFigures::decisions),
      fmt::format("{:.1f}",
                  median(sorted_values(figures, [](const auto& f) { return f.decision_ms; })))};
}

// The simulated gang under the terms that the replay has: one level of checkpoints, each restart
// with the time of a replacement.
Result<std::string> simulated_ettr(GangOptions options, int seeds) {
  options.checkpoint_loss = 0;
  options.durable = {};
  options.checkpoint.load += options.replace;
  options.replace = {};
  std::vector<double> values;
  for (int seed = 1; seed <= seeds; ++seed) {
    REGATTA_TRY(outcome, simulate_gang(options, static_cast<std::uint64_t>(seed)));
    values.push_back(100 * outcome.ettr());
  }
  std::sort(values.begin(), values.end());
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", median(values), values.front(), values.back());
}

}  // namespace

Result<std::vector<ResultTable>> decided_gang_tables(const FailureMix& llama3, int seeds) {
  REGATTA_TRY(mix, with_rates(llama3, kGangNodes * 8, kGangTime));
  const GangOptions options = full_gang(mix);
  ResultTable table{
      "16,384 GPUs, 54 days of work, decided by sched::decide()",
      {"policy regatta", "ETTR % (least to most)", "undone %", "restarting %", "without a node %",
       "replaced", "moved", "others wait h", "evictions", "decisions", "ms each"},
      {}};
  for (const Setting& setting :
       {Setting{"16 spares, risk", 16, true, false}, Setting{"16 spares", 16, false, false},
        Setting{"risk", 0, true, false}, Setting{"neither", 0, false, false},
        Setting{"risk, other jobs may be evicted", 0, true, true}}) {
    REGATTA_TRY(row, decided_row(options, setting, seeds));
    table.rows.push_back(std::move(row));
  }
  ResultTable beside{"the simulated gang under the same terms", {"gang", "ETTR %"}, {}};
  REGATTA_TRY(with_risk, simulated_ettr(options, seeds));
  beside.rows.push_back({fmt::format("{} spares, risk", options.spares), with_risk});
  GangOptions without = options;
  without.weigh_risk = false;
  REGATTA_TRY(plain, simulated_ettr(without, seeds));
  beside.rows.push_back({fmt::format("{} spares", options.spares), plain});
  without.spares = 0;
  REGATTA_TRY(bare, simulated_ettr(without, seeds));
  beside.rows.push_back({"neither", bare});
  return std::vector<ResultTable>{table, beside};
}

}  // namespace regatta::reliability
