// Times of collectives.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/measure_report.h"
#include "regatta/base/core/text.h"
#include "regatta/runtime/bench/collective.h"

namespace regatta::report {
namespace {

using bench::BenchTask;
using bench::Contender;
using bench::Timing;

// The bytes that a call of this size moves: equal parts for all ranks.
std::size_t call_bytes(const BenchTask& task, std::size_t size) {
  const auto shape = collective_shape(task.op, task.sizes[size], task.ranks, 0);
  return std::max(shape.in_count(), shape.out_count()) * sizeof(float);
}

double algorithm_bandwidth(const BenchTask& task, std::size_t size, const Timing& timing) {
  return static_cast<double>(call_bytes(task, size)) / timing.median().value;
}

std::string columns(const BenchResult& result, std::size_t size, const Timing& timing) {
  const BenchTask& task = result.task;
  const double algbw = algorithm_bandwidth(task, size, timing) / 1e9;
  std::string text = fmt::format("{:>11.2f} {:>8.2f} {:>8.2f}", timing.median().value * 1e6, algbw,
                                 algbw * bus_factor(task.op, task.ranks));
  text +=
      timing.error ? fmt::format(" {:>6.4f}", *timing.error) : fmt::format(" {:>6}", timing.wrong);
  if (!result.bounds.empty())
    text += fmt::format(" {:>8.1f} %", 100 * result.bounds[size].value / timing.median().value);
  if (timing.error) text += fmt::format("  {:>8}", timing.kind);
  return text;
}

bool is_compressed(const Contender& contender) {
  return contender.timings.front().error.has_value();
}

// Times of all contenders in microseconds.
std::string race_table(const BenchResult& result) {
  const std::vector<Contender>& race = result.race;
  std::vector<std::vector<std::string>> rows = {{"size (B)"}};
  for (const Contender& contender : race)
    rows[0].push_back(contender.name + " (us)");
  rows[0].push_back("best peer");
  for (std::size_t i = 0; i < result.own; ++i)
    rows[0].push_back(race[i].name);
  for (std::size_t size = 0; size < result.task.sizes.size(); ++size) {
    std::vector<std::string> row = {std::to_string(call_bytes(result.task, size))};
    const Contender* best = nullptr;
    for (std::size_t i = 0; i < race.size(); ++i) {
      const Seconds median = race[i].timings[size].median();
      row.push_back(fmt::format("{:.2f}", median.value * 1e6));
      if (i >= result.own && (best == nullptr || median < best->timings[size].median()))
        best = &race[i];
    }
    row.push_back(best->name);
    for (std::size_t i = 0; i < result.own; ++i)
      row.push_back(fmt::format(
          "{:.2f}x", best->timings[size].median().value / race[i].timings[size].median().value));
    rows.push_back(std::move(row));
  }
  return "\n" + format_table(rows) +
         "\nthe last columns: time of the best peer divided by that of Regatta\n";
}

}  // namespace

std::string bench_heading(const BenchResult& result) {
  const BenchTask& task = result.task;
  std::string text = fmt::format(
      "{} of f32 between {} processes; times: the slowest rank, median of {} batches in each "
      "round\n\n{:>12} {:>12}  ",
      to_string(task.op), task.ranks, task.batches, "size", "count");
  for (std::size_t i = 0; i < result.own; ++i)
    text += fmt::format(" {:^36}  ", is_compressed(result.race[i])
                                         ? "compressed: " + result.race[i].name
                                         : result.race[i].name + " buffers");
  text += fmt::format("\n{:>12} {:>12}  ", "(B)", "(elements)");
  for (std::size_t i = 0; i < result.own; ++i)
    text += fmt::format(" {:>11} {:>8} {:>8} {:>6}{}{}  ", "time (us)", "algbw", "busbw",
                        is_compressed(result.race[i]) ? "error" : "#wrong",
                        result.bounds.empty() ? "" : "  of bound",
                        is_compressed(result.race[i]) ? "      kind" : "");
  return text + "\n";
}

std::string bench_row(const BenchResult& result, std::size_t size) {
  const std::size_t bytes = call_bytes(result.task, size);
  std::string text = fmt::format("{:>12} {:>12}  ", bytes, bytes / sizeof(float));
  for (std::size_t i = 0; i < result.own; ++i)
    text += " " + columns(result, size, result.race[i].timings[size]) + "  ";
  return text + "\n";
}

std::string bench_summary(const BenchResult& result) {
  std::string text = "\nalgbw, busbw: GB/s";
  if (!result.bounds.empty()) text += "; of bound: lower bound of the links divided by the time";
  if (is_compressed(result.race[result.own - 1]))
    text += "; error: |result - sum| / |sum|, bandwidths of the bytes before compression";
  text += "\n";
  if (result.race.size() > result.own) text += race_table(result);
  for (const std::string& note : result.notes)
    text += fmt::format("note: {}\n", note);
  return text;
}

nlohmann::json bench_json(const BenchResult& result) {
  const BenchTask& task = result.task;
  nlohmann::json json = {
      {"op", to_string(task.op)}, {"type", "f32"},
      {"ranks", task.ranks},      {"batches", result.race[0].timings[0].batches_s.size()},
      {"notes", result.notes},    {"sizes", nlohmann::json::array()}};
  for (std::size_t size = 0; size < task.sizes.size(); ++size) {
    nlohmann::json row = {{"bytes", call_bytes(task, size)}};
    if (!result.bounds.empty()) row["bound_s"] = result.bounds[size].value;
    for (const Contender& contender : result.race) {
      const Timing& timing = contender.timings[size];
      const double algbw = algorithm_bandwidth(task, size, timing);
      row[contender.name] = {{"time_s", timing.median().value},
                             {"least_s", timing.least().value},
                             {"largest_s", timing.largest().value},
                             {"algbw_Bps", algbw},
                             {"busbw_Bps", algbw * bus_factor(task.op, task.ranks)},
                             {"wrong", timing.wrong}};
      if (timing.error) {
        row[contender.name]["error"] = *timing.error;
        row[contender.name]["kind"] = timing.kind;
      }
    }
    json["sizes"].push_back(std::move(row));
  }
  return json;
}

}  // namespace regatta::report
