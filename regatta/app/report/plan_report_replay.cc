// Published runs beside their prediction.
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

using nlohmann::json;
using replay::MeasuredQuantity;

// Runs that are scored together.
struct ScoredPart {
  MeasuredQuantity quantity;
  bool is_calibration;
};
constexpr std::array kScoredParts = {
    ScoredPart{MeasuredQuantity::kStep, true}, ScoredPart{MeasuredQuantity::kStep, false},
    ScoredPart{MeasuredQuantity::kMemory, false}, ScoredPart{MeasuredQuantity::kState, false},
    ScoredPart{MeasuredQuantity::kActivations, false}};

replay::PredictionScore score_part(const ReplayedSet& set, const ScoredPart& part) {
  std::vector<replay::PredictionPair> pairs;
  for (std::size_t i = 0; i < set.runs.size(); ++i)
    if (set.runs[i].quantity == part.quantity && set.runs[i].is_calibration == part.is_calibration)
      pairs.push_back(set.pairs[i]);
  return replay::score(pairs);
}

const char* split_name(bool is_calibration) {
  return is_calibration ? "calibration" : "held out";
}

std::string scores_table(const std::vector<ReplayedSet>& sets) {
  std::vector<std::vector<std::string>> table = {
      {"set", "quantity", "rows", "split", "MAPE", "median", "worst", "Spearman", "top-1 regret"}};
  for (const ReplayedSet& set : sets) {
    for (const ScoredPart& part : kScoredParts) {
      const replay::PredictionScore score = score_part(set, part);
      if (score.rows == 0) continue;
      table.push_back({set.name, to_string(part.quantity), std::to_string(score.rows),
                       split_name(part.is_calibration), format_percent(score.mape),
                       format_percent(score.median), format_percent(score.worst),
                       score.spearman ? fmt::format("{:.3f}", *score.spearman) : "-",
                       format_percent(score.regret)});
    }
  }
  return format_table(table);
}

std::string quantity_text(const replay::PublishedRun& run, double value) {
  return run.quantity == MeasuredQuantity::kStep ? format_seconds({value}) : format_bytes(value);
}

std::string runs_table(const ReplayedSet& set) {
  std::vector<std::vector<std::string>> table = {
      {"run", "measured", "predicted", "error", "quantity", "split"}};
  for (std::size_t i = 0; i < set.runs.size(); ++i) {
    const replay::PublishedRun& run = set.runs[i];
    const replay::PredictionPair& pair = set.pairs[i];
    table.push_back({run.name, quantity_text(run, pair.measured),
                     quantity_text(run, pair.predicted),
                     signed_percent(pair.predicted / pair.measured - 1), to_string(run.quantity),
                     split_name(run.is_calibration)});
  }
  return fmt::format("\n{}\n{}", set.name, format_table(table));
}

// "megatron_bridge_part: 70 rows are not planned: 50 on DGX-GB200 (no such server preset), 20 of
// LoRA (packed samples)"
std::string left_out_text(const ReplayedSet& set) {
  int rows = 0;
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : set.left_out) {
    rows += count;
    reasons.push_back(fmt::format("{} {}", count, reason));
  }
  if (rows == 0) return "";
  return fmt::format("{}: {} rows are not planned: {}\n", set.name, rows, join(reasons, ", "));
}

}  // namespace

std::string replay_text(const std::vector<ReplayedSet>& sets, bool has_rows) {
  std::string text = scores_table(sets);
  for (const ReplayedSet& set : sets)
    text += left_out_text(set);
  if (has_rows)
    for (const ReplayedSet& set : sets)
      text += runs_table(set);
  return text;
}

json replay_json(const std::vector<ReplayedSet>& sets) {
  json list = json::array();
  for (const ReplayedSet& set : sets) {
    json rows = json::array();
    for (std::size_t i = 0; i < set.runs.size(); ++i) {
      const bool is_time = set.runs[i].quantity == MeasuredQuantity::kStep;
      rows.push_back({{"run", set.runs[i].name},
                      {"quantity", to_string(set.runs[i].quantity)},
                      {is_time ? "measured_s" : "measured_bytes", set.pairs[i].measured},
                      {is_time ? "predicted_s" : "predicted_bytes", set.pairs[i].predicted},
                      {"calibration", set.runs[i].is_calibration}});
    }
    json one = {{"set", set.name}, {"rows", rows}, {"not_planned", set.left_out}};
    for (const ScoredPart& part : kScoredParts) {
      const replay::PredictionScore score = score_part(set, part);
      if (score.rows == 0) continue;
      const std::string key = part.quantity == MeasuredQuantity::kStep
                                  ? (part.is_calibration ? "calibration" : "held_out")
                                  : to_string(part.quantity);
      one[key] = score_json(score);
    }
    list.push_back(one);
  }
  return {{"sets", list}};
}

}  // namespace regatta::report
