// Runs that make room in a forecast, by evictions or moves: sched/internal/forecast_runs.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/forecast_runs.h"
#include "regatta/platform/sched/internal/node_amounts.h"

namespace regatta::sched {

double ForecastRuns::elapsed_at(const Run& run, double now) const {
  return run.job.elapsed + std::max(0.0, now - run.begun);
}

double ForecastRuns::since_checkpoint(const Run& run, double now) const {
  const double interval = run.job.request->checkpointing.interval.value;
  const double ran = std::max(0.0, now - run.started);
  return interval > 0 ? std::fmod(ran, interval) : elapsed_at(run, now);
}

double ForecastRuns::loss_of(const Run& run, double now) const {
  return run.job.devices *
         (since_checkpoint(run, now) + run.job.request->checkpointing.restart.value);
}

bool ForecastRuns::may_evict(const ForecastJob& job, const Run& run, double now) const {
  if (!run.job.request->is_preemptible ||
      now - run.started < input_.policy.protected_run_time.value)
    return false;
  if (run.job.request->priority != job.request->priority)
    return run.job.request->priority < job.request->priority;
  const auto& levels = input_.policy.service_levels;
  return service_level(levels, {elapsed_at(run, now) * run.job.devices}) >
         service_level(levels, {job.elapsed * job.devices});
}

// The runs of `candidates`, by rising loss, until the amounts fit on a node with so much free.
std::optional<ForecastRuns::Room> ForecastRuns::room_on(int node, const ResourceAmounts& amounts,
                                                        ResourceAmounts free,
                                                        const Candidates& candidates) const {
  Room room;
  for (const auto& [loss, run] : candidates) {
    if (holds(free, amounts)) break;
    for (const ForecastPlace& place : at(runs_, run).places)
      if (place.node == node) free += place.amounts;
    room.runs.push_back(run);
    room.loss += loss;
  }
  if (!holds(free, amounts)) return std::nullopt;
  return room;
}

// Replica by replica, on the node of the domain where the least is lost.
std::optional<ForecastRuns::Room> ForecastRuns::room_below(
    const ForecastShape& shape, int domain, const std::vector<Candidates>& candidates) const {
  const TopologyLevel level = ForecastCluster::level_of(shape);
  ForecastCluster::Free free = free_;
  std::set<int> gone;
  Room all;
  const auto cheapest = [&](const ForecastReplicas& replicas, int& chosen) {
    std::optional<Room> best;
    for (int node = 0; node < input_.cluster.nodes(); ++node) {
      if (input_.cluster.domain_of(node, level) != domain || !input_.cluster.accepts(shape, node))
        continue;
      auto left = at(candidates, node);
      std::erase_if(left, [&](const auto& each) { return gone.count(each.second) > 0; });
      auto room = room_on(node, input_.cluster.amounts_on(node, replicas), at(free, node), left);
      if (!room || (best && room->loss >= best->loss)) continue;
      best = std::move(room);
      chosen = node;
    }
    return best;
  };
  for (const ForecastReplicas& replicas : shape.replicas)
    for (int replica = 0; replica < replicas.count; ++replica) {
      int chosen = -1;
      const auto room = cheapest(replicas, chosen);
      if (!room) return std::nullopt;
      for (const int run : room->runs) {
        gone.insert(run);
        all.runs.push_back(run);
        ForecastCluster::give(at(runs_, run).places, free);
      }
      all.loss += room->loss;
      at(free, chosen) -= input_.cluster.amounts_on(chosen, replicas);
    }
  return all;
}

std::optional<ForecastRuns::Room> ForecastRuns::find_room(
    int wanted, double now, const std::function<bool(const Run&)>& may_go) const {
  const ForecastShape& shape = at(input_.cluster.shapes(), wanted);
  std::vector<Candidates> candidates(runs_on_.size());
  for (std::size_t node = 0; node < runs_on_.size(); ++node) {
    for (const int run : runs_on_[node])
      if (may_go(at(runs_, run))) candidates[node].emplace_back(loss_of(at(runs_, run), now), run);
    std::sort(candidates[node].begin(), candidates[node].end());
  }
  std::optional<Room> best;
  for (int domain = 0; domain < input_.cluster.domains(ForecastCluster::level_of(shape));
       ++domain) {
    auto room = room_below(shape, domain, candidates);
    if (room && (!best || room->loss < best->loss)) best = std::move(room);
  }
  return best;
}

std::optional<std::vector<ForecastJob>> ForecastRuns::evict_for(const ForecastJob& job, int shape,
                                                                double now) {
  const auto& levels = input_.policy.service_levels;
  if (job.request->priority <= input_.lowest_priority &&
      service_level(levels, {job.elapsed * job.devices}) == static_cast<int>(levels.size()))
    return std::nullopt;  // it is before nobody
  const auto room = find_room(shape, now, [&](const Run& run) { return may_evict(job, run, now); });
  if (!room) return std::nullopt;
  std::vector<ForecastJob> evicted;
  for (const int run : room->runs) {
    ForecastJob waits = at(runs_, run).job;
    waits.elapsed = elapsed_at(at(runs_, run), now) - since_checkpoint(at(runs_, run), now);
    evicted.push_back(waits);
    end_run(run);
  }
  return evicted;
}

bool ForecastRuns::move_for(const ForecastJob& job, int shape, double now) {
  double free_milli = 0;
  for (const ResourceAmounts& free : free_)
    free_milli += static_cast<double>(std::max(0LL, free[Resource::kCompute]));
  if (free_milli < kDeviceMilli * job.devices) return false;
  const auto room =
      find_room(shape, now, [](const Run& run) { return run.job.request->is_preemptible; });
  if (!room || static_cast<int>(room->runs.size()) > input_.policy.moves) return false;
  const double begins = expected_start(job, now);
  if (room->loss > job.devices * ((std::isfinite(begins) ? begins : now) - now)) return false;
  // Room for the job first, then for those that move.
  ForecastCluster::Free free = free_;
  for (const int run : room->runs)
    ForecastCluster::give(at(runs_, run).places, free);
  if (!input_.cluster.place(shape, free)) return false;
  std::vector<Places> targets;
  for (const int run : room->runs) {
    auto places = input_.cluster.place(at(runs_, run).held.shape, free);
    if (!places) return false;
    targets.push_back(std::move(*places));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    ForecastJob moved = at(runs_, room->runs[i]).job;
    moved.elapsed =
        elapsed_at(at(runs_, room->runs[i]), now) - since_checkpoint(at(runs_, room->runs[i]), now);
    const ForecastVariant held = at(runs_, room->runs[i]).held;
    end_run(room->runs[i]);
    start(moved, held, targets[i], now);
  }
  return true;
}

}  // namespace regatta::sched
