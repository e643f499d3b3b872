#include "regatta/app/cli/internal/bench_table.h"

#include <algorithm>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/runtime/bench/collective.h"

namespace regatta::cli {
namespace {

using bench::BenchTask;
using bench::Contender;
using bench::Timing;

// What a call of this size really moves: whole parts.
std::size_t bytes_of(const BenchTask& task, std::size_t size) {
  const auto shape = collective_shape(task.op, task.sizes[size], task.ranks, 0);
  return std::max(shape.in_count(), shape.out_count()) * sizeof(float);
}

double algorithm_bandwidth(const BenchTask& task, std::size_t size, const Timing& timing) {
  return static_cast<double>(bytes_of(task, size)) / timing.median().value;
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

std::string own_table(const BenchResult& result) {
  std::string text = fmt::format("{:>12} {:>12}  ", "size", "count");
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
  text += "\n";
  for (std::size_t size = 0; size < result.task.sizes.size(); ++size) {
    const std::size_t bytes = bytes_of(result.task, size);
    text += fmt::format("{:>12} {:>12}  ", bytes, bytes / sizeof(float));
    for (std::size_t i = 0; i < result.own; ++i)
      text += " " + columns(result, size, result.race[i].timings[size]) + "  ";
    text += "\n";
  }
  text += "\nalgbw, busbw: GB/s";
  if (!result.bounds.empty()) text += "; of bound: of the least time that the links allow";
  if (is_compressed(result.race[result.own - 1]))
    text += "; error: |result - sum| / |sum|, bandwidths of the bytes before compression";
  return text + "\n";
}

// Microseconds of all, side by side.
std::string race_table(const BenchResult& result) {
  const std::vector<Contender>& race = result.race;
  std::vector<std::vector<std::string>> rows = {{"size (B)"}};
  for (const Contender& contender : race)
    rows[0].push_back(contender.name + " (us)");
  rows[0].push_back("best peer");
  for (std::size_t i = 0; i < result.own; ++i)
    rows[0].push_back(race[i].name);
  for (std::size_t size = 0; size < result.task.sizes.size(); ++size) {
    std::vector<std::string> row = {std::to_string(bytes_of(result.task, size))};
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
         "\nbehind the best peer: how many times as long the best peer took\n";
}

}  // namespace

std::string bench_table(const BenchResult& result) {
  const BenchTask& task = result.task;
  std::string text = fmt::format(
      "{} of f32 between {} processes, median of {} batches, the slowest rank counts\n\n",
      to_string(task.op), task.ranks, result.race[0].timings[0].batches_s.size());
  text += own_table(result);
  if (result.race.size() > result.own) text += race_table(result);
  return text;
}

nlohmann::json bench_json(const BenchResult& result) {
  const BenchTask& task = result.task;
  nlohmann::json json = {{"op", to_string(task.op)},
                         {"type", "f32"},
                         {"ranks", task.ranks},
                         {"batches", result.race[0].timings[0].batches_s.size()},
                         {"sizes", nlohmann::json::array()}};
  for (std::size_t size = 0; size < task.sizes.size(); ++size) {
    nlohmann::json row = {{"bytes", bytes_of(task, size)}};
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

}  // namespace regatta::cli
