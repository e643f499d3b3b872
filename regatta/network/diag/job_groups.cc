#include "regatta/network/diag/job_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace regatta::diag {
namespace {

// A seed must be this regular to be the measure for others.
constexpr double kRegularLeast = 0.15;

bool carries(const FlowSeries& flow) {
  return std::ranges::any_of(flow.bytes, [](double bytes) { return bytes > 0; });
}

// Flows that belong together whatever time they keep: those of one process.
struct Unit {
  std::vector<std::uint32_t> flows;
  std::vector<double> bytes;  // of all of them
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
      units.push_back({{flow}, series.bytes});
      continue;
    }
    units[unit].flows.push_back(flow);
    for (std::size_t i = 0; i < series.bytes.size(); ++i)
      units[unit].bytes[i] += series.bytes[i];
  }
  return units;
}

// What find_jobs() looks at.
struct Sight {
  const TrafficSeries& traffic;
  const JobSearchOptions& search;
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
    return find_steps(series, traffic.interval, search.steps);
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
std::vector<Numbers> joined(const Sight& sight, const Numbers& units) {
  std::map<NodeId, NodeId> parents;
  for (const std::uint32_t unit : units) {
    const NodeId first = *sight.servers({unit}).begin();
    for (const NodeId server : sight.servers({unit})) {
      const NodeId a = root_of(parents, first);
      const NodeId b = root_of(parents, server);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<NodeId, Numbers> sets;
  for (const std::uint32_t unit : units)
    sets[root_of(parents, *sight.servers({unit}).begin())].push_back(unit);
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

// Units that keep time by themselves, longest step first: what a job does once a step is the
// measure for what it does several times in it.
std::vector<Seed> seeds_of(const Sight& sight, const Numbers& units) {
  std::vector<Seed> seeds;
  for (const std::uint32_t unit : units) {
    auto steps = sight.steps({unit});
    if (steps && steps->regularity >= kRegularLeast) seeds.push_back({unit, *std::move(steps)});
  }
  std::ranges::stable_sort(
      seeds, [](const Seed& a, const Seed& b) { return a.steps.mean > b.steps.mean; });
  if (!seeds.empty() || units.size() < 2) return seeds;
  // Alone each is too restless: what they have in common may show it.
  auto steps = sight.steps(units);
  if (steps && steps->regularity >= kRegularLeast)
    seeds.push_back({units.front(), *std::move(steps)});
  return seeds;
}

// Chance alone repeats a little, the more so the fewer steps there are.
bool keeps_time(const Sight& sight, std::uint32_t unit, const StepTiming& steps) {
  const double count = static_cast<double>(steps.marks.size() - 1);
  return repeats_with(sight.bytes(unit), sight.traffic.interval, steps.marks) >=
         std::max(sight.search.repeats_least, 1.5 / count);
}

// Gives what keeps no time to the one job whose servers it joins; the rest stays in `loose`.
void adopt(const Sight& sight, std::vector<Job>& jobs, Numbers& loose) {
  std::vector<std::set<NodeId>> servers;
  servers.reserve(jobs.size());
  for (const Job& job : jobs)
    servers.push_back(sight.servers(job.units));
  std::erase_if(loose, [&](std::uint32_t unit) {
    Job* home = nullptr;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!std::ranges::includes(servers[i], sight.servers({unit}))) continue;
      if (home != nullptr) return false;
      home = &jobs[i];
    }
    if (home != nullptr) home->units.push_back(unit);
    return home != nullptr;
  });
}

// Of units whose servers are joined.
void split(const Sight& sight, Numbers units, std::vector<Job>& out) {
  std::vector<Job> jobs;
  for (const Seed& seed : seeds_of(sight, units)) {
    if (std::ranges::find(units, seed.unit) == units.end()) continue;
    Numbers members;
    std::erase_if(units, [&](std::uint32_t unit) {
      const bool belongs = unit == seed.unit || keeps_time(sight, unit, seed.steps);
      if (belongs) members.push_back(unit);
      return belongs;
    });
    for (auto& part : joined(sight, members)) {
      auto steps = sight.steps(part);
      jobs.push_back({std::move(part), std::move(steps)});
    }
  }
  adopt(sight, jobs, units);
  for (auto& part : joined(sight, units))
    jobs.push_back({std::move(part), {}});
  std::ranges::move(jobs, std::back_inserter(out));
}

}  // namespace

std::vector<JobGroup> find_jobs(const TrafficSeries& traffic, const JobSearchOptions& search) {
  const Sight sight{traffic, search, units_of(traffic)};
  Numbers units(sight.units.size());
  std::iota(units.begin(), units.end(), 0U);
  std::vector<Job> found;
  for (auto& set : joined(sight, units))
    split(sight, std::move(set), found);
  std::vector<JobGroup> jobs;
  for (Job& job : found) {
    const std::set<NodeId> servers = sight.servers(job.units);
    JobGroup group{.flows = {}, .servers = {servers.begin(), servers.end()}, .steps = {}};
    for (const std::uint32_t unit : job.units)
      group.flows.insert(group.flows.end(), sight.units[unit].flows.begin(),
                         sight.units[unit].flows.end());
    std::ranges::sort(group.flows);
    group.steps = std::move(job.steps);
    jobs.push_back(std::move(group));
  }
  std::ranges::stable_sort(
      jobs, [](const JobGroup& a, const JobGroup& b) { return a.flows.size() > b.flows.size(); });
  return jobs;
}

}  // namespace regatta::diag
