#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

struct Member {
  const RankView* rank = nullptr;
  const GroupView* group = nullptr;
};
using GroupKey = std::pair<std::uint64_t, std::uint64_t>;  // world and communicator

bool runs(const OperationView& operation) {
  return operation.status == OperationStatus::kRuns || operation.status == OperationStatus::kFailed;
}

const OperationView* find_flight(const Member& member, std::uint64_t sequence) {
  const auto& flights = member.rank->flights;
  const auto found = std::find_if(flights.begin(), flights.end(), [&](const FlightView& flight) {
    return flight.group == member.group->id && flight.operation.lane == Lane::kCollective &&
           flight.operation.sequence == sequence;
  });
  return found == flights.end() ? nullptr : &found->operation;
}

// Another operation of the rank that is under way.
void tell_other(const Member& member, MemberReport& report) {
  for (const GroupView& other : member.rank->groups)
    for (const OperationView* operation : {&other.collective, &other.transfer}) {
      if (operation == &member.group->collective || operation->status != OperationStatus::kRuns)
        continue;
      report.is_elsewhere = true;
      report.other_call = operation->call;
      report.other_bytes = operation->bytes;
    }
}

MemberReport report_of(const Member& member, std::uint64_t sequence) {
  const OperationView& now = member.group->collective;
  MemberReport report{.rank = member.rank->rank};
  report.is_stopped = member.rank->state == 'T' || member.rank->state == 't';
  report.is_gone = member.rank->state == 'Z';
  if (now.sequence < sequence) {
    report.state = runs(now) ? MemberState::kBehind : MemberState::kNotCalled;
    tell_other(member, report);
    return report;
  }
  report.state =
      now.sequence == sequence && runs(now) ? MemberState::kEntered : MemberState::kCompleted;
  const OperationView* called = now.sequence == sequence ? &now : find_flight(member, sequence);
  if (called == nullptr) return report;
  report.knows_call = true;
  report.call = called->call;
  report.bytes = called->bytes;
  return report;
}

std::vector<std::string> names_of(const RankView& view) {
  std::vector<std::string> names;
  for (const PeerView& peer : view.peers)
    names.push_back(peer.name);
  return names;
}

std::optional<OpenOperation> judge_group(const GroupKey& key, const std::map<int, Member>& members,
                                         MissingView missing) {
  const Member* first = nullptr;
  for (const auto& [rank, member] : members) {
    const bool is_older =
        first == nullptr || member.group->collective.sequence < first->group->collective.sequence;
    if (runs(member.group->collective) && is_older) first = &member;
  }
  if (first == nullptr) return std::nullopt;
  const OperationView& oldest = first->group->collective;
  OpenOperation open{.world = key.first,
                     .group = key.second,
                     .sequence = oldest.sequence,
                     .call = oldest.call,
                     .bytes = oldest.bytes};
  StalledOperation stalled{.rank = first->rank->rank, .call = oldest.call, .bytes = oldest.bytes};
  for (const int rank : first->group->members) {
    const auto found = members.find(rank);
    if (found == members.end()) {
      if (missing == MissingView::kLeftNoFile)
        stalled.members.push_back({.rank = rank, .is_gone = true});
      continue;
    }
    const OperationView& theirs = found->second.group->collective;
    if (theirs.sequence == oldest.sequence)
      open.progressed = std::max(open.progressed, theirs.progressed);
    stalled.members.push_back(report_of(found->second, oldest.sequence));
    if (rank != first->rank->rank && theirs.sequence == oldest.sequence && runs(theirs))
      stalled.waited_for.push_back(rank);
  }
  open.verdict = diagnose_stall(stalled, names_of(*first->rank));
  if (open.verdict.finding == Finding::kGone && missing == MissingView::kLeftNoFile)
    open.verdict.text = describe_missing_files(open.verdict.ranks, *first->rank);
  return open;
}

}  // namespace

std::vector<OpenOperation> find_open_operations(const std::vector<RankView>& views,
                                                MissingView missing) {
  std::map<GroupKey, std::map<int, Member>> groups;
  for (const RankView& view : views)
    for (const GroupView& group : view.groups)
      groups[{view.world, group.id}][view.rank] = {&view, &group};
  std::vector<OpenOperation> all;
  for (const auto& [key, members] : groups)
    if (auto open = judge_group(key, members, missing)) all.push_back(*std::move(open));
  return all;
}

std::string describe_missing_files(const std::vector<int>& ranks, const RankView& view) {
  return name_ranks(ranks, names_of(view)) + " left no flight file: killed, stopped or cut off";
}

}  // namespace regatta::comm
