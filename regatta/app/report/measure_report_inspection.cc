// The state of running ranks, or of ranks whose job failed.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/measure_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/collective/call.h"

namespace regatta::report {
namespace {

// An operation with progress in this time is not stuck.
constexpr Seconds kStuckAfter{1.0};
// Idle rows that are shown; where there are more they are counted.
constexpr std::size_t kIdleRowsMost = 8;

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

std::string process_state_text(char state) {
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

// The clock of a flight file stopped when the file was written.
Seconds now_for(const comm::RankView& view, Seconds now) {
  return view.state == 0 ? view.ticked : now;
}

std::vector<std::string> operation_row(const comm::RankView& view, const comm::GroupView& group,
                                       const comm::OperationView& operation, Seconds now) {
  const bool is_any = operation.status != comm::OperationStatus::kNone;
  const std::uint64_t under_way = group.collective.status == comm::OperationStatus::kRuns ? 1 : 0;
  const std::uint64_t open = group.submitted - std::min(group.submitted, group.ended);
  const std::uint64_t queued = open - std::min(open, under_way);
  return {view.name(),
          view.pid > 0 ? std::to_string(view.pid) : "-",
          process_state_text(view.state),
          group_text(group.id),
          is_any ? std::to_string(operation.sequence) : "-",
          is_any ? collective::describe_call(operation.call, operation.bytes) : "-",
          phase_of(operation) + (queued > 0 ? fmt::format(" +{} queued", queued) : ""),
          is_any ? moved_text(operation.moved) : "-",
          is_any ? format_seconds(now_for(view, now) - operation.progressed) : "-"};
}

bool is_idle(const comm::GroupView& group) {
  return group.submitted <= group.ended &&
         group.collective.status != comm::OperationStatus::kRuns &&
         group.collective.status != comm::OperationStatus::kFailed &&
         group.transfer.status != comm::OperationStatus::kRuns;
}

std::string ranks_table(const Inspection& inspection) {
  std::size_t idle = 0;
  for (const comm::RankView& view : inspection.ranks)
    idle += static_cast<std::size_t>(std::ranges::count_if(view.groups, is_idle));
  const bool counts_idle = idle > kIdleRowsMost;
  std::vector<std::vector<std::string>> rows = {
      {"rank", "pid", "process", "communicator", "call", "operation", "phase", "moved", "idle"}};
  for (const comm::RankView& view : inspection.ranks)
    for (const comm::GroupView& group : view.groups) {
      if (counts_idle && is_idle(group)) continue;
      rows.push_back(operation_row(view, group, group.collective, inspection.now));
      if (group.transfer.status == comm::OperationStatus::kRuns)
        rows.push_back(operation_row(view, group, group.transfer, inspection.now));
    }
  std::string text = rows.size() > 1 ? format_table(rows) : "";
  if (counts_idle)
    text += fmt::format("{}{} idle communicators of ranks are not listed; --json shows them\n",
                        rows.size() > 1 ? "and " : "", idle);
  return text;
}

std::string open_operation_text(const comm::OpenOperation& open) {
  return fmt::format("{}, call {} of communicator {}: {}",
                     collective::describe_call(open.call, open.bytes), open.sequence,
                     group_text(open.group), open.verdict.text);
}

// Every rank whose process lives to see its world fail leaves a file.
std::string missing_files_text(const std::vector<comm::RankView>& ranks) {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks.front().world_size(); ++rank)
    if (std::none_of(ranks.begin(), ranks.end(),
                     [&](const comm::RankView& view) { return view.rank == rank; }))
      missing.push_back(rank);
  return missing.empty() ? "" : comm::describe_missing_files(missing, ranks.front());
}

// A rank writes its verdict once, with the waiting time until then.
std::string rank_verdict(const comm::RankView& view, Seconds now) {
  if (view.judged.value <= 0) return view.verdict;
  const Seconds age = std::max(now_for(view, now) - view.judged, Seconds{0.0});
  return fmt::format("{} (reported {} ago)", view.verdict, format_seconds(age));
}

// The verdicts of the ranks, else those of other ranks of their worlds, and the conclusions from
// all records together; each once.
std::vector<std::string> verdicts_of(const Inspection& found) {
  std::vector<std::string> lines;
  std::set<std::string> errors;
  for (const comm::RankView& view : found.ranks) {
    if (!view.verdict.empty() && view.error.empty()) lines.push_back(rank_verdict(view, found.now));
    if (!view.error.empty() && errors.insert(view.error).second)
      lines.push_back(view.name() + " failed: " + view.error);
  }
  const bool has_no_verdict = lines.empty();
  for (const comm::RankView& view : found.others)
    if (has_no_verdict && !view.verdict.empty() && view.error.empty())
      lines.push_back(rank_verdict(view, found.now));
  const std::string missing_files = found.are_files ? missing_files_text(found.ranks) : "";
  if (!missing_files.empty()) {
    lines.push_back(missing_files);
    return lines;
  }
  std::vector<comm::RankView> all = found.ranks;
  all.insert(all.end(), found.others.begin(), found.others.end());
  const auto missing =
      found.are_files ? comm::MissingView::kLeftNoFile : comm::MissingView::kElsewhere;
  for (const comm::OpenOperation& open : comm::find_open_operations(all, missing)) {
    const bool is_stuck = found.are_files || found.now - open.progressed >= kStuckAfter;
    if (is_stuck && (found.are_files || lines.empty())) lines.push_back(open_operation_text(open));
  }
  return lines;
}

// The state of a job without a verdict.
std::string calm_text(const Inspection& one) {
  const bool is_busy = std::ranges::any_of(one.ranks, [](const comm::RankView& view) {
    return !std::ranges::all_of(view.groups, is_idle);
  });
  return is_busy ? "no rank is stuck: all operations under way make progress\n"
                 : "no rank is stuck: no operation is under way\n";
}

std::string world_text(const Inspection& one) {
  const comm::RankView& first = one.ranks.front();
  std::string text = fmt::format("job {}: {} of {} ranks\n",
                                 first.job.empty() ? "without a name" : printable(first.job, 63),
                                 one.ranks.size(), first.world_size());
  const std::vector<std::string> verdicts = verdicts_of(one);
  for (const std::string& verdict : verdicts)
    text += printable(verdict, 2000) + "\n";
  if (verdicts.empty() && !one.are_files) text += calm_text(one);
  return text + "\n" + ranks_table(one);
}

}  // namespace

std::string inspection_text(const Inspection& inspection) {
  if (inspection.ranks.empty()) return "no rank of a regatta job runs on this machine\n";
  std::string text;
  const auto end = inspection.ranks.end();
  for (auto first = inspection.ranks.begin(); first != end;) {
    const auto is_other = [&](const comm::RankView& view) { return view.world != first->world; };
    const auto last = std::find_if(first, end, is_other);
    Inspection one{.ranks = {first, last},
                   .others = {},
                   .are_files = inspection.are_files,
                   .now = inspection.now};
    std::ranges::remove_copy_if(inspection.others, std::back_inserter(one.others), is_other);
    text += (text.empty() ? "" : "\n") + world_text(one);
    first = last;
  }
  return text;
}

nlohmann::json inspection_json(const Inspection& inspection) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const comm::RankView& view : inspection.ranks)
    ranks.push_back(comm::view_to_json(view));
  return {{"ranks", std::move(ranks)}, {"verdicts", verdicts_of(inspection)}};
}

std::string ended_process_text(const std::string& pid) {
  return fmt::format("process {} has ended\n", pid);
}

std::string ended_job_text(const std::string& job) {
  return fmt::format("job {} has ended\n", job);
}

}  // namespace regatta::report
