#include "regatta/runtime/comm/internal/watch/verdict.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

using Reports = std::vector<MemberReport>;

template <typename Condition>
std::vector<int> ranks_where(const Reports& members, const Condition& condition) {
  std::vector<int> ranks;
  for (const MemberReport& member : members)
    if (condition(member)) ranks.push_back(member.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

bool same_call(const MemberReport& a, const MemberReport& b) {
  return a.call == b.call && a.bytes == b.bytes;
}

bool showed_call(const MemberReport& member) {
  return member.knows_call &&
         (member.state == MemberState::kEntered || member.state == MemberState::kCompleted);
}

std::string verb(const std::vector<int>& ranks, const char* one, const char* several) {
  return ranks.size() == 1 ? one : several;
}

// "rank 1 has not called it: it is in barrier instead"
Verdict not_called(const Reports& members, std::vector<int> ranks,
                   const std::vector<std::string>& names) {
  std::string text = name_ranks(ranks, names) + verb(ranks, " has", " have") + " not called it";
  if (ranks.size() == 1)
    for (const MemberReport& member : members)
      if (member.rank == ranks.front() && member.is_elsewhere)
        text +=
            ": it is in another operation, " + describe_call(member.other_call, member.other_bytes);
  return {Finding::kNotCalled, std::move(ranks), std::move(text)};
}

}  // namespace

std::optional<Verdict> find_mismatch(const Reports& members,
                                     const std::vector<std::string>& names) {
  Reports shown;
  std::copy_if(members.begin(), members.end(), std::back_inserter(shown), showed_call);
  std::sort(shown.begin(), shown.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto party_size = [&](const MemberReport& member) {
    return std::count_if(shown.begin(), shown.end(),
                         [&](const MemberReport& one) { return same_call(one, member); });
  };
  // max_element finds the first of the largest parties, that with the lowest rank.
  const auto most = std::max_element(
      shown.begin(), shown.end(),
      [&](const MemberReport& a, const MemberReport& b) { return party_size(a) < party_size(b); });
  if (most == shown.end()) return std::nullopt;
  const auto odd = std::find_if(shown.begin(), shown.end(),
                                [&](const MemberReport& one) { return !same_call(one, *most); });
  if (odd == shown.end()) return std::nullopt;
  const auto name = [&](const MemberReport& member) { return at(names, member.rank); };
  return Verdict{
      Finding::kMismatch,
      ranks_where(shown, [&](const MemberReport& one) { return !same_call(one, *most); }),
      name(*odd) + " called " + describe_call(odd->call, odd->bytes) + " where " + name(*most) +
          " called " + describe_call(most->call, most->bytes) +
          ": call the same on all ranks, in the same order",
      shown.size() == members.size() || 2 * as_index(party_size(*most)) > members.size()};
}

Verdict diagnose_stall(const StalledOperation& operation, const std::vector<std::string>& names) {
  const Reports& members = operation.members;
  if (auto mismatch = find_mismatch(members, names)) return *std::move(mismatch);
  const auto find = [&](const auto& condition) { return ranks_where(members, condition); };
  if (auto gone = find([](const auto& m) { return m.is_gone; }); !gone.empty()) {
    auto text = name_ranks(gone, names) + verb(gone, " has", " have") + " ended";
    return {Finding::kGone, std::move(gone), std::move(text)};
  }
  if (auto stopped = find([](const auto& m) { return m.is_stopped; }); !stopped.empty()) {
    auto text = name_ranks(stopped, names) + verb(stopped, " is", " are") +
                " stopped by SIGSTOP or a debugger";
    return {Finding::kStopped, std::move(stopped), std::move(text)};
  }
  const auto silent = find([](const auto& m) { return m.state == MemberState::kUnknown; });
  auto late = find([](const auto& m) { return m.state == MemberState::kNotCalled; });
  // A rank that runs another operation is not at fault where a silent rank explains that one.
  const bool is_excused = std::all_of(members.begin(), members.end(), [](const auto& m) {
    return m.state != MemberState::kNotCalled || m.is_elsewhere;
  });
  if (!late.empty() && (silent.empty() || !is_excused))
    return not_called(members, std::move(late), names);
  if (!silent.empty()) {
    auto text = name_ranks(silent, names) + verb(silent, " does", " do") +
                " not reply: stopped, overloaded or out of reach";
    return {Finding::kSilent, silent, std::move(text)};
  }
  const std::string& judge = at(names, operation.rank);
  if (operation.waited_for.empty())
    return {Finding::kBlocked, {operation.rank}, judge + " makes no progress with its own part"};
  const bool is_one = operation.waited_for.size() == 1;
  const auto is_behind = [&](int rank) {
    return std::any_of(members.begin(), members.end(), [&](const MemberReport& m) {
      return m.rank == rank && m.state == MemberState::kBehind;
    });
  };
  if (std::all_of(operation.waited_for.begin(), operation.waited_for.end(), is_behind))
    return {Finding::kBlocked, operation.waited_for,
            judge + " waits for " + name_ranks(operation.waited_for, names) +
                (is_one ? ", which is" : ", which are") + " still in an earlier operation"};
  return {Finding::kBlocked, operation.waited_for,
          judge + " waits for " + name_ranks(operation.waited_for, names) +
              (is_one ? ", which is" : ", which are") +
              " in it too: the path between them may be blocked"};
}

std::string name_ranks(const std::vector<int>& ranks, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += at(names, ranks[i]);
  }
  return text;
}

}  // namespace regatta::comm
