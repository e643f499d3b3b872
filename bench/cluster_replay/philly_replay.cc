// Philly: FIFO, backfill and regatta on clusters of three sizes.
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/cluster_replay/replay_table.h"
#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::cluster_replay {
namespace {

// Servers of 8 and of 2 GPUs in the ratio of the paper's cluster, 231 to 321 (2,490 GPUs).
struct ClusterSize {
  int large = 0;
  int small = 0;
};
constexpr ClusterSize kSizes[] = {{64, 90}, {58, 81}, {73, 101}};

// The busy part of the trace: before it few jobs run, after it the queue only runs empty.
constexpr Seconds kMeasuredFrom{20 * 86400.0};
constexpr Seconds kMeasuredUntil{80 * 86400.0};
constexpr Seconds kDecisionInterval{60};
// The trace names neither: a checkpoint every half hour, a minute to start again.
constexpr sched::Checkpointing kCheckpointing{{1800}, {0}, {60}};

}  // namespace

Status replay_philly(const BenchOptions& bench) {
  REGATTA_TRY(text, bench_program::read_text(bench.folder / "philly/philly_jobs.csv"));
  ReplayInput input;
  REGATTA_TRY(jobs, read_philly_jobs(text, "philly_jobs.csv"));
  if (bench.jobs > 0 && as_index(bench.jobs) < jobs.size()) jobs.resize(as_index(bench.jobs));
  for (TracedJob& job : jobs)
    job.request.checkpointing = kCheckpointing;
  REGATTA_TRY(quotas, queues_of(jobs));
  input.quotas = std::move(quotas);
  input.jobs = std::move(jobs);
  ReplayOptions options;
  options.decision_interval = kDecisionInterval;
  options.measured_from = kMeasuredFrom;
  options.measured_until = kMeasuredUntil;
  print_head(bench, false);
  for (const ClusterSize size : kSizes) {
    const std::string cluster = fmt::format("{}", 8 * size.large + 2 * size.small);
    if (!bench.has("philly") && !bench.has("philly" + cluster)) continue;
    input.nodes.clear();
    add_servers(input.nodes, {"large", size.large, 8});
    add_servers(input.nodes, {"small", size.small, 2});
    for (const std::string& name : sched::scheduling_policy_names()) {
      REGATTA_TRY(policy, sched::find_scheduling_policy(name));
      if (!bench.policy.empty() && bench.policy != name) continue;
      REGATTA_TRY(row, replay_row(input, {name, policy}, cluster, bench, options));
      print_row(bench, row);
    }
  }
  return {};
}

}  // namespace regatta::cluster_replay
