#include "regatta/app/cli/internal/run_training.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/cli/internal/run_progress.h"
#include "regatta/app/report/run_result.h"
#include "regatta/base/os/log.h"
#include "regatta/model/workload/job.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {
namespace {

constexpr int kTracedSteps = 3;

// The steps before the last one are traced: all has settled. A checkpoint that is saved before one
// of them is part of it, as of any step: kOther.
nlohmann::json training_spec(const TrainingRequest& request) {
  const int trace_to = std::max(1, request.job.steps - 1);
  return {{"job", workload::job_to_json(request.job)},
          {"strategy", workload::strategy_to_json(request.plan.strategy)},
          {"resume", request.resume},
          {"trace_from_step", std::max(0, trace_to - kTracedSteps)},
          {"trace_to_step", trace_to},
          {"flight_dir", request.flight_dir}};
}

std::vector<lab::LinkCounter> count_links(const agent::Session& session,
                                          const topo::Cluster& cluster) {
  if (!session.lab()) return {};
  auto counters = lab::link_counters(*session.lab(), cluster);
  if (counters) return *std::move(counters);
  os::log_warning("the traffic of links is not counted: " + counters.error().message);
  return {};
}

std::vector<plan::LinkTraffic> difference(const std::vector<lab::LinkCounter>& before,
                                          const std::vector<lab::LinkCounter>& after) {
  std::vector<plan::LinkTraffic> traffic;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    traffic.push_back({after[i].link, after[i].bytes - before[i].bytes});
  }
  return traffic;
}

}  // namespace

Result<report::PlanRun> train_plan(agent::Session& session, const topo::Cluster& cluster,
                                   const TrainingRequest& request, const std::atomic<bool>& stop) {
  const auto spec = std::make_shared<const nlohmann::json>(training_spec(request));
  std::vector<agent::WorkerLaunch> workers;
  for (const auto& device : request.plan.placement) {
    workers.push_back({.device = device, .arguments = {"train"}, .spec = spec});
  }
  report::Aggregator aggregator(static_cast<int>(workers.size()));
  std::optional<Error> broken;
  const auto before = count_links(session, cluster);
  report::PortAssignment ports;
  const agent::RankPortPlanner planner =
      port_planner(request.ports, cluster, session.lab() ? &*session.lab() : nullptr,
                   request.job.model, request.plan.strategy, ports);
  Status status;
  {
    bool is_first = true;
    RunProgress progress(request.out, request.title, request.job.steps);
    status = session.run(
        workers,
        [&](Rank rank, const nlohmann::json& event) {
          auto step = aggregator.add(rank, event);
          if (!step && !broken) broken = step.error();
          if (!step || !*step) return;
          if (std::exchange(is_first, false) && (*step)->step > 0)
            progress.on_resumed((*step)->step, request.job.checkpoint.folder);
          progress.on_step(**step, aggregator.tokens_per_step());
        },
        stop, planner);
  }
  if (!status) return status.error();
  if (broken) return *broken;
  const auto after = count_links(session, cluster);
  report::PlanRun run{request.plan, aggregator.measured(kWarmUpSteps, difference(before, after)),
                      std::move(ports)};
  if (run.measured.steps.empty()) {
    return Error{Code::kInvalidInput,
                 fmt::format("job {}: no step was left to train; give more --steps than the "
                             "checkpoint has",
                             request.job.name)};
  }
  if (run.measured.warm_up_steps < kWarmUpSteps) {
    const std::size_t counted =
        run.measured.steps.size() - static_cast<std::size_t>(run.measured.warm_up_steps);
    print_warnings(
        {fmt::format("{}: the median of {} step{} is not steady; train {} or more", request.title,
                     counted, counted == 1 ? "" : "s", 2 * kWarmUpSteps)});
  }
  return run;
}

}  // namespace regatta::cli
