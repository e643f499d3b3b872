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
#include "regatta/app/report/measure_report.h"
#include "regatta/runtime/bench/caveats.h"
#include "regatta/runtime/bench/regatta_ranks.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::cli {
namespace {

using comm::TuningChoice;

struct ExplainOptions {
  CollArguments coll;
  std::string save;
  bool json = false;
};

Result<std::vector<TuningChoice>> find_choices(const ExplainOptions& given,
                                               const bench::BenchTask& task) {
  REGATTA_TRY(lab, open_ground(given.coll, task));
  const bench::TestEnvironment environment = lab ? lab->environment() : bench::TestEnvironment{};
  REGATTA_TRY(run, bench::run_regatta_ranks(task, environment));
  return run.choices;
}

int run(const ExplainOptions& given) {
  auto task = task_of(given.coll);
  if (!task) return report_error(task.error());
  const OutputFile save{"--save", given.save};
  // Before the ranks run, so that their result is not lost.
  if (const Status can_save = check_outputs({save}); !can_save)
    return report_error(can_save.error());
  task->batches = 1;
  const auto found = find_choices(given, *task);
  if (!found) return report_error(found.error());
  OutputFiles outputs;
  outputs.add(save, [&] { return format_tuning(*found); });
  if (const Status saved = outputs.write(); !saved) return report_error(saved.error());
  report::TuningReport shown{.op = given.coll.op,
                             .ranks = given.coll.ranks,
                             .choices = bench::choices_for_task(*task, *found),
                             .notes = {}};
  mark_forced(shown.choices, task->settings.forced);
  shown.notes = bench::describe_unused_settings(*task, shown.choices);
  fmt::print("{}",
             given.json ? report::tuning_json(shown).dump(2) + "\n" : report::tuning_text(shown));
  return 0;
}

}  // namespace

void add_coll_explain(CLI::App& coll, int& exit_status) {
  auto* command =
      coll.add_subcommand("explain", "Show the settings of a collective and the reasons for them");
  command->footer(
      "Example:\n"
      "  regatta coll explain all_reduce --sizes 64K,64M --ranks 4 --cluster "
      "examples/cluster.yaml\n"
      "  regatta coll explain all_reduce --sizes 1K:64M --save tuning.json\n"
      "Ranks call the collective until its choice is settled. A job loads a tuning file with "
      "Options::tuning.");
  auto options = std::make_shared<ExplainOptions>();
  add_coll_arguments(*command, options->coll);
  command->add_option("--save", options->save, "Write the choices as a tuning file")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print the choices as JSON");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
