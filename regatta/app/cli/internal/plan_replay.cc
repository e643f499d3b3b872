#include "regatta/app/cli/internal/plan_replay.h"

#include <algorithm>
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
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/file.h"
#include "regatta/planning/replay/embedded_sets.h"
#include "regatta/planning/replay/replay.h"
#include "regatta/planning/replay/stack_fit.h"

namespace regatta::cli {
namespace {

using replay::PublishedRun;
using report::ReplayedSet;

struct ReplayOptions {
  std::vector<std::string> files;
  bool rows = false;
  bool fit = false;
  bool json = false;
};

Result<ReplayedSet> make_set(const std::string& name, std::string_view text) {
  ReplayedSet set{.name = name};
  REGATTA_TRY(table, replay::read_published_table(name, text));
  set.runs = std::move(table.runs);
  set.left_out = std::move(table.left_out);
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
Result<std::vector<ReplayedSet>> load_sets(const std::vector<std::string>& files) {
  std::vector<ReplayedSet> sets;
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
    auto text = os::read_text_file(file);
    if (!text)
      return Error{Code::kInvalidInput, text.error().message + "; give a table of published runs"};
    auto set = make_set(name, *text);
    if (!set) return Error{Code::kInvalidInput, file + ": " + set.error().message};
    sets.push_back(std::move(*set));
  }
  for (const replay::EmbeddedSet& shipped : replay::embedded_sets()) {
    const bool is_given = std::any_of(
        sets.begin(), sets.end(), [&](const ReplayedSet& set) { return set.name == shipped.name; });
    if (is_given) continue;
    REGATTA_TRY(set, make_set(shipped.name, shipped.text));
    sets.push_back(std::move(set));
  }
  return sets;
}

Status print_fits(const std::vector<ReplayedSet>& sets) {
  std::vector<std::vector<PublishedRun>> runs;
  runs.reserve(sets.size());
  for (const ReplayedSet& set : sets)
    runs.push_back(set.runs);
  for (const std::string& name : cost::software_stack_names()) {
    const auto fitted = replay::fit_to_published(*cost::find_software_stack(name), runs);
    if (!fitted && fitted.error().code == Code::kInvalidInput) {
      fmt::print("\n{}\n", fitted.error().message);
      continue;
    }
    REGATTA_TRY(stack, fitted);
    fmt::print("{}", report::fitted_stack_text(stack));
  }
  return {};
}

int show_replay(const ReplayOptions& options) {
  const auto sets = load_sets(options.files);
  if (!sets) return report_error(sets.error());
  if (options.json) {
    fmt::print("{}\n", report::replay_json(*sets).dump(2));
    return 0;
  }
  fmt::print("{}", report::replay_text(*sets, options.rows));
  if (!options.fit) return 0;
  const Status fitted = print_fits(*sets);
  return fitted ? 0 : report_error(fitted.error());
}

}  // namespace

void add_plan_replay(CLI::App& plan, int& exit_status) {
  const auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      plan.add_subcommand("replay", "Predict published training runs and show the errors");
  command
      ->add_option("FILE", options->files,
                   "Tables of runs, beside the built-in ones; a file named like a set replaces it "
                   "(docs/formats/runs.md: columns, sets, sources)")
      ->check(not_empty());
  command->add_flag("--rows", options->rows, "Show every run");
  command->add_flag("--fit", options->fit,
                    "Fit the software stacks to the calibration rows and show their scalars");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  regatta plan replay\n"
      "  regatta plan replay --rows examples/runs.csv");
  command->callback([options, &exit_status] { exit_status = show_replay(*options); });
}

}  // namespace regatta::cli
