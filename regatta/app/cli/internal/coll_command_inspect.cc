// `regatta coll inspect`: reads the records of running ranks, or the flight files of a failed job.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/coll_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/report/measure_report.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::cli {
namespace {

struct InspectOptions {
  std::vector<std::string> targets;
  bool json = false;
  bool watch = false;
};

bool is_pid(const std::string& text) {
  return text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
}

// Jobs and PIDs are never written like this.
bool is_path(const std::string& text) {
  constexpr std::string_view kSuffix = ".json";
  const bool has_suffix = text.size() >= kSuffix.size() &&
                          text.compare(text.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
  return has_suffix || text.find('/') != std::string::npos;
}

bool is_file(const std::string& text) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(text, ignored);
}

// Whether the targets are flight files; PIDs and jobs cannot stand among them.
Result<bool> are_files(const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    std::error_code ignored;
    if (std::filesystem::is_directory(target, ignored) && is_path(target))
      return Error{Code::kInvalidInput, target + ": is a folder; give the flight files in it"};
    if (is_path(target) && !is_file(target))
      return Error{Code::kNotFound, target + ": no such file; give a flight file, a PID or a job"};
  }
  const auto file = std::find_if(targets.begin(), targets.end(), is_file);
  if (file == targets.end()) return false;
  if (std::all_of(targets.begin(), targets.end(), is_file)) return true;
  return Error{Code::kInvalidInput,
               *file + ": a file among PIDs or jobs; give files alone, or none"};
}

// The views of running ranks.
Result<std::vector<comm::RankView>> find_target(const std::string& target) {
  if (is_pid(target)) return comm::inspect_process(std::atoi(target.c_str()));
  auto ranks = comm::inspect_job(target);
  if (ranks.empty())
    return Error{Code::kNotFound, "job " + target +
                                      ": no process on this machine that this user may look at "
                                      "belongs to it; regatta coll inspect shows all jobs"};
  return ranks;
}

// Other ranks in the worlds of `ranks`: a rank that others wait for does not know it.
std::vector<comm::RankView> find_others(const std::vector<comm::RankView>& ranks) {
  std::vector<comm::RankView> others = comm::inspect_job("");
  std::erase_if(others, [&](const comm::RankView& other) {
    const auto is_same_world = [&](const auto& view) { return view.world == other.world; };
    const auto is_same = [&](const auto& view) {
      return is_same_world(view) && view.rank == other.rank;
    };
    return std::none_of(ranks.begin(), ranks.end(), is_same_world) ||
           std::any_of(ranks.begin(), ranks.end(), is_same);
  });
  return others;
}

Result<report::Inspection> inspect(const std::vector<std::string>& targets) {
  report::Inspection found;
  if (targets.empty()) {
    found.ranks = comm::inspect_job("");
    return found;
  }
  REGATTA_TRY(files, are_files(targets));
  found.are_files = files;
  for (const std::string& target : targets) {
    if (found.are_files) {
      REGATTA_TRY(view, comm::read_flight_file(target));
      found.ranks.push_back(std::move(view));
      continue;
    }
    REGATTA_TRY(views, find_target(target));
    std::move(views.begin(), views.end(), std::back_inserter(found.ranks));
  }
  if (std::any_of(targets.begin(), targets.end(), is_pid)) found.others = find_others(found.ranks);
  return found;
}

// A target that the user named and that does not exist is wrong input.
int fail(Error error) {
  if (error.code == Code::kNotFound) error.code = Code::kInvalidInput;
  return report_error(error);
}

std::string to_text(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Removes processes and jobs that have ended.
void drop_ended(std::vector<std::string>& targets) {
  std::erase_if(targets, [](const std::string& target) {
    const bool has_ended = !find_target(target);
    if (has_ended)
      fmt::print("{}", is_pid(target) ? report::ended_process_text(target)
                                      : report::ended_job_text(target));
    return has_ended;
  });
}

int run(const InspectOptions& options) {
  std::vector<std::string> targets = options.targets;
  for (bool was_shown = false;; was_shown = true) {
    auto found = inspect(targets);
    if (found) found->now = os::monotonic_now();  // after the ranks' own times
    if (!found && was_shown && !is_file(targets.front())) {
      drop_ended(targets);
      if (targets.empty()) return 0;
      continue;
    }
    if (!found) return fail(found.error());
    if (options.watch && ::isatty(STDOUT_FILENO) == 1) fmt::print("\033[H\033[2J");
    fmt::print("{}", options.json ? to_text(report::inspection_json(*found))
                                  : report::inspection_text(*found));
    if (!options.watch) return 0;
    std::fflush(stdout);
    os::sleep_for(Seconds{1.0});
  }
}

}  // namespace

void add_coll_inspect(CLI::App& coll, int& exit_status) {
  auto* command = coll.add_subcommand(
      "inspect", "Show the operations of a job's ranks, and which rank the others wait for");
  command->footer(
      "Example:\n"
      "  regatta coll inspect gpt-small\n"
      "  regatta coll inspect 4711 --watch\n"
      "  regatta coll inspect run/regatta-flight-gpt-small-rank*.json\n"
      "Ranks write flight files when their job fails (docs/formats/flight.md).");
  auto options = std::make_shared<InspectOptions>();
  command
      ->add_option(
          "TARGET", options->targets,
          "PID of a rank, name of a job, or flight files; all jobs of this machine when left out")
      ->check(not_empty());
  command->add_flag("--watch", options->watch, "Repeat every second, until Ctrl-C");
  command->add_flag("--json", options->json, "Print JSON, with the last operations of each rank");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
