// `regatta coll inspect`: reads the records of running ranks, or the flight files of a failed job.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
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
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::cli {
namespace {

// An operation without progress for less than this goes its way.
constexpr Seconds kStill{1.0};

struct InspectOptions {
  std::vector<std::string> targets;
  bool json = false;
  bool watch = false;
};

struct Inspection {
  std::vector<comm::RankView> ranks;
  std::vector<comm::RankView> others;  // of their worlds on this machine, not asked for
  bool are_files = false;
};

bool is_pid(const std::string& text) {
  return text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
}

// No job or PID is written so.
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

// Of running ranks.
Result<std::vector<comm::RankView>> find_target(const std::string& target) {
  if (is_pid(target)) return comm::inspect_process(std::atoi(target.c_str()));
  auto ranks = comm::inspect_job(target);
  if (ranks.empty())
    return Error{Code::kNotFound, "job " + target +
                                      ": no process on this machine that this user may look at "
                                      "belongs to it; regatta coll inspect shows all jobs"};
  return ranks;
}

// Who else is in the worlds of `ranks`: a rank that is waited for knows nothing of it.
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

Result<Inspection> inspect(const std::vector<std::string>& targets) {
  Inspection found;
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

std::string phase_of(const comm::OperationView& operation) {
  switch (operation.status) {
    case comm::OperationStatus::kNone:
      return "idle";
    case comm::OperationStatus::kRuns:
      return operation.moved > 0 ? "moving" : "entered";
    case comm::OperationStatus::kDone:
      return "ended";
    case comm::OperationStatus::kFailed:
      return "failed";
  }
  return "idle";
}

std::string moved_text(std::uint64_t bytes) {
  return format_bytes(Bytes{static_cast<long long>(bytes)});
}

std::string state_text(char state) {
  switch (state) {
    case 0:
      return "-";
    case 'T':
    case 't':
      return "stopped";
    case 'Z':
      return "dead";
    default:
      return "runs";
  }
}

std::string group_text(std::uint64_t id) {
  return id == comm::kWorldGroup ? "world" : fmt::format("{:08x}", id >> 32);
}

// Of a file the clock stood still when it was written.
Seconds now_for(const comm::RankView& view) {
  return view.state == 0 ? view.ticked : os::monotonic_now();
}

std::vector<std::string> row_of(const comm::RankView& view, const comm::GroupView& group,
                                const comm::OperationView& operation) {
  const bool is_any = operation.status != comm::OperationStatus::kNone;
  const std::uint64_t under_way = group.collective.status == comm::OperationStatus::kRuns ? 1 : 0;
  const std::uint64_t open = group.submitted - std::min(group.submitted, group.ended);
  const std::uint64_t queued = open - std::min(open, under_way);
  return {view.name(),
          view.pid > 0 ? std::to_string(view.pid) : "-",
          state_text(view.state),
          group_text(group.id),
          is_any ? std::to_string(operation.sequence) : "-",
          is_any ? collective::describe_call(operation.call, operation.bytes) : "-",
          phase_of(operation) + (queued > 0 ? fmt::format(" +{} queued", queued) : ""),
          is_any ? moved_text(operation.moved) : "-",
          is_any ? format_seconds(now_for(view) - operation.progressed) : "-"};
}

std::string table_of(const Inspection& found) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "pid", "process", "communicator", "call", "operation", "phase", "moved", "idle"}};
  for (const comm::RankView& view : found.ranks)
    for (const comm::GroupView& group : view.groups) {
      rows.push_back(row_of(view, group, group.collective));
      if (group.transfer.status == comm::OperationStatus::kRuns)
        rows.push_back(row_of(view, group, group.transfer));
    }
  return format_table(rows);
}

std::string verdict_of(const comm::OpenOperation& open) {
  return fmt::format("{}, call {} of communicator {}: {}",
                     collective::describe_call(open.call, open.bytes), open.sequence,
                     group_text(open.group), open.verdict.text);
}

// Every rank that lives to see its world fail leaves a file.
std::string without_file(const std::vector<comm::RankView>& ranks) {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks.front().world_size(); ++rank)
    if (std::none_of(ranks.begin(), ranks.end(),
                     [&](const comm::RankView& view) { return view.rank == rank; }))
      missing.push_back(rank);
  return missing.empty() ? "" : comm::describe_missing_files(missing, ranks.front());
}

// A rank says it once, and how long it had waited by then; the table goes on counting.
std::string told_by(const comm::RankView& view) {
  if (view.judged.value <= 0) return view.verdict;
  const Seconds age = std::max(now_for(view) - view.judged, Seconds{0.0});
  return fmt::format("{} (said {} ago)", view.verdict, format_seconds(age));
}

// What the ranks say themselves, else what the others of their worlds say, and what their records
// say together; each once.
std::vector<std::string> verdicts_of(const Inspection& found) {
  std::vector<std::string> lines;
  std::set<std::string> errors;
  for (const comm::RankView& view : found.ranks) {
    if (!view.verdict.empty() && view.error.empty()) lines.push_back(told_by(view));
    if (!view.error.empty() && errors.insert(view.error).second)
      lines.push_back(view.name() + " failed: " + view.error);
  }
  const bool has_none = lines.empty();
  for (const comm::RankView& view : found.others)
    if (has_none && !view.verdict.empty() && view.error.empty()) lines.push_back(told_by(view));
  const std::string gone = found.are_files ? without_file(found.ranks) : "";
  if (!gone.empty()) {
    lines.push_back(gone);
    return lines;
  }
  std::vector<comm::RankView> all = found.ranks;
  all.insert(all.end(), found.others.begin(), found.others.end());
  const auto missing =
      found.are_files ? comm::MissingView::kLeftNoFile : comm::MissingView::kElsewhere;
  for (const comm::OpenOperation& open : comm::find_open_operations(all, missing)) {
    const bool stands = found.are_files || os::monotonic_now() - open.progressed >= kStill;
    if (stands && (found.are_files || lines.empty())) lines.push_back(verdict_of(open));
  }
  return lines;
}

void print_text(const Inspection& found) {
  if (found.ranks.empty()) {
    fmt::print("no rank of a regatta job runs on this machine\n");
    return;
  }
  for (auto first = found.ranks.begin(); first != found.ranks.end();) {
    const auto last = std::find_if(first, found.ranks.end(), [&](const comm::RankView& view) {
      return view.world != first->world;
    });
    Inspection one{.ranks = {first, last}, .others = {}, .are_files = found.are_files};
    std::copy_if(found.others.begin(), found.others.end(), std::back_inserter(one.others),
                 [&](const comm::RankView& view) { return view.world == first->world; });
    if (first != found.ranks.begin()) fmt::print("\n");
    fmt::print("job {}: {} of {} ranks\n\n{}",
               first->job.empty() ? "without a name" : printable(first->job, 63), last - first,
               first->world_size(), table_of(one));
    const std::vector<std::string> verdicts = verdicts_of(one);
    if (!verdicts.empty()) fmt::print("\n");
    for (const std::string& verdict : verdicts)
      fmt::print("{}\n", printable(verdict, 2000));
    first = last;
  }
}

void print_json(const Inspection& found) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const comm::RankView& view : found.ranks)
    ranks.push_back(comm::view_to_json(view));
  const nlohmann::json all = {{"ranks", std::move(ranks)}, {"verdicts", verdicts_of(found)}};
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// What the user named and is not there is wrong input.
int fail(Error error) {
  if (error.code == Code::kNotFound) error.code = Code::kInvalidInput;
  return report_error(error);
}

// Processes and jobs that are no more.
void drop_ended(std::vector<std::string>& targets) {
  std::erase_if(targets, [](const std::string& target) {
    const bool has_ended = !find_target(target);
    if (has_ended) fmt::print("{} {} has ended\n", is_pid(target) ? "process" : "job", target);
    return has_ended;
  });
}

int run(const InspectOptions& options) {
  std::vector<std::string> targets = options.targets;
  for (bool was_shown = false;; was_shown = true) {
    const auto found = inspect(targets);
    if (!found && was_shown && !is_file(targets.front())) {
      drop_ended(targets);
      if (targets.empty()) return 0;
      continue;
    }
    if (!found) return fail(found.error());
    if (options.watch && ::isatty(STDOUT_FILENO) == 1) fmt::print("\033[H\033[2J");
    if (options.json)
      print_json(*found);
    else
      print_text(*found);
    if (!options.watch) return 0;
    std::fflush(stdout);
    os::sleep_for(Seconds{1.0});
  }
}

}  // namespace

void add_coll_inspect(CLI::App& coll, int& exit_status) {
  auto* command = coll.add_subcommand(
      "inspect", "Show what the ranks of a job are doing, and who is waited for");
  command->footer(
      "Example:\n"
      "  regatta coll inspect gpt-small\n"
      "  regatta coll inspect 4711 --watch\n"
      "  regatta coll inspect run/regatta-flight-gpt-small-rank*.json\n"
      "A rank writes the files when its job fails; docs/formats/flight.md.");
  auto options = std::make_shared<InspectOptions>();
  command
      ->add_option("TARGET", options->targets,
                   "PID of a rank, name of a job on this machine, or flight files; all jobs of "
                   "this machine when left out")
      ->check(not_empty());
  command->add_flag("--watch", options->watch, "Show it again every second, until Ctrl-C");
  command->add_flag("--json", options->json, "Print JSON, with the last operations of each rank");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace regatta::cli
