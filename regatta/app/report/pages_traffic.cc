#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/traffic_texts.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

constexpr std::size_t kPairsOnPage = 32;
constexpr std::size_t kCurvePointsMax = 1000;  // of a curve
constexpr std::size_t kStepsMarked = 40;       // more would hide the curve

// Each point is the mean rate of `width` intervals, or their peak, in bytes per second.
Chart::Points rate_curve(const std::vector<double>& bytes, Seconds interval, std::size_t width,
                         bool is_peak) {
  Chart::Points points;
  for (std::size_t i = 0; i < bytes.size(); i += width) {
    const std::size_t end = std::min(bytes.size(), i + width);
    double value = 0;
    for (std::size_t k = i; k < end; ++k)
      value = is_peak ? std::max(value, bytes[k]) : value + bytes[k] / static_cast<double>(end - i);
    points.emplace_back(interval.value * (static_cast<double>(i + end) / 2),
                        value / interval.value);
  }
  return points;
}

std::string traffic_rate_chart(const diag::JobTraffic& job, const diag::TrafficAnalysis& analysis) {
  const std::size_t fine = std::max<std::size_t>(1, job.bytes.size() / kCurvePointsMax);
  const auto second =
      std::max<std::size_t>(1, static_cast<std::size_t>(Seconds{1.0} / analysis.interval + 0.5));
  const ColumnFormat format = ColumnFormat::bits_per_second(job.peaks.peak);
  const double most = format.number(job.peaks.peak.value);
  Chart chart({.title = fmt::format("Rate, {}", format.unit()),
               .x_label = "s",
               .x_most = analysis.duration.value,
               .ends_at_x_most = true,
               .y_most = std::max(1e-3, most),
               .x_decimals = tick_decimals(analysis.duration.value),
               .y_decimals = tick_decimals(most),
               .height = 240});
  const auto draw = [&](Chart::Points points, std::string_view style) {
    for (auto& [time, rate] : points)
      rate = format.number(rate);
    chart.line(points, style);
  };
  draw(rate_curve(job.bytes, analysis.interval, fine, true), "thin predicted");
  draw(rate_curve(job.bytes, analysis.interval, second, false), "measured");
  std::vector<std::pair<std::string, std::string>> entries = {
      {"predicted", "peak in " + format_seconds(analysis.interval * static_cast<double>(fine))},
      {"measured", "mean in 1 s"}};
  if (job.steps && job.steps->marks.size() <= kStepsMarked) {
    std::vector<ChartMark> marks;
    for (const Seconds start : job.steps->marks)
      marks.push_back({.from = start.value, .to = start.value, .number = "", .style = "mark step"});
    chart.mark(marks);
    entries.emplace_back("step", "start of a step");
  }
  return legend(entries) + chart.html();
}

// One unit a column, chosen by the largest value of the job.
struct PairFormats {
  ColumnFormat bytes;
  ColumnFormat rate;
};

TableRow traffic_pair_row(const diag::PairTraffic& pair, Bytes all, const PairFormats& formats) {
  return {.cells = {escape_html(pair.from), escape_html(pair.to), formats.bytes(pair.bytes),
                    format_percent(pair.bytes / all), formats.rate(pair.peaks.mean),
                    formats.rate(pair.peaks.peak), fmt::format("{:.1f}x", pair.peaks.to_mean()),
                    formats.rate(pair.peaks.peak_coarse), std::to_string(pair.bursts.size()),
                    std::to_string(hidden_bursts(pair)), std::to_string(pair.retransmits),
                    escape_html(main_operation(pair))},
          .style = ""};
}

// Pairs that only exchange control messages: one row for all of them.
TableRow folded_pairs_row(const std::vector<const diag::PairTraffic*>& pairs, std::size_t shown,
                          Bytes all, const PairFormats& formats) {
  Bytes bytes;
  std::size_t bursts = 0;
  std::size_t hidden = 0;
  std::uint64_t retransmits = 0;
  for (std::size_t i = shown; i < pairs.size(); ++i) {
    bytes += pairs[i]->bytes;
    bursts += pairs[i]->bursts.size();
    hidden += hidden_bursts(*pairs[i]);
    retransmits += pairs[i]->retransmits;
  }
  return {.cells = {fmt::format("{} other pairs", pairs.size() - shown), "", formats.bytes(bytes),
                    format_percent(bytes / all), "", "", "", "", std::to_string(bursts),
                    std::to_string(hidden), std::to_string(retransmits), ""},
          .style = "folded"};
}

std::string traffic_pair_table(const diag::JobTraffic& job, Seconds interval) {
  const std::vector<const diag::PairTraffic*> pairs = pairs_by_bytes(job);
  if (pairs.empty()) return "";
  std::vector<double> amounts;
  Bytes all;
  BytesPerSecond fastest;
  for (const diag::PairTraffic* pair : pairs) {
    amounts.push_back(static_cast<double>(pair->bytes.value));
    all += pair->bytes;
    fastest = std::max(fastest, pair->peaks.peak);
  }
  const PairFormats formats{.bytes = ColumnFormat::bytes(amounts.front()),
                            .rate = ColumnFormat::bits_per_second(fastest)};
  const std::size_t shown = std::min(rows_above_one_percent(amounts), kPairsOnPage);
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < shown; ++i)
    rows.push_back(traffic_pair_row(*pairs[i], all, formats));
  if (shown < pairs.size()) rows.push_back(folded_pairs_row(pairs, shown, all, formats));
  return html_table({{"From", false},
                     {"To", false},
                     {"Bytes", true},
                     {"Share", true},
                     {"Mean rate", true},
                     {"Peak, " + format_seconds(interval), true},
                     {"Over mean", true},
                     {"Peak, 1 s", true},
                     {"Bursts", true},
                     {"Hidden", true},
                     {"Retransmits", true},
                     {"Mostly during", false}},
                    rows);
}

std::string traffic_job_section(const diag::JobTraffic& job,
                                const diag::TrafficAnalysis& analysis) {
  return section("Job " + printable(job.job, 63),
                 step_line(job) + "; bursts are hidden where a mean over 1 s hides them.",
                 traffic_rate_chart(job, analysis) + traffic_pair_table(job, analysis.interval));
}

std::string traffic_tiles(const diag::TrafficAnalysis& analysis) {
  Bytes bytes;
  std::size_t ranks = 0;
  for (const diag::JobTraffic& job : analysis.jobs) {
    ranks += job.ranks;
    for (const diag::PairTraffic& pair : job.pairs)
      bytes += pair.bytes;
  }
  return tile_row(
      tile("Jobs", std::to_string(analysis.jobs.size()), pluralized(ranks, "rank")) +
      tile("Traffic of jobs", format_bytes(bytes), "in " + format_seconds(analysis.duration)) +
      tile("Other traffic", format_bytes(analysis.other_bytes), "on connections of no known rank") +
      tile("Connections", std::to_string(analysis.connections),
           "sampled every " + format_seconds(analysis.interval)) +
      tile("Cost of sampling", fmt::format("{:.2f} %", 100 * analysis.cost), "of a core"));
}

}  // namespace

std::string traffic_html(const diag::TrafficAnalysis& analysis, const std::string& place) {
  std::string body = traffic_tiles(analysis);
  for (const diag::JobTraffic& job : analysis.jobs)
    body += traffic_job_section(job, analysis);
  std::string groups;
  for (const diag::InferredJob& one : analysis.inferred)
    groups += sentence(inferred_text(one));
  body += section("Jobs inferred from flows alone",
                  "Servers that exchange data belong to one job, unless their steps differ "
                  "in length.",
                  groups.empty() ? sentence("Nothing was sent.") : groups);
  std::string tiers;
  for (const std::string& found : analysis.polarisation)
    tiers += sentence(found);
  if (!tiers.empty())
    body +=
        section("Hash polarisation", "By the bytes on each cable: some links stay empty.", tiers);
  return html_page({.kind = "network traffic",
                    .title = "Traffic",
                    .place = place,
                    .facts = {},
                    .origin = {"All figures are measured; nothing was sent for them."}},
                   body);
}

}  // namespace regatta::report
