#include "regatta/app/cli/internal/traffic_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kPairsShown = 32;

std::string steps_text(const std::optional<diag::StepTiming>& steps, bool is_too_short) {
  if (is_too_short) return "too short a look to tell steps; give a longer --duration";
  if (!steps) return "no steps found";
  return fmt::format("step {} over {} steps, {:.0f} % of the ups and downs repeat",
                     format_seconds(steps->mean), steps->marks.size() - 1,
                     100 * std::max(0.0, steps->regularity));
}

}  // namespace

std::size_t hidden_bursts(const PairTraffic& pair) {
  return static_cast<std::size_t>(std::ranges::count_if(pair.bursts, &BurstEvent::is_hidden));
}

std::string main_operation(const PairTraffic& pair) {
  if (pair.operations.empty()) return "-";
  const OperationBytes& main = pair.operations.front();
  const double share = pair.bytes.value > 0 ? main.bytes / pair.bytes : 0;
  const std::string name = main.operation.empty() ? "no operation" : main.operation;
  return fmt::format("{} ({:.0f} %)", name, 100 * share);
}

std::string step_line(const JobTraffic& job) {
  std::string line = "from the flows alone: " + steps_text(job.steps, job.is_too_short);
  if (job.steps && job.step_by_ranks)
    line += fmt::format("; by the ranks' own records {} ({:+.2f} %)",
                        format_seconds(*job.step_by_ranks),
                        100 * (job.steps->mean / *job.step_by_ranks - 1));
  else if (job.step_by_ranks)
    line += "; by the ranks' own records " + format_seconds(*job.step_by_ranks);
  return line;
}

std::vector<const PairTraffic*> pairs_by_bytes(const JobTraffic& job) {
  std::vector<const PairTraffic*> pairs;
  for (const PairTraffic& pair : job.pairs)
    pairs.push_back(&pair);
  std::ranges::stable_sort(pairs, [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  return pairs;
}

std::string inferred_text(const InferredJob& one) {
  std::vector<std::string> jobs;
  for (const std::string& job : one.jobs)
    jobs.push_back(job.empty() ? "no job" : printable(job, 63));
  return fmt::format("{} flows between {}: {}; they are of {}\n", one.flows,
                     join(one.servers, ", "), steps_text(one.steps, one.is_too_short),
                     join(jobs, ", "));
}

namespace {

std::vector<std::string> heads(Seconds interval) {
  return {"from",         "to",     "rate",   "peak " + format_seconds(interval),
          "peak 1 s",     "bursts", "hidden", "retransmits",
          "mostly during"};
}

std::vector<std::string> row_of(const PairTraffic& pair) {
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

std::string job_text(const JobTraffic& job, Seconds interval) {
  std::string text = fmt::format("job {}: {} ranks, {} pairs; {}\n\n", printable(job.job, 63),
                                 job.ranks, job.pairs.size(), step_line(job));
  std::vector<std::vector<std::string>> rows{heads(interval)};
  for (const PairTraffic* pair : pairs_by_bytes(job))
    if (rows.size() <= kPairsShown) rows.push_back(row_of(*pair));
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

json steps_json(const std::optional<diag::StepTiming>& steps) {
  if (!steps) return nullptr;
  json marks = json::array();
  for (const Seconds mark : steps->marks)
    marks.push_back(mark.value);
  return {{"step_time_s", steps->mean.value},
          {"median_s", steps->median.value},
          {"regularity", steps->regularity},
          {"marks_s", std::move(marks)}};
}

json pair_json(const PairTraffic& pair) {
  json out = peaks_json(pair.peaks);
  out.update({{"from", pair.from},
              {"to", pair.to},
              {"bytes", pair.bytes.value},
              {"retransmits", pair.retransmits},
              {"round_trip_s", pair.round_trip.value},
              {"operations", json::array()},
              {"bursts", json::array()}});
  for (const OperationBytes& one : pair.operations)
    out["operations"].push_back({{"operation", one.operation}, {"bytes", one.bytes.value}});
  for (const BurstEvent& burst : pair.bursts)
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

std::string traffic_text(const TrafficAnalysis& view) {
  std::string text;
  for (const JobTraffic& job : view.jobs)
    text += job_text(job, view.interval);
  if (view.jobs.empty()) text += "no rank of a regatta job sent or received anything\n\n";
  if (!view.inferred.empty()) text += "What the flows alone say:\n";
  for (const InferredJob& one : view.inferred)
    text += "  " + inferred_text(one);
  for (const std::string& found : view.polarisation)
    text += found + "\n";
  text += fmt::format(
      "{} of connections that are no rank's; looking at {} connections each {} "
      "took {:.2f} % of a core\n",
      format_bytes(view.other_bytes), view.connections, format_seconds(view.interval),
      100 * view.cost);
  return text;
}

json traffic_json(const TrafficAnalysis& view) {
  json out = {{"duration_s", view.duration.value},
              {"interval_s", view.interval.value},
              {"other_bytes", view.other_bytes.value},
              {"connections", view.connections},
              {"cost", view.cost},
              {"jobs", json::array()},
              {"inferred", json::array()},
              {"polarisation", view.polarisation}};
  for (const JobTraffic& job : view.jobs) {
    json one = peaks_json(job.peaks);
    one.update({{"job", job.job},
                {"world", fmt::format("{:016x}", job.world)},
                {"ranks", job.ranks},
                {"steps", steps_json(job.steps)},
                {"too_short", job.is_too_short},
                {"step_by_ranks_s", job.step_by_ranks ? json(job.step_by_ranks->value) : json()},
                {"pairs", json::array()}});
    for (const PairTraffic& pair : job.pairs)
      one["pairs"].push_back(pair_json(pair));
    out["jobs"].push_back(std::move(one));
  }
  for (const InferredJob& one : view.inferred)
    out["inferred"].push_back({{"servers", one.servers},
                               {"flows", one.flows},
                               {"steps", steps_json(one.steps)},
                               {"too_short", one.is_too_short},
                               {"jobs", one.jobs}});
  return out;
}

}  // namespace regatta::cli
