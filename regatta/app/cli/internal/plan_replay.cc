#include "regatta/app/cli/internal/plan_replay.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/file.h"
#include "regatta/planning/replay/embedded_sets.h"
#include "regatta/planning/replay/replay.h"

namespace regatta::cli {
namespace {

using nlohmann::json;
using replay::PublishedRun;

struct ReplayOptions {
  std::vector<std::string> files;
  bool rows = false;
  bool fit = false;
  bool json = false;
};

struct Set {
  std::string name;
  std::vector<PublishedRun> runs;
  std::vector<replay::PredictionPair> pairs;  // by run
};

Result<Set> make_set(const std::string& name, std::string_view text) {
  Set set{.name = name};
  REGATTA_TRY(runs, replay::read_published(name, text));
  set.runs = std::move(runs);
  REGATTA_TRY(pairs, replay::predict_runs(set.runs));
  set.pairs = std::move(pairs);
  return set;
}

bool is_embedded(const std::string& name) {
  const std::vector<replay::EmbeddedSet> sets = replay::embedded_sets();
  return std::any_of(sets.begin(), sets.end(),
                     [&](const replay::EmbeddedSet& set) { return set.name == name; });
}

// A set in place of its file.
bool is_name_of_set(const std::string& word) {
  const std::vector<std::string> names = replay::set_names();
  std::error_code ignored;
  return std::find(names.begin(), names.end(), word) != names.end() &&
         !std::filesystem::exists(word, ignored);
}

// The shipped sets, but those that a file is given for, and the files.
Result<std::vector<Set>> load_sets(const std::vector<std::string>& files) {
  std::vector<Set> sets;
  for (const std::string& file : files) {
    if (is_name_of_set(file)) {
      if (is_embedded(file)) continue;
      return Error{
          Code::kInvalidInput,
          fmt::format("{0}: the table of this set is no part of the program; write it from "
                      "its source, which docs/formats/runs.md names, and give {0}.csv",
                      file)};
    }
    const std::string name = std::filesystem::path(file).stem().string();
    auto text = os::read_file(file, os::kTextFileMost);
    if (!text)
      return Error{Code::kInvalidInput, text.error().message + "; give a table of published runs"};
    auto set = make_set(name, *text);
    if (!set) return Error{Code::kInvalidInput, file + ": " + set.error().message};
    sets.push_back(std::move(*set));
  }
  for (const replay::EmbeddedSet& shipped : replay::embedded_sets()) {
    const bool is_given = std::any_of(sets.begin(), sets.end(),
                                      [&](const Set& set) { return set.name == shipped.name; });
    if (is_given) continue;
    REGATTA_TRY(set, make_set(shipped.name, shipped.text));
    sets.push_back(std::move(set));
  }
  return sets;
}

// Rows that are scored together.
struct Part {
  replay::MeasuredQuantity quantity;
  bool is_calibration;
};
constexpr std::array kParts = {
    Part{replay::MeasuredQuantity::kStep, true}, Part{replay::MeasuredQuantity::kStep, false},
    Part{replay::MeasuredQuantity::kMemory, false}, Part{replay::MeasuredQuantity::kState, false},
    Part{replay::MeasuredQuantity::kActivations, false}};

replay::PredictionScore score_of(const Set& set, const Part& part) {
  std::vector<replay::PredictionPair> pairs;
  for (std::size_t i = 0; i < set.runs.size(); ++i)
    if (set.runs[i].quantity == part.quantity && set.runs[i].is_calibration == part.is_calibration)
      pairs.push_back(set.pairs[i]);
  return replay::score(pairs);
}

const char* split_name(bool is_calibration) {
  return is_calibration ? "calibration" : "held out";
}

void print_scores(const std::vector<Set>& sets) {
  std::vector<std::vector<std::string>> table = {
      {"set", "of", "rows", "", "MAPE", "median", "worst", "Spearman", "top-1 regret"}};
  for (const Set& set : sets) {
    for (const Part& part : kParts) {
      const replay::PredictionScore score = score_of(set, part);
      if (score.rows == 0) continue;
      table.push_back({set.name, to_string(part.quantity), std::to_string(score.rows),
                       split_name(part.is_calibration), format_percent(score.mape),
                       format_percent(score.median), format_percent(score.worst),
                       score.spearman ? fmt::format("{:.3f}", *score.spearman) : "-",
                       format_percent(score.regret)});
    }
  }
  fmt::print("{}", format_table(table));
}

std::string value_text(const PublishedRun& run, double value) {
  return run.quantity == replay::MeasuredQuantity::kStep ? format_seconds({value})
                                                         : format_bytes(value);
}

void print_rows(const std::vector<Set>& sets) {
  for (const Set& set : sets) {
    fmt::print("\n{}\n", set.name);
    std::vector<std::vector<std::string>> table = {
        {"run", "measured", "predicted", "difference", "of", ""}};
    for (std::size_t i = 0; i < set.runs.size(); ++i) {
      const replay::PredictionPair& pair = set.pairs[i];
      table.push_back({set.runs[i].name, value_text(set.runs[i], pair.measured),
                       value_text(set.runs[i], pair.predicted),
                       fmt::format("{:+.1f} %", 100 * (pair.predicted / pair.measured - 1)),
                       to_string(set.runs[i].quantity), split_name(set.runs[i].is_calibration)});
    }
    fmt::print("{}", format_table(table));
  }
}

Status print_fits(const std::vector<Set>& sets) {
  std::vector<std::vector<PublishedRun>> runs;
  runs.reserve(sets.size());
  for (const Set& set : sets)
    runs.push_back(set.runs);
  for (const std::string& name : cost::software_stack_names()) {
    const auto fitted = replay::fit_calibration(*cost::find_software_stack(name), runs);
    if (!fitted && fitted.error().code == Code::kInvalidInput) {
      fmt::print("\n{}\n", fitted.error().message);
      continue;
    }
    REGATTA_TRY(c, fitted);
    fmt::print(
        "\n{}: matrix_efficiency {:.4f}, tile_depth {:.1f}, misalignment {:.3f}, "
        "memory_efficiency {:.4f}, launch {:.2f} us, link_efficiency {:.4f}, "
        "network_efficiency {:.4f}, collective_latency {:.1f} us\n",
        name, c.matrix_efficiency, c.tile_depth, c.misalignment, c.memory_efficiency,
        c.launch.value * 1e6, c.link_efficiency, c.network_efficiency,
        c.collective_latency.value * 1e6);
  }
  return {};
}

json score_to_json(const replay::PredictionScore& score) {
  return {{"rows", score.rows},
          {"mape", score.mape},
          {"median", score.median},
          {"worst", score.worst},
          {"spearman", score.spearman ? json(*score.spearman) : json()},
          {"top1_regret", score.regret}};
}

json sets_to_json(const std::vector<Set>& sets) {
  json list = json::array();
  for (const Set& set : sets) {
    json rows = json::array();
    for (std::size_t i = 0; i < set.runs.size(); ++i) {
      const bool is_time = set.runs[i].quantity == replay::MeasuredQuantity::kStep;
      rows.push_back({{"run", set.runs[i].name},
                      {"quantity", to_string(set.runs[i].quantity)},
                      {is_time ? "measured_s" : "measured_bytes", set.pairs[i].measured},
                      {is_time ? "predicted_s" : "predicted_bytes", set.pairs[i].predicted},
                      {"calibration", set.runs[i].is_calibration}});
    }
    json one = {{"set", set.name}, {"rows", rows}};
    for (const Part& part : kParts) {
      const replay::PredictionScore score = score_of(set, part);
      if (score.rows == 0) continue;
      const std::string key = part.quantity == replay::MeasuredQuantity::kStep
                                  ? (part.is_calibration ? "calibration" : "held_out")
                                  : to_string(part.quantity);
      one[key] = score_to_json(score);
    }
    list.push_back(one);
  }
  return {{"sets", list}};
}

int show_replay(const ReplayOptions& options) {
  const auto sets = load_sets(options.files);
  if (!sets) return report_error(sets.error());
  if (options.json) {
    fmt::print("{}\n", sets_to_json(*sets).dump(2));
    return 0;
  }
  print_scores(*sets);
  if (options.rows) print_rows(*sets);
  if (!options.fit) return 0;
  const Status fitted = print_fits(*sets);
  return fitted ? 0 : report_error(fitted.error());
}

}  // namespace

void add_plan_replay(CLI::App& plan, int& exit_status) {
  const auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = plan.add_subcommand(
      "replay", "Predict published training runs and show by how much it misses");
  command
      ->add_option("FILE", options->files,
                   "Tables of runs: your own, or published ones in files named as their set; "
                   "docs/formats/runs.md has the columns, the sets and their sources. Those that "
                   "the program has are shown, too")
      ->check(not_empty());
  command->add_flag("--rows", options->rows, "Show every run");
  command->add_flag("--fit", options->fit,
                    "Fit the stacks to the calibration rows and show the scalars");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  regatta plan replay\n"
      "  regatta plan replay --rows examples/runs.csv");
  command->callback([options, &exit_status] { exit_status = show_replay(*options); });
}

}  // namespace regatta::cli
