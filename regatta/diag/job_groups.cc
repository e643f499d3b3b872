#include "regatta/diag/job_groups.h"

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

NodeId root_of(std::map<NodeId, NodeId>& parents, NodeId node) {
  const NodeId parent = parents.try_emplace(node, node).first->second;
  if (parent == node) return node;
  return parents[node] = root_of(parents, parent);
}

// Flows by the set of servers that they join, directly or through others.
std::vector<std::vector<std::uint32_t>> joined(const Traffic& traffic,
                                               const std::vector<std::uint32_t>& flows) {
  std::map<NodeId, NodeId> parents;
  for (const std::uint32_t flow : flows) {
    const NodeId a = root_of(parents, traffic.flows[flow].from);
    const NodeId b = root_of(parents, traffic.flows[flow].to);
    parents[std::max(a, b)] = std::min(a, b);
  }
  std::map<NodeId, std::vector<std::uint32_t>> sets;
  for (const std::uint32_t flow : flows)
    sets[root_of(parents, traffic.flows[flow].from)].push_back(flow);
  std::vector<std::vector<std::uint32_t>> out;
  for (auto& [root, set] : sets)
    out.push_back(std::move(set));
  return out;
}

std::set<NodeId> servers_of(const Traffic& traffic, const std::vector<std::uint32_t>& flows) {
  std::set<NodeId> servers;
  for (const std::uint32_t flow : flows)
    servers.insert({traffic.flows[flow].from, traffic.flows[flow].to});
  return servers;
}

std::vector<Series> series_of(const Traffic& traffic, const std::vector<std::uint32_t>& flows) {
  std::vector<Series> series;
  for (const std::uint32_t flow : flows)
    series.emplace_back(traffic.flows[flow].bytes);
  return series;
}

struct Seed {
  std::uint32_t flow = 0;
  Steps steps;
};

// Flows that keep time by themselves, longest step first: what a job does once a step is the
// measure for what it does several times in it.
std::vector<Seed> seeds_of(const Traffic& traffic, const std::vector<std::uint32_t>& flows,
                           const JobSearch& search) {
  std::vector<Seed> seeds;
  for (const std::uint32_t flow : flows) {
    auto steps = find_steps({traffic.flows[flow].bytes}, traffic.interval, search.steps);
    if (steps && steps->regularity >= kRegularLeast) seeds.push_back({flow, *std::move(steps)});
  }
  std::ranges::stable_sort(
      seeds, [](const Seed& a, const Seed& b) { return a.steps.mean > b.steps.mean; });
  if (!seeds.empty() || flows.size() < 2) return seeds;
  // Alone each flow is too restless: what they have in common may show it.
  auto steps = find_steps(series_of(traffic, flows), traffic.interval, search.steps);
  if (steps && steps->regularity >= kRegularLeast)
    seeds.push_back({flows.front(), *std::move(steps)});
  return seeds;
}

// Chance alone repeats a little, the more so the fewer steps there are.
bool keeps_time(Series bytes, Seconds interval, const Steps& steps, const JobSearch& search) {
  const double count = static_cast<double>(steps.marks.size() - 1);
  return repeats_with(bytes, interval, steps.marks) >= std::max(search.repeats_least, 1.5 / count);
}

// Gives what keeps no time to the one job whose servers it joins; the rest stays in `loose`.
void adopt(const Traffic& traffic, std::vector<JobGroup>& jobs, std::vector<std::uint32_t>& loose) {
  std::vector<std::set<NodeId>> servers;
  for (const JobGroup& job : jobs)
    servers.push_back(servers_of(traffic, job.flows));
  std::erase_if(loose, [&](std::uint32_t flow) {
    JobGroup* home = nullptr;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!servers[i].contains(traffic.flows[flow].from) ||
          !servers[i].contains(traffic.flows[flow].to))
        continue;
      if (home != nullptr) return false;
      home = &jobs[i];
    }
    if (home != nullptr) home->flows.push_back(flow);
    return home != nullptr;
  });
}

// Of flows whose servers are joined.
void split(const Traffic& traffic, std::vector<std::uint32_t> flows, const JobSearch& search,
           std::vector<JobGroup>& out) {
  std::vector<JobGroup> jobs;
  for (const Seed& seed : seeds_of(traffic, flows, search)) {
    if (std::ranges::find(flows, seed.flow) == flows.end()) continue;
    std::vector<std::uint32_t> members;
    std::erase_if(flows, [&](std::uint32_t flow) {
      const bool belongs = flow == seed.flow || keeps_time(traffic.flows[flow].bytes,
                                                           traffic.interval, seed.steps, search);
      if (belongs) members.push_back(flow);
      return belongs;
    });
    for (auto& part : joined(traffic, members)) {
      JobGroup job{.flows = std::move(part), .servers = {}, .steps = {}};
      job.steps = find_steps(series_of(traffic, job.flows), traffic.interval, search.steps);
      jobs.push_back(std::move(job));
    }
  }
  adopt(traffic, jobs, flows);
  for (auto& part : joined(traffic, flows))
    jobs.push_back({.flows = std::move(part), .servers = {}, .steps = {}});
  std::ranges::move(jobs, std::back_inserter(out));
}

}  // namespace

std::vector<JobGroup> find_jobs(const Traffic& traffic, const JobSearch& search) {
  std::vector<std::uint32_t> flows;
  for (std::uint32_t flow = 0; flow < traffic.flows.size(); ++flow)
    if (carries(traffic.flows[flow])) flows.push_back(flow);
  std::vector<JobGroup> jobs;
  for (auto& set : joined(traffic, flows))
    split(traffic, std::move(set), search, jobs);
  for (JobGroup& job : jobs) {
    std::ranges::sort(job.flows);
    const std::set<NodeId> servers = servers_of(traffic, job.flows);
    job.servers.assign(servers.begin(), servers.end());
  }
  std::ranges::stable_sort(
      jobs, [](const JobGroup& a, const JobGroup& b) { return a.flows.size() > b.flows.size(); });
  return jobs;
}

}  // namespace regatta::diag
