#include "regatta/network/diag/internal/job_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace regatta::diag {
namespace {

// Steps that differ by less are of one job.
constexpr double kSameStep = 0.03;

bool carries(const FlowSeries& flow) {
  return std::ranges::any_of(flow.bytes, [](double bytes) { return bytes > 0; });
}

// Flows of one process, which belong to one job.
struct Unit {
  std::vector<std::uint32_t> flows;
  std::vector<double> bytes;  // of all of them
  bool is_process = false;    // else one flow of an unknown process
};

using Numbers = std::vector<std::uint32_t>;  // of units

std::vector<Unit> units_of(const TrafficSeries& traffic) {
  std::vector<Unit> units;
  std::map<std::uint32_t, std::size_t> of_process;
  for (std::uint32_t flow = 0; flow < traffic.flows.size(); ++flow) {
    const FlowSeries& series = traffic.flows[flow];
    if (!carries(series)) continue;
    std::size_t unit = units.size();
    if (series.process != 0) unit = of_process.try_emplace(series.process, unit).first->second;
    if (unit == units.size()) {
      units.push_back({{flow}, series.bytes, series.process != 0});
      continue;
    }
    units[unit].flows.push_back(flow);
    for (std::size_t i = 0; i < series.bytes.size(); ++i)
      units[unit].bytes[i] += series.bytes[i];
  }
  return units;
}

struct Search {
  const TrafficSeries& traffic;
  const JobSearchOptions& options;
  std::vector<Unit> units;

  Series bytes(std::uint32_t unit) const { return units[unit].bytes; }
  std::set<NodeId> servers(const Numbers& list) const {
    std::set<NodeId> all;
    for (const std::uint32_t unit : list)
      for (const std::uint32_t flow : units[unit].flows)
        all.insert({traffic.flows[flow].from, traffic.flows[flow].to});
    return all;
  }
  std::optional<StepTiming> steps(const Numbers& list) const {
    std::vector<Series> series;
    for (const std::uint32_t unit : list)
      series.push_back(bytes(unit));
    return find_steps(series, traffic.interval, options.steps);
  }
  double periodicity(std::uint32_t unit, const StepTiming& steps) const {
    return periodicity_of(bytes(unit), traffic.interval, steps.marks);
  }
};

// Units, and their steps.
struct Job {
  Numbers units;
  std::optional<StepTiming> steps;
};

NodeId root_of(std::map<NodeId, NodeId>& parents, NodeId node) {
  const NodeId parent = parents.try_emplace(node, node).first->second;
  if (parent == node) return node;
  return parents[node] = root_of(parents, parent);
}

// Units by the set of servers that they join, directly or through others.
std::vector<Numbers> joined(const Search& search, const Numbers& units) {
  std::map<NodeId, NodeId> parents;
  for (const std::uint32_t unit : units) {
    const NodeId first = *search.servers({unit}).begin();
    for (const NodeId server : search.servers({unit})) {
      const NodeId a = root_of(parents, first);
      const NodeId b = root_of(parents, server);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<NodeId, Numbers> sets;
  for (const std::uint32_t unit : units)
    sets[root_of(parents, *search.servers({unit}).begin())].push_back(unit);
  std::vector<Numbers> out;
  out.reserve(sets.size());
  for (auto& [root, set] : sets)
    out.push_back(std::move(set));
  return out;
}

struct Seed {
  std::uint32_t unit = 0;
  StepTiming steps;
};

// Chance alone repeats a little, the more so the fewer steps there are.
bool repeats_with(const Search& search, std::uint32_t unit, const StepTiming& steps) {
  return search.periodicity(unit, steps) >=
         std::max(search.options.periodicity_min, 1.5 / static_cast<double>(steps.steps()));
}

// Whether the steps of `unit`, less periodic than clear ones, are those of another process too.
// Jobs on the same servers disturb each other's steps.
bool is_confirmed(const Search& search, const Numbers& units, std::uint32_t unit,
                  const StepTiming& steps) {
  if (!search.units[unit].is_process) return false;
  if (!steps.is_clear(search.options.confirmed_periodicity_min)) return false;
  return std::ranges::any_of(units, [&](std::uint32_t other) {
    return other != unit && search.units[other].is_process && repeats_with(search, other, steps);
  });
}

// Units whose steps tell jobs apart, longest step first: other units of a job may repeat several
// times within it.
std::vector<Seed> seeds_of(const Search& search, const Numbers& units) {
  std::vector<Seed> seeds;
  for (const std::uint32_t unit : units) {
    auto steps = search.steps({unit});
    if (steps && (steps->is_clear() || is_confirmed(search, units, unit, *steps)))
      seeds.push_back({unit, *std::move(steps)});
  }
  std::ranges::stable_sort(
      seeds, [](const Seed& a, const Seed& b) { return a.steps.mean > b.steps.mean; });
  return seeds;
}

// Whether `part` divides `step`: then they are of one job, which does something several times in
// a step.
bool divides(Seconds part, Seconds step) {
  const double ratio = step / part;
  return std::abs(ratio / std::max(1.0, std::round(ratio)) - 1) < kSameStep;
}

// Gives each unit without a clear step of its own to the job whose servers it joins; among several,
// to the one with whose steps it repeats most. The rest stays in `loose`.
void adopt(const Search& search, std::vector<Job>& jobs, Numbers& loose) {
  std::vector<std::set<NodeId>> servers;
  servers.reserve(jobs.size());
  for (const Job& job : jobs)
    servers.push_back(search.servers(job.units));
  std::erase_if(loose, [&](std::uint32_t unit) {
    Job* home = nullptr;
    double most = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!std::ranges::includes(servers[i], search.servers({unit}))) continue;
      const double periodicity = search.periodicity(unit, *jobs[i].steps);
      if (home != nullptr && periodicity <= most) continue;
      home = &jobs[i];
      most = periodicity;
    }
    if (home != nullptr) home->units.push_back(unit);
    return home != nullptr;
  });
}

// `all`: units whose servers are joined. They are one job unless several steps tell them apart.
void split(const Search& search, const Numbers& all, std::vector<Job>& out) {
  std::vector<Job> jobs;
  Numbers units = all;
  for (const Seed& seed : seeds_of(search, units)) {
    if (std::ranges::find(units, seed.unit) == units.end()) continue;
    Numbers members;
    std::erase_if(units, [&](std::uint32_t unit) {
      const bool belongs = unit == seed.unit || repeats_with(search, unit, seed.steps);
      if (belongs) members.push_back(unit);
      return belongs;
    });
    const auto same = std::ranges::find_if(
        jobs, [&](const Job& job) { return divides(seed.steps.mean, job.steps->mean); });
    if (same == jobs.end())
      jobs.push_back({std::move(members), seed.steps});
    else
      same->units.insert(same->units.end(), members.begin(), members.end());
  }
  // Steps that are confirmed but not clear say only which of several jobs a flow belongs to.
  if (jobs.size() < 2 &&
      std::ranges::none_of(jobs, [](const Job& job) { return job.steps->is_clear(); })) {
    out.push_back({all, search.steps(all)});
    return;
  }
  std::vector<Numbers> keepers;
  for (const Job& job : jobs)
    keepers.push_back(job.units);
  adopt(search, jobs, units);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (Numbers& part : joined(search, jobs[i].units)) {
      Numbers kept;
      for (const std::uint32_t unit : part)
        if (std::ranges::find(keepers[i], unit) != keepers[i].end()) kept.push_back(unit);
      auto steps = search.steps(kept.empty() ? part : kept);
      out.push_back({std::move(part), std::move(steps)});
    }
  }
  for (Numbers& part : joined(search, units))
    out.push_back({std::move(part), {}});
}

}  // namespace

std::vector<JobGroup> find_jobs(const TrafficSeries& traffic, const JobSearchOptions& options) {
  const Search search{traffic, options, units_of(traffic)};
  Numbers units(search.units.size());
  std::iota(units.begin(), units.end(), 0U);
  std::vector<Job> found;
  for (const Numbers& set : joined(search, units))
    split(search, set, found);
  std::vector<JobGroup> jobs;
  for (Job& job : found) {
    const std::set<NodeId> servers = search.servers(job.units);
    JobGroup group{.flows = {}, .servers = {servers.begin(), servers.end()}, .steps = {}};
    for (const std::uint32_t unit : job.units)
      group.flows.insert(group.flows.end(), search.units[unit].flows.begin(),
                         search.units[unit].flows.end());
    std::ranges::sort(group.flows);
    group.steps = std::move(job.steps);
    jobs.push_back(std::move(group));
  }
  std::ranges::stable_sort(
      jobs, [](const JobGroup& a, const JobGroup& b) { return a.flows.size() > b.flows.size(); });
  return jobs;
}

}  // namespace regatta::diag
