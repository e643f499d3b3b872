// `regatta coll explain`: lets ranks call a collective until their choice stands, and shows it.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/coll_arguments.h"
#include "regatta/app/cli/internal/coll_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/bench/caveats.h"
#include "regatta/runtime/bench/regatta_ranks.h"
#include "regatta/runtime/comm/shared_segment.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::cli {
namespace {

using comm::ChoiceReason;
using comm::MeasuredSetting;
using comm::TuningChoice;

struct ExplainOptions {
  CollArguments coll;
  std::string save;
  bool json = false;
};

std::string size_text(std::size_t bytes) {
  return format_bytes(Bytes{static_cast<long long>(bytes)});
}

// "-" where nothing is known.
std::string time_text(Seconds time) {
  return time.value > 0 ? format_seconds(time) : "-";
}

// A time that comes from a file is no measurement of this run.
std::string observed_text(const TuningChoice& choice, const MeasuredSetting& one) {
  const bool is_loaded = choice.reason == ChoiceReason::kLoaded && one.observed.value > 0;
  return time_text(one.observed) + (is_loaded ? " (loaded)" : "");
}

// Of what was measured: the model's first, or without a model what is usual, stands first.
std::string why_measured(const TuningChoice& choice) {
  const MeasuredSetting& first = choice.tried.front();
  const MeasuredSetting& chosen = choice.tried[choice.chosen];
  const bool is_predicted = first.predicted.value > 0;
  if (choice.chosen == 0)
    return is_predicted ? "the cost model puts it first, and nothing measured clearly faster"
                        : "nothing else measured clearly faster";
  if (chosen.observed.value > 0 && chosen.observed < first.observed)
    return fmt::format("it takes {:.1f} % less time than what {}",
                       100 * (1 - chosen.observed.value / first.observed.value),
                       is_predicted ? "the model puts first" : "is usual");
  return "it measured fastest";
}

std::string why(const TuningChoice& choice) {
  const MeasuredSetting& chosen = choice.tried[choice.chosen];
  switch (choice.reason) {
    case ChoiceReason::kForced:
      return "it was asked for";
    case ChoiceReason::kOnlyOne:
      if (chosen.setting.algorithm == comm::Algorithm::kOneShot)
        return "the vector fits in the slots that the ranks show each other";
      if (chosen.setting.algorithm == comm::Algorithm::kInPlace)
        return "every rank reaches the buffers of all";
      return "nothing else comes into question";
    case ChoiceReason::kModel:
      return chosen.predicted.value > 0 ? "the cost model puts it first"
                                        : "it is usual, and nothing was measured";
    case ChoiceReason::kLoaded:
      return "an earlier run found it fastest";
    case ChoiceReason::kMeasured:
      return why_measured(choice);
  }
  return "";
}

// Where chunks and connections are given there is nothing left to try: the tuner, which is not told
// why, says that there is one way only.
void mark_forced(std::vector<TuningChoice>& choices, const comm::Setting& forced) {
  for (TuningChoice& choice : choices) {
    const MeasuredSetting& used = choice.tried[choice.chosen];
    const bool is_asked_for =
        (forced.chunk_bytes > 0 && used.setting.chunk_bytes == forced.chunk_bytes) ||
        (forced.connections > 0 && used.setting.connections == forced.connections);
    const bool is_only = choice.reason == ChoiceReason::kOnlyOne ||
                         (choice.reason == ChoiceReason::kModel && used.predicted.value == 0);
    if (is_asked_for && is_only) choice.reason = ChoiceReason::kForced;
  }
}

std::string explain_choice(const TuningChoice& choice) {
  const std::string sizes = choice.bytes_from == 0 ? "up to " + size_text(comm::kSlotBytes)
                                                   : "from " + size_text(choice.bytes_from);
  const std::string buffers = buffers_of(choice);
  std::string text =
      fmt::format("\n{} {}{}: {}\n  because {}; {} calls\n", to_string(choice.kind), sizes,
                  buffers.empty() ? "" : " in " + buffers + " buffers",
                  describe(choice.tried[choice.chosen].setting), why(choice), choice.calls);
  std::vector<std::vector<std::string>> rows = {{"", "way", "predicted", "measured", "calls"}};
  for (std::size_t i = 0; i < choice.tried.size(); ++i) {
    const MeasuredSetting& one = choice.tried[i];
    rows.push_back({i == choice.chosen ? "*" : "", describe(one.setting), time_text(one.predicted),
                    observed_text(choice, one), std::to_string(one.calls)});
  }
  return text + format_table(rows);
}

Result<std::vector<TuningChoice>> find_choices(const ExplainOptions& given,
                                               const bench::BenchTask& task) {
  REGATTA_TRY(lab, open_ground(given.coll, task));
  const bench::TestEnvironment environment = lab ? lab->environment() : bench::TestEnvironment{};
  REGATTA_TRY(run, bench::run_regatta_ranks(task, environment));
  return run.choices;
}

// A tuning file, with the notes.
void print_json(const std::vector<TuningChoice>& choices, const std::vector<std::string>& notes) {
  nlohmann::json json = nlohmann::json::parse(format_tuning(choices));
  json["notes"] = notes;
  fmt::print("{}\n", json.dump(2));
}

int run(const ExplainOptions& given) {
  auto task = task_of(given.coll);
  if (!task) return report_error(task.error());
  const OutputFile save{"--save", given.save};
  // Before the ranks run: what they find shall not be lost.
  if (const Status can_save = check_outputs({save}); !can_save)
    return report_error(can_save.error());
  task->batches = 1;
  const auto found = find_choices(given, *task);
  if (!found) return report_error(found.error());
  OutputFiles outputs;
  outputs.add(save, [&] { return format_tuning(*found); });
  if (const Status saved = outputs.write(); !saved) return report_error(saved.error());
  std::vector<TuningChoice> choices = bench::enum_choices(*task, *found);
  mark_forced(choices, task->settings.forced);
  const std::vector<std::string> notes = bench::describe_unused_settings(*task, choices);
  if (given.json) {
    print_json(choices, notes);
    return 0;
  }
  fmt::print(
      "{} between {} ranks; times are the fastest of few tries, the median of many, * is what is "
      "used\n",
      given.coll.op, given.coll.ranks);
  for (const TuningChoice& choice : choices)
    fmt::print("{}", explain_choice(choice));
  for (const std::string& note : notes)
    fmt::print("\nnote: {}\n", note);
  return 0;
}

}  // namespace

void add_coll_explain(CLI::App& coll, int& exit_status) {
  auto* command =
      coll.add_subcommand("explain", "Show how a collective is carried out, and why so");
  command->footer(
      "Example:\n"
      "  regatta coll explain all_reduce --sizes 64K,64M --ranks 4 --cluster "
      "examples/cluster.yaml\n"
      "  regatta coll explain all_reduce --sizes 1K:64M --save tuning.json\n"
      "Ranks call it until the choice stands. A job takes what was saved with "
      "Options::tuning.");
  auto options = std::make_shared<ExplainOptions>();
  add_coll_arguments(*command, options->coll);
  command->add_option("--save", options->save, "Write what was found to this file")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print the choices as JSON");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
