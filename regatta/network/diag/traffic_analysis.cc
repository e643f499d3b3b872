#include "regatta/network/diag/traffic_analysis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/call.h"
#include "regatta/network/diag/internal/job_groups.h"

namespace regatta::diag {
namespace {

constexpr std::size_t kStepsLeast = 3;
// A step from the flows that is further off than this from the ranks' records is not stated.
constexpr double kContradiction = 0.1;

// The shortest number of calls after which the same ones come again; 0: none.
std::size_t cycle_of(const std::vector<RankOperation>& calls) {
  for (std::size_t cycle = 1; cycle * kStepsLeast <= calls.size(); ++cycle) {
    bool repeats = true;
    for (std::size_t i = cycle; repeats && i < calls.size(); ++i)
      repeats = calls[i].call == calls[i - cycle].call && calls[i].bytes == calls[i - cycle].bytes;
    if (repeats) return cycle;
  }
  return 0;
}

// How many steps have passed at `at`, with fractions; `begins` are at least two.
double steps_passed(const std::vector<Seconds>& begins, Seconds at) {
  const auto next = std::ranges::upper_bound(begins, at);
  const auto place = std::clamp<std::ptrdiff_t>(next - begins.begin(), 1,
                                                static_cast<std::ptrdiff_t>(begins.size()) - 1);
  const Seconds from = regatta::at(begins, place - 1);
  const Seconds to = regatta::at(begins, place);
  return static_cast<double>(place - 1) + (at - from) / (to - from);
}

struct Names {
  const TrafficRecord& record;
  std::vector<std::vector<Seconds>> begins;  // of steps, by rank

  explicit Names(const TrafficRecord& seen) : record(seen) {
    for (const WatchedRank& rank : seen.ranks)
      begins.push_back(steps_of(rank));
  }

  // The operation of the rank that covers most of the time; null: none.
  const RankOperation* during(int rank, Seconds from, Seconds to) const {
    if (rank < 0) return nullptr;
    const auto& operations = at(record.ranks, rank).operations;
    const RankOperation* best = nullptr;
    double most = 0;
    // They are sorted by their end, so the first that can matter is found quickly.
    auto one = std::ranges::lower_bound(operations, from, {}, &RankOperation::ended);
    for (std::size_t seen = 0; one != operations.end() && seen < 64; ++one, ++seen) {
      const double covered = std::min(to, one->ended).value - std::max(from, one->started).value;
      if (covered <= most) continue;
      most = covered;
      best = &*one;
    }
    return best;
  }

  int step_at(int rank, Seconds at) const {
    if (rank < 0) return -1;
    const auto& starts = regatta::at(begins, rank);
    if (starts.size() < 2 || at < starts.front()) return -1;
    return static_cast<int>(std::ranges::upper_bound(starts, at) - starts.begin()) - 1;
  }
};

std::string name_of(const TrafficRecord& record, int rank, const std::string& server) {
  if (rank < 0) return server;
  const WatchedRank& one = at(record.ranks, rank);
  return fmt::format("rank {} ({})", one.rank, one.server);
}

std::string name_of(const RankOperation* operation) {
  return operation == nullptr ? "" : collective::name_call(operation->call, operation->bytes);
}

PairTraffic pair_of(const TrafficRecord& record, const Names& names,
                    const std::vector<const WatchedFlow*>& flows) {
  const WatchedFlow& first = *flows.front();
  const int sender = first.from_rank >= 0 ? first.from_rank : first.to_rank;
  PairTraffic pair{.from = name_of(record, first.from_rank, first.from),
                   .to = name_of(record, first.to_rank, first.to)};
  std::vector<double> bytes(record.intervals, 0.0);
  for (const WatchedFlow* flow : flows) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] += flow->bytes[i];
    pair.retransmits += flow->retransmits;
    pair.round_trip = std::max(pair.round_trip, flow->round_trip);
  }
  const auto time_of = [&](std::size_t i) {
    return record.start + record.interval * static_cast<double>(i);
  };
  std::map<std::string, double> operations;
  double sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!(bytes[i] > 0)) continue;
    sum += bytes[i];
    operations[name_of(names.during(sender, time_of(i), time_of(i + 1)))] += bytes[i];
  }
  pair.bytes = {std::llround(sum)};
  for (const auto& [operation, part] : operations)
    pair.operations.push_back({operation, {std::llround(part)}});
  std::ranges::stable_sort(pair.operations,
                           [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  pair.peaks = peaks_of(bytes, record.interval);
  for (const Burst& burst : find_bursts(bytes, record.interval)) {
    const Seconds from = time_of(burst.begin);
    const Seconds to = time_of(burst.end);
    pair.bursts.push_back({.at = from - record.start,
                           .length = to - from,
                           .bytes = burst.bytes,
                           .peak = burst.peak,
                           .is_hidden = burst.is_hidden,
                           .operation = name_of(names.during(sender, from, to)),
                           .step = names.step_at(sender, from)});
  }
  return pair;
}

int owner_of(const WatchedFlow& flow) {
  return flow.from_rank >= 0 ? flow.from_rank : flow.to_rank;
}

bool carries(const WatchedFlow& flow) {
  return std::ranges::any_of(flow.bytes, [](double bytes) { return bytes > 0; });
}

std::vector<JobTraffic> jobs_of(const TrafficRecord& record, const Names& names) {
  // By world, then by the two ends.
  using Ends = std::tuple<int, int, std::string, std::string>;
  std::map<std::uint64_t, std::map<Ends, std::vector<const WatchedFlow*>>> worlds;
  for (const WatchedFlow& flow : record.flows)
    if (owner_of(flow) >= 0 && carries(flow))
      worlds[at(record.ranks, owner_of(flow)).world]
            [{flow.from_rank, flow.to_rank, flow.from, flow.to}]
                .push_back(&flow);
  std::vector<JobTraffic> jobs;
  for (const auto& [world, pairs] : worlds) {
    JobTraffic job{.world = world};
    job.bytes.assign(record.intervals, 0.0);
    for (const WatchedRank& rank : record.ranks) {
      if (rank.world != world) continue;
      job.job = rank.job;
      ++job.ranks;
    }
    for (const auto& [ends, flows] : pairs) {
      job.pairs.push_back(pair_of(record, names, flows));
      for (const WatchedFlow* flow : flows)
        for (std::size_t i = 0; i < job.bytes.size(); ++i)
          job.bytes[i] += flow->bytes[i];
    }
    job.peaks = peaks_of(job.bytes, record.interval);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<JobGroup> infer(const TrafficRecord& record) {
  std::map<std::string, NodeId> nodes;
  const auto node_of = [&](const std::string& server) {
    return nodes.try_emplace(server, NodeId{static_cast<int>(nodes.size())}).first->second;
  };
  TrafficSeries traffic{record.start, record.interval, {}};
  for (const WatchedFlow& flow : record.flows)
    traffic.flows.push_back({node_of(flow.from), node_of(flow.to), flow.bytes, flow.listener});
  return find_jobs(traffic);
}

// The steps that passed between the first mark and the last, by the record of each rank.
std::optional<Seconds> step_by_ranks(const TrafficRecord& record, const Names& names,
                                     std::uint64_t world, Seconds from, Seconds to) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < record.ranks.size(); ++i) {
    if (record.ranks[i].world != world || names.begins[i].size() < 2) continue;
    // Not beyond what the rank told.
    const Seconds first = std::max(from, names.begins[i].front());
    const Seconds last = std::min(to, names.begins[i].back());
    if (!(last > first)) continue;
    const double steps = steps_passed(names.begins[i], last) - steps_passed(names.begins[i], first);
    sum += (last - first).value / steps;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Seconds{sum / count};
}

// Flows of the group that are of ranks of the world.
std::ptrdiff_t flows_of(std::uint64_t world, const JobGroup& group, const TrafficRecord& record) {
  return std::ranges::count_if(group.flows, [&](std::uint32_t index) {
    const int owner = owner_of(record.flows[index]);
    return owner >= 0 && at(record.ranks, owner).world == world;
  });
}

bool contradicts(const StepTiming& steps, const JobTraffic& job) {
  return job.step_by_ranks && std::abs(steps.mean / *job.step_by_ranks - 1) >= kContradiction;
}

// The steps of the group that has most of the job's flows, and the step by the records of the ranks
// over the same time.
void add_steps(JobTraffic& job, const TrafficRecord& record, const Names& names,
               const std::vector<JobGroup>& groups) {
  std::ptrdiff_t most = 0;
  for (const JobGroup& group : groups) {
    const std::ptrdiff_t flows = flows_of(job.world, group, record);
    if (flows <= most) continue;
    most = flows;
    job.steps = group.steps;
  }
  const Seconds end = record.start + record.interval * static_cast<double>(record.intervals);
  const Seconds from = job.steps ? record.start + job.steps->marks.front() : record.start;
  const Seconds to = job.steps ? record.start + job.steps->marks.back() : end;
  job.step_by_ranks = step_by_ranks(record, names, job.world, from, to);
  job.is_clear = job.steps && job.steps->is_clear() && !contradicts(*job.steps, job);
}

InferredJob describe(const JobGroup& group, const TrafficRecord& record,
                     const std::vector<JobTraffic>& known) {
  InferredJob one{.flows = group.flows.size(), .steps = group.steps};
  std::set<std::string> servers;
  std::set<std::string> jobs;
  for (const std::uint32_t index : group.flows) {
    const WatchedFlow& flow = record.flows[index];
    servers.insert({flow.from, flow.to});
    const int owner = owner_of(flow);
    jobs.insert(owner < 0 ? "" : at(record.ranks, owner).job);
  }
  one.servers.assign(servers.begin(), servers.end());
  one.jobs.assign(jobs.begin(), jobs.end());
  one.is_clear = group.steps && group.steps->is_clear() &&
                 std::ranges::none_of(known, [&](const JobTraffic& job) {
                   return flows_of(job.world, group, record) > 0 && contradicts(*group.steps, job);
                 });
  return one;
}

}  // namespace

std::vector<Seconds> steps_of(const WatchedRank& rank) {
  std::map<std::uint64_t, std::vector<RankOperation>> groups;
  for (const RankOperation& one : rank.operations)
    if (!one.is_transfer) groups[one.group].push_back(one);
  std::vector<Seconds> longest;
  Seconds most;
  for (auto& [group, calls] : groups) {
    std::ranges::sort(calls, {}, &RankOperation::sequence);
    const std::size_t cycle = cycle_of(calls);
    if (cycle == 0) continue;
    std::vector<Seconds> begins;
    for (std::size_t i = 0; i < calls.size(); i += cycle)
      begins.push_back(calls[i].started);
    // A group may do the same several times in a step; the step is where all come again.
    const Seconds step = (begins.back() - begins.front()) / static_cast<double>(begins.size() - 1);
    if (step <= most) continue;
    most = step;
    longest = std::move(begins);
  }
  return longest;
}

std::vector<JobRates> job_rates(const TrafficRecord& record) {
  std::map<std::tuple<int, int, std::string, std::string>, std::vector<double>> pairs;
  for (const WatchedFlow& flow : record.flows) {
    if (owner_of(flow) < 0) continue;
    auto& bytes = pairs[{flow.from_rank, flow.to_rank, flow.from, flow.to}];
    bytes.resize(record.intervals, 0.0);
    for (std::size_t i = 0; i < std::min(bytes.size(), flow.bytes.size()); ++i)
      bytes[i] += flow.bytes[i];
  }
  std::vector<JobRates> rates;
  for (const auto& [ends, bytes] : pairs) {
    const auto& [from_rank, to_rank, from, to] = ends;
    const int owner = from_rank >= 0 ? from_rank : to_rank;
    rates.push_back({.job = at(record.ranks, owner).job,
                     .from = name_of(record, from_rank, from),
                     .to = name_of(record, to_rank, to),
                     .peaks = peaks_of(bytes, record.interval)});
  }
  return rates;
}

TrafficAnalysis analyze_traffic(const TrafficRecord& record) {
  const Names names(record);
  TrafficAnalysis view{.duration = record.interval * static_cast<double>(record.intervals),
                       .interval = record.interval,
                       .jobs = jobs_of(record, names),
                       .cost = record.cost,
                       .connections = record.connections};
  double others = 0;
  for (const WatchedFlow& flow : record.flows)
    if (owner_of(flow) < 0)
      for (const double bytes : flow.bytes)
        others += bytes;
  view.other_bytes = {std::llround(others)};
  const std::vector<JobGroup> groups = infer(record);
  for (JobTraffic& job : view.jobs)
    add_steps(job, record, names, groups);
  for (const JobGroup& group : groups)
    view.inferred.push_back(describe(group, record, view.jobs));
  return view;
}

}  // namespace regatta::diag
