#include "regatta/app/cli/internal/traffic_analysis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "regatta/model/collective/call.h"
#include "regatta/network/diag/job_groups.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kStepsLeast = 3;
// Bursts at random times, looked at for up to 16 s, had up to 4 steps with any regularity, and more
// with less than a half.
constexpr std::size_t kStepsTold = 5;
constexpr std::size_t kStepsMany = 20;
constexpr double kClearly = 0.5;

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
  const Seconds from = begins[static_cast<std::size_t>(place - 1)];
  const Seconds to = begins[static_cast<std::size_t>(place)];
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
    const auto& operations = record.ranks[static_cast<std::size_t>(rank)].operations;
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
    const auto& starts = begins[static_cast<std::size_t>(rank)];
    if (starts.size() < 2 || at < starts.front()) return -1;
    return static_cast<int>(std::ranges::upper_bound(starts, at) - starts.begin()) - 1;
  }
};

std::string name_of(const TrafficRecord& record, int rank, const std::string& server) {
  if (rank < 0) return server;
  const WatchedRank& one = record.ranks[static_cast<std::size_t>(rank)];
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
  pair.peaks = diag::peaks_of(bytes, record.interval);
  for (const diag::Burst& burst : diag::find_bursts(bytes, record.interval)) {
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
      worlds[record.ranks[static_cast<std::size_t>(owner_of(flow))].world]
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
    job.peaks = diag::peaks_of(job.bytes, record.interval);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<diag::JobGroup> infer(const TrafficRecord& record) {
  std::map<std::string, NodeId> nodes;
  const auto node_of = [&](const std::string& server) {
    return nodes.try_emplace(server, NodeId{static_cast<int>(nodes.size())}).first->second;
  };
  diag::TrafficSeries traffic{record.start, record.interval, {}};
  for (const WatchedFlow& flow : record.flows)
    traffic.flows.push_back({node_of(flow.from), node_of(flow.to), flow.bytes, flow.listener});
  return diag::find_jobs(traffic);
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

// `is_too_short` where what was found may be an accident, or only a part of a step: then nothing.
std::optional<diag::StepTiming> told(const std::optional<diag::StepTiming>& found,
                                     bool& is_too_short) {
  is_too_short = found && !is_regular(*found);
  return is_too_short ? std::nullopt : found;
}

// What flows say of steps, beside what the job's ranks wrote down meanwhile.
void compare(JobTraffic& job, const TrafficRecord& record, const Names& names) {
  const Seconds end = record.start + record.interval * static_cast<double>(record.intervals);
  const Seconds from = job.steps ? record.start + job.steps->marks.front() : record.start;
  const Seconds to = job.steps ? record.start + job.steps->marks.back() : end;
  job.step_by_ranks = step_by_ranks(record, names, job.world, from, to);
  if (!job.step_by_ranks) return;
  const double steps = (end - record.start) / *job.step_by_ranks;
  if (steps < static_cast<double>(kStepsTold)) job.is_too_short = true;
  if (job.is_too_short) job.steps.reset();
}

}  // namespace

bool is_regular(const diag::StepTiming& steps) {
  const std::size_t count = steps.marks.size() - 1;
  return count >= kStepsMany || (count >= kStepsTold && steps.regularity >= kClearly);
}

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
    rates.push_back({.job = record.ranks[static_cast<std::size_t>(owner)].job,
                     .from = name_of(record, from_rank, from),
                     .to = name_of(record, to_rank, to),
                     .peaks = diag::peaks_of(bytes, record.interval)});
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
  std::map<std::uint64_t, std::size_t> most_flows;  // of a group that stands for the world
  for (const diag::JobGroup& group : infer(record)) {
    InferredJob one{.flows = group.flows.size()};
    one.steps = told(group.steps, one.is_too_short);
    std::set<std::string> servers;
    std::map<std::uint64_t, std::size_t> worlds;
    std::set<std::string> jobs;
    for (const std::uint32_t index : group.flows) {
      const WatchedFlow& flow = record.flows[index];
      servers.insert({flow.from, flow.to});
      const int owner = owner_of(flow);
      jobs.insert(owner < 0 ? "" : record.ranks[static_cast<std::size_t>(owner)].job);
      if (owner >= 0) ++worlds[record.ranks[static_cast<std::size_t>(owner)].world];
    }
    one.servers.assign(servers.begin(), servers.end());
    one.jobs.assign(jobs.begin(), jobs.end());
    const auto main = std::ranges::max_element(
        worlds, [](const auto& a, const auto& b) { return a.second < b.second; });
    for (JobTraffic& job : view.jobs) {
      if (main == worlds.end() || !group.steps || job.world != main->first) continue;
      if (most_flows[job.world] >= main->second) continue;
      most_flows[job.world] = main->second;
      job.steps = one.steps;
      job.is_too_short = one.is_too_short;
    }
    view.inferred.push_back(std::move(one));
  }
  for (JobTraffic& job : view.jobs)
    compare(job, record, names);
  return view;
}

}  // namespace regatta::cli
