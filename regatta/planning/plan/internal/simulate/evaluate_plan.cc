#include "regatta/planning/plan/internal/simulate/evaluate_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

using workload::Phase;

// Where `group` spends `step_time`: its spans, and bubble after its end.
workload::PhaseTimes phases_of(const std::vector<GroupSpan>& spans, double step_time) {
  workload::PhaseTimes phases;
  for (const GroupSpan& span : spans)
    phases[span.phase] += Seconds{span.end - span.start};
  const double end = spans.empty() ? 0 : spans.back().end;
  phases[Phase::kBubble] += Seconds{step_time - end};
  return phases;
}

void add_group(workload::Timeline& timeline, const std::vector<GroupSpan>& spans, Rank first,
               int ranks) {
  for (int i = 0; i < ranks; ++i) {
    for (const GroupSpan& span : spans) {
      workload::Span one;
      one.rank = {first.value + i};
      one.phase = span.phase;
      one.micro_batch = span.micro_batch;
      one.layer = span.layer;
      one.start = {span.start};
      one.duration = {span.end - span.start};
      timeline.push_back(one);
    }
  }
}

// Transfers and gradient buckets, on the rows of the ranks of the lockstep groups that post them.
void add_background(workload::Timeline& timeline, const StepProgram& program,
                    const StepSimulation& simulation, const workload::Strategy& strategy) {
  for (std::size_t group = 0; group < program.groups.size(); ++group) {
    for (const StepAction& action : program.groups[group]) {
      if (action.kind != StepActionKind::kPost) continue;
      const CommOperation& operation = at(program.operations, action.operation);
      if (operation.phase != Phase::kPpComm && operation.phase != Phase::kDpComm) continue;
      const CommOperationTimes& times = at(simulation.operations, action.operation);
      for (int tp = 0; tp < strategy.tp; ++tp) {
        workload::Span span;
        span.rank = {static_cast<int>(group) * strategy.tp + tp};
        span.phase = operation.phase;
        span.micro_batch = operation.micro_batch;
        span.background = true;
        span.start = {times.started};
        span.duration = {times.ended - times.started};
        timeline.push_back(span);
      }
    }
  }
}

std::vector<LinkTraffic> link_traffic(const DeviceNetwork& network, const BuiltStep& step) {
  std::vector<double> bytes(network.capacities().size(), 0);
  for (const PairBytes& pair : step.traffic)
    network.add_traffic(pair.pair, pair.bytes, bytes);
  std::vector<LinkTraffic> traffic;
  for (int resource = 0; resource < network.link_resources(); ++resource) {
    if (at(bytes, resource) < 0.5) continue;
    traffic.push_back({DeviceNetwork::link_of(resource), Bytes{std::llround(at(bytes, resource))}});
  }
  return traffic;
}

}  // namespace

Status check_rates(const workload::Job& job, const topo::Cluster& cluster,
                   const cost::Rates& rates) {
  for (const topo::Server& server : cluster.servers) {
    const std::string& type = cluster.server_types.at(server.type).device.name;
    const auto device = rates.devices.find(type);
    const bool known =
        device != rates.devices.end() &&
        std::any_of(device->second.matmul.begin(), device->second.matmul.end(),
                    [&](const cost::MatmulRate& rate) { return rate.precision == job.precision; });
    if (!known) {
      return Error{Code::kInvalidInput,
                   "rates (" + rates.source + "): no " + workload::to_string(job.precision) +
                       " product rate of device type " + type + "; run `regatta measure` again"};
    }
  }
  return {};
}

MemoryCheck check_memory(const PlanContext& context, const workload::Strategy& strategy,
                         const Placement& placement) {
  const int samples = strategy.dp * strategy.micro_batch;
  const int micro_batches = std::max(1, context.job.global_batch / samples);
  MemoryCheck worst;
  double worst_share = -1;
  for (int pp = 0; pp < strategy.pp; ++pp) {
    const MemoryUse use =
        cost::rank_memory(context.job.model, strategy, context.job.precision, pp, micro_batches);
    for (int i = 0; i < strategy.dp * strategy.tp; ++i) {
      const Rank rank{pp * strategy.dp * strategy.tp + i};
      const Bytes device = context.cluster.type_of(placement[rank.index()].server).device.memory;
      const double share = use.total() / device;
      if (share <= worst_share) continue;
      worst_share = share;
      worst = {use, rank, device};
    }
  }
  return worst;
}

Result<Prediction> evaluate_plan(const PlanContext& context, const workload::Strategy& strategy,
                                 const Placement& placement) {
  REGATTA_TRY(step, build_step(context, strategy, placement));
  const StepSimulation simulation = simulate_step(step.program, context.network.capacities());
  Prediction prediction;
  prediction.step_time = {simulation.end};
  const double groups = static_cast<double>(simulation.groups.size());
  for (std::size_t group = 0; group < simulation.groups.size(); ++group) {
    const workload::PhaseTimes phases = phases_of(simulation.groups[group], simulation.end);
    for (std::size_t i = 0; i < workload::kPhaseCount; ++i)
      prediction.phases.times[i] += phases.times[i] / groups;
    add_group(prediction.timeline, simulation.groups[group],
              Rank{static_cast<int>(group) * strategy.tp}, strategy.tp);
  }
  add_background(prediction.timeline, step.program, simulation, strategy);
  const MemoryCheck memory = check_memory(context, strategy, placement);
  prediction.memory = memory.use;
  prediction.memory_rank = memory.rank;
  prediction.traffic = link_traffic(context.network, step);
  return prediction;
}

}  // namespace regatta::plan
