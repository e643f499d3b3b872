#include "bench/cluster_replay/replay_table.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace regatta::cluster_replay {
namespace {

constexpr int kHighPriority = 1;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double percent_lost(const ReplayResult& result) {
  return 100 * (result.lost_device_time / std::max(Seconds{1}, result.work_device_time));
}

std::string json_line(const ReplayRow& row) {
  const ReplayResult& result = row.result;
  const JobGroupSummary& all = row.is_spot ? result.by_priority.begin()->second : result.all;
  return fmt::format(
      R"({{"cluster":"{}","policy":"{}","jobs":{},"unfinished":{},"delay_mean_s":{:.1f},)"
      R"("delay_median_s":{:.1f},"delay_p90_s":{:.1f},"delay_longest_s":{:.1f},)"
      R"("pending_mean_s":{:.1f},"first_wait_mean_s":{:.1f},"allocated":{:.5f},"busy":{:.5f},)"
      R"("fragmentation":{:.5f},"evictions":{},"lost_percent":{:.4f},"decisions":{},)"
      R"("decision_ms":{:.4f},"decision_longest_ms":{:.2f},"scored":{},"within_80":{:.4f},)"
      R"("median_start_error":{:.4f},"raw_within_80":{:.4f},"raw_median_start_error":{:.4f},)"
      R"("log_hash":"{:016x}"}})",
      row.cluster, row.policy, all.delay.jobs, result.unfinished, all.delay.mean.value,
      all.delay.median.value, all.delay.percentile_90.value, all.delay.longest.value,
      all.pending.mean.value, all.first_wait.mean.value, result.allocated_share, result.busy_share,
      result.fragmentation, all.evictions, percent_lost(result), result.decision_times.decisions,
      1e3 * result.decision_times.total.value /
          static_cast<double>(std::max(1LL, result.decision_times.decisions)),
      1e3 * result.decision_times.longest.value, row.scores.scored, row.scores.within_80,
      row.scores.median_error, row.scores.raw_within_80, row.scores.raw_median_error,
      result.log_hash);
}

std::string markdown_line(const ReplayRow& row) {
  const ReplayResult& result = row.result;
  const double decision_ms = 1e3 * result.decision_times.total.value /
                             static_cast<double>(std::max(1LL, result.decision_times.decisions));
  if (row.is_spot) {
    const JobGroupSummary& low = result.by_priority.begin()->second;
    const auto high = result.by_priority.find(kHighPriority);
    return fmt::format(
        "| {} | {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {:.2f} |",
        row.cluster, row.policy, low.evictions, low.delay.mean.value, low.pending.mean.value,
        low.delay.percentile_90.value,
        high == result.by_priority.end() ? 0 : high->second.first_wait.mean.value,
        high == result.by_priority.end() ? 0 : high->second.first_wait.percentile_99.value,
        100 * result.allocated_share, percent_lost(result), decision_ms);
  }
  return fmt::format(
      "| {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.1f} | {:.1f} | {:.1f} | {} | {:.2f} | "
      "{:.2f} | {:.1f} | {:.0f} |",
      row.cluster, row.policy, result.all.delay.mean.value, result.all.delay.median.value,
      result.all.delay.percentile_90.value, result.all.delay.longest.value / 3600,
      100 * result.allocated_share, 100 * result.busy_share, 100 * result.fragmentation,
      result.evictions, percent_lost(result), decision_ms, 100 * row.scores.within_80,
      100 * row.scores.median_error);
}

}  // namespace

bool BenchOptions::has(const std::string& name) const {
  return only.empty() || std::count(only.begin(), only.end(), name) > 0;
}

Result<ReplayRow> replay_row(const ReplayInput& input, const NamedPolicy& policy,
                             const std::string& cluster, const BenchOptions& bench,
                             ReplayOptions options) {
  options.clock = seconds_now;
  const double begun = seconds_now();
  options.progress = [&](const ReplayProgress& progress) {
    fmt::print(stderr, "\r{} {}: day {:.1f}, {} submitted, {} ended, {} waiting, {:.0f} s   ",
               cluster, policy.label, progress.now.value / 86400, progress.submitted,
               progress.ended, progress.waiting, seconds_now() - begun);
  };
  sched::StartForecastOptions forecast;
  forecast.decision_interval = options.decision_interval;
  StartScorer scorer(policy.policy, forecast, std::max(1, bench.predicted_every));
  if (bench.predicted_every > 0) scorer.watch(options);
  REGATTA_TRY(result, replay_cluster(input, policy.policy, options));
  fmt::print(stderr, "\n");
  return ReplayRow{cluster, policy.label, std::move(result), scorer.scores(), false};
}

void print_head(const BenchOptions& bench, bool is_spot) {
  if (bench.as_json) return;
  if (is_spot)
    fmt::print(
        "| GPUs | policy | evictions | mean waiting, s | of it in the queue, s | p90, s | "
        "services: "
        "mean waiting, s | p99, s | allocated, % | work lost, % | ms a decision |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n");
  else
    fmt::print(
        "| GPUs | policy | mean waiting, s | median, s | p90, s | longest, h | allocated, % | "
        "busy, "
        "% | fragmentation, % | evictions | work lost, % | ms a decision | starts in their 80 % "
        "interval, % | median error of the start, % |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

void print_row(const BenchOptions& bench, const ReplayRow& row) {
  fmt::print("{}\n", bench.as_json ? json_line(row) : markdown_line(row));
  std::fflush(stdout);
}

}  // namespace regatta::cluster_replay
