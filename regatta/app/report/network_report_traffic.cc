// The traffic of a network by job, collective and step.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/traffic_texts.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using nlohmann::json;

constexpr std::size_t kPairsShown = 32;

std::string periodicity_text(const diag::StepTiming& steps) {
  const double value = std::max(0.0, steps.periodicity);
  return fmt::format("periodicity {:.2f} ({})", value,
                     value >= 0.75  ? "high"
                     : value >= 0.5 ? "medium"
                                    : "low");
}

std::string steps_text(const std::optional<diag::StepTiming>& steps, bool is_clear) {
  if (!steps) return "no period found, periodicity 0.00 (low)";
  if (!is_clear)
    return "step time not clear yet, " + periodicity_text(*steps) + "; give a longer --duration";
  return fmt::format("step {} over {} steps, {}", format_seconds(steps->mean), steps->steps(),
                     periodicity_text(*steps));
}

}  // namespace

std::size_t hidden_bursts(const diag::PairTraffic& pair) {
  return static_cast<std::size_t>(std::ranges::count_if(pair.bursts, &diag::BurstEvent::is_hidden));
}

std::string main_operation(const diag::PairTraffic& pair) {
  if (pair.operations.empty()) return "-";
  const diag::OperationBytes& main = pair.operations.front();
  const double share = pair.bytes.value > 0 ? main.bytes / pair.bytes : 0;
  const std::string name = main.operation.empty() ? "no operation" : main.operation;
  return fmt::format("{} ({:.0f} %)", name, 100 * share);
}

std::string step_line(const diag::JobTraffic& job) {
  std::string line = "from the flows alone: " + steps_text(job.steps, job.is_clear);
  if (!job.step_by_ranks) return line;
  line += "; by the ranks' own records " + format_seconds(*job.step_by_ranks);
  if (job.is_clear)
    line += fmt::format(" ({:+.2f} %)", 100 * (job.steps->mean / *job.step_by_ranks - 1));
  return line;
}

std::vector<const diag::PairTraffic*> pairs_by_bytes(const diag::JobTraffic& job) {
  std::vector<const diag::PairTraffic*> pairs;
  for (const diag::PairTraffic& pair : job.pairs)
    pairs.push_back(&pair);
  std::ranges::stable_sort(pairs, [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  return pairs;
}

std::string inferred_text(const diag::InferredJob& one) {
  std::vector<std::string> jobs;
  for (const std::string& job : one.jobs)
    jobs.push_back(job.empty() ? "no job" : printable(job, 63));
  return fmt::format("{} flows between {}: {}; they are of {}\n", one.flows,
                     join(one.servers, ", "), steps_text(one.steps, one.is_clear),
                     join(jobs, ", "));
}

namespace {

std::vector<std::string> traffic_headings(Seconds interval) {
  return {"from",         "to",     "rate",   "peak " + format_seconds(interval),
          "peak 1 s",     "bursts", "hidden", "retransmits",
          "mostly during"};
}

std::vector<std::string> traffic_row(const diag::PairTraffic& pair) {
  return {
      pair.from,
      pair.to,
      format_bits_per_second(pair.peaks.mean),
      fmt::format("{} ({:.1f}x)", format_bits_per_second(pair.peaks.peak), pair.peaks.to_mean()),
      fmt::format("{} ({:.1f}x)", format_bits_per_second(pair.peaks.peak_coarse),
                  pair.peaks.to_mean_coarse()),
      std::to_string(pair.bursts.size()),
      std::to_string(hidden_bursts(pair)),
      std::to_string(pair.retransmits),
      main_operation(pair)};
}

std::string traffic_job_text(const diag::JobTraffic& job, Seconds interval) {
  std::string text = fmt::format("job {}: {} ranks, {} pairs; {}\n\n", printable(job.job, 63),
                                 job.ranks, job.pairs.size(), step_line(job));
  std::vector<std::vector<std::string>> rows{traffic_headings(interval)};
  for (const diag::PairTraffic* pair : pairs_by_bytes(job))
    if (rows.size() <= kPairsShown) rows.push_back(traffic_row(*pair));
  text += format_table(rows);
  if (job.pairs.size() > kPairsShown)
    text += fmt::format("and {} more\n", job.pairs.size() - kPairsShown);
  return text + "\n";
}

json peaks_json(const diag::Peaks& peaks) {
  return {{"mean_Bps", peaks.mean.value},
          {"peak_Bps", peaks.peak.value},
          {"peak_1s_Bps", peaks.peak_coarse.value}};
}

// `too_short` and `regularity` are the old names, until the next minor version.
void add_step_timing(json& out, const std::optional<diag::StepTiming>& steps, bool is_clear) {
  out["periodicity"] = steps ? steps->periodicity : 0.0;
  out["clear"] = is_clear;
  out["too_short"] = steps && !is_clear;
  out["steps"] = nullptr;
  if (!is_clear) return;
  json marks = json::array();
  for (const Seconds mark : steps->marks)
    marks.push_back(mark.value);
  out["steps"] = {{"step_time_s", steps->mean.value},
                  {"median_s", steps->median.value},
                  {"regularity", steps->periodicity},
                  {"marks_s", std::move(marks)}};
}

json traffic_pair_json(const diag::PairTraffic& pair) {
  json out = peaks_json(pair.peaks);
  out.update({{"from", pair.from},
              {"to", pair.to},
              {"bytes", pair.bytes.value},
              {"retransmits", pair.retransmits},
              {"round_trip_s", pair.round_trip.value},
              {"operations", json::array()},
              {"bursts", json::array()}});
  for (const diag::OperationBytes& one : pair.operations)
    out["operations"].push_back({{"operation", one.operation}, {"bytes", one.bytes.value}});
  for (const diag::BurstEvent& burst : pair.bursts)
    out["bursts"].push_back({{"at_s", burst.at.value},
                             {"length_s", burst.length.value},
                             {"bytes", burst.bytes.value},
                             {"peak_Bps", burst.peak.value},
                             {"hidden", burst.is_hidden},
                             {"operation", burst.operation},
                             {"step", burst.step < 0 ? json() : json(burst.step)}});
  return out;
}

}  // namespace

std::string traffic_text(const diag::TrafficAnalysis& analysis) {
  std::string text;
  for (const diag::JobTraffic& job : analysis.jobs)
    text += traffic_job_text(job, analysis.interval);
  if (analysis.jobs.empty()) text += "no rank of a regatta job sent or received anything\n\n";
  if (!analysis.inferred.empty()) text += "Inferred from the flows alone:\n";
  for (const diag::InferredJob& one : analysis.inferred)
    text += "  " + inferred_text(one);
  for (const std::string& found : analysis.polarisation)
    text += found + "\n";
  text += fmt::format(
      "{} of connections without a rank; sampling {} connections each {} "
      "took {:.2f} % of a core\n",
      format_bytes(analysis.other_bytes), analysis.connections, format_seconds(analysis.interval),
      100 * analysis.cost);
  return text;
}

json traffic_interval_json(const diag::TrafficRecord& record, Seconds since) {
  const auto first = static_cast<std::size_t>(since / record.interval);
  diag::TrafficRecord part = record;
  part.start += record.interval * static_cast<double>(first);
  part.intervals -= std::min(part.intervals, first);
  for (diag::WatchedFlow& flow : part.flows) {
    const std::size_t cut = std::min(first, flow.bytes.size());
    flow.bytes.erase(flow.bytes.begin(), flow.bytes.begin() + static_cast<std::ptrdiff_t>(cut));
  }
  json pairs = json::array();
  for (const diag::JobRates& job : diag::job_rates(part))
    pairs.push_back({{"job", job.job},
                     {"from", job.from},
                     {"to", job.to},
                     {"mean_Bps", job.peaks.mean.value},
                     {"peak_Bps", job.peaks.peak.value}});
  return {{"at_s", since.value}, {"pairs", std::move(pairs)}};
}

json traffic_json(const diag::TrafficAnalysis& analysis) {
  json out = {{"duration_s", analysis.duration.value},
              {"interval_s", analysis.interval.value},
              {"other_bytes", analysis.other_bytes.value},
              {"connections", analysis.connections},
              {"cost", analysis.cost},
              {"jobs", json::array()},
              {"inferred", json::array()},
              {"polarisation", analysis.polarisation}};
  for (const diag::JobTraffic& job : analysis.jobs) {
    json one = peaks_json(job.peaks);
    one.update({{"job", job.job},
                {"world", fmt::format("{:016x}", job.world)},
                {"ranks", job.ranks},
                {"step_by_ranks_s", job.step_by_ranks ? json(job.step_by_ranks->value) : json()},
                {"pairs", json::array()}});
    add_step_timing(one, job.steps, job.is_clear);
    for (const diag::PairTraffic& pair : job.pairs)
      one["pairs"].push_back(traffic_pair_json(pair));
    out["jobs"].push_back(std::move(one));
  }
  for (const diag::InferredJob& inferred : analysis.inferred) {
    json one = {{"servers", inferred.servers}, {"flows", inferred.flows}, {"jobs", inferred.jobs}};
    add_step_timing(one, inferred.steps, inferred.is_clear);
    out["inferred"].push_back(std::move(one));
  }
  return out;
}

}  // namespace regatta::report
