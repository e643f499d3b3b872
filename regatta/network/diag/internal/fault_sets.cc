#include "regatta/network/diag/internal/fault_sets.h"

#include <algorithm>
#include <set>
#include <utility>

namespace regatta::diag {
namespace {

constexpr std::size_t kBeam = 5;      // sets of one size that grow
constexpr std::size_t kBranches = 6;  // out of each of them
constexpr double kHopeless = 20;      // where the larger ones are so much worse, it ends
constexpr int kSwaps = 4;

bool is_both(const Culprit& culprit) {
  return culprit.kind == CulpritKind::kNic || culprit.forward == culprit.backward;
}

std::vector<std::size_t> names(const FaultSet& set) {
  std::vector<std::size_t> all;
  for (const FaultMember& member : set.members)
    all.push_back(member.candidate);
  return all;
}

// The members with the highest gains.
class Best {
 public:
  explicit Best(std::size_t most) : most_(most) {}

  void offer(const FaultMember& member) {
    if (member.gain <= 0) return;
    all_.insert(
        std::ranges::upper_bound(all_, member.gain, std::ranges::greater(), &FaultMember::gain),
        member);
    if (all_.size() > most_) all_.pop_back();
  }
  const std::vector<FaultMember>& all() const { return all_; }

 private:
  std::size_t most_;
  std::vector<FaultMember> all_;
};

}  // namespace

// Sets that were found, each once.
struct FaultSetSearch::Growth {
  std::vector<FaultSet> all;
  std::set<std::vector<std::size_t>> seen;

  void add(FaultSet set) {
    if (seen.insert(names(set)).second) all.push_back(std::move(set));
  }
};

FaultSetSearch::FaultSetSearch(const FaultCandidates& made, std::span<const PathCounts> paths,
                               const ExplainOptions& options)
    : made_(made), options_(options), likelihood_(made, paths, options) {}

// Worse than it was can only be what is in the set as it was.
bool FaultSetSearch::has_as_it_was(const FaultSet& set, const Culprit& culprit) const {
  return std::ranges::any_of(set.members, [&](const FaultMember& member) {
    const FaultCandidate& one = made_.all[member.candidate];
    return one.culprit == culprit && !one.is_worse && !one.some_flows;
  });
}

// A cable stands for both of its directions.
bool FaultSetSearch::fits(const FaultSet& set, std::size_t candidate) const {
  const FaultCandidate& one = made_.all[candidate];
  const Culprit& own = one.culprit;
  if (one.is_worse && !has_as_it_was(set, own)) return false;
  return std::ranges::none_of(set.members, [&](const FaultMember& member) {
    const Culprit& other = made_.all[member.candidate].culprit;
    if (other == own) return one.is_worse == made_.all[member.candidate].is_worse;
    return is_cable(own) && is_cable(other) && own.link == other.link &&
           (is_both(own) || is_both(other));
  });
}

DeliveryShares FaultSetSearch::passing_without(const FaultSet& set, std::size_t place) const {
  std::vector<FaultMember> rest = set.members;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(place));
  return likelihood_.passing_of(rest);
}

// Lets all members find their rates beside each other; who explains nothing any more has to go.
void FaultSetSearch::settle(FaultSet& set) const {
  std::ranges::sort(set.members, {}, &FaultMember::candidate);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < set.members.size();) {
      const FaultMember again =
          likelihood_.weigh(set.members[i].candidate, passing_without(set, i));
      if (again.gain > 0) {
        set.members[i++] = again;
        continue;
      }
      set.members.erase(set.members.begin() + static_cast<std::ptrdiff_t>(i));
    }
  for (std::size_t i = 0; i < set.members.size();) {
    const FaultCandidate& one = made_.all[set.members[i].candidate];
    if (one.is_worse && !has_as_it_was(set, one.culprit))
      set.members.erase(set.members.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  set.score = likelihood_.score(set.members);
}

void FaultSetSearch::grow(const FaultSet& set, Growth& growth) const {
  if (set.members.size() >= options_.most_faults) return;
  Best best(kBranches);
  const DeliveryShares passing = likelihood_.passing_of(set.members);
  for (std::size_t i = 0; i < made_.all.size(); ++i)
    if (fits(set, i)) best.offer(likelihood_.weigh(i, passing));
  for (const FaultMember& member : best.all()) {
    FaultSet larger = set;
    larger.members.push_back(member);
    settle(larger);
    growth.add(std::move(larger));
  }
}

// Puts others in the place of each member.
void FaultSetSearch::swap_members(const FaultSet& set, Growth& growth) const {
  for (std::size_t place = 0; place < set.members.size(); ++place) {
    FaultSet rest = set;
    rest.members.erase(rest.members.begin() + static_cast<std::ptrdiff_t>(place));
    const DeliveryShares passing = likelihood_.passing_of(rest.members);
    Best best(kBranches);
    for (std::size_t i = 0; i < made_.all.size(); ++i)
      if (i != set.members[place].candidate && fits(rest, i))
        best.offer(likelihood_.weigh(i, passing));
    for (const FaultMember& member : best.all()) {
      FaultSet other = rest;
      other.members.push_back(member);
      settle(other);
      growth.add(std::move(other));
    }
    settle(rest);
    growth.add(std::move(rest));
  }
}

// Puts the cables that explain most in the place of each switch: one at a time they explain less
// than it does, and together they may be likelier.
void FaultSetSearch::split_switches(const FaultSet& set, Growth& growth) const {
  for (std::size_t place = 0; place < set.members.size(); ++place) {
    if (made_.all[set.members[place].candidate].culprit.kind != CulpritKind::kSwitch) continue;
    FaultSet split = set;
    split.members.erase(split.members.begin() + static_cast<std::ptrdiff_t>(place));
    while (split.members.size() < options_.most_faults) {
      const DeliveryShares passing = likelihood_.passing_of(split.members);
      FaultMember best{.gain = 0};
      for (std::size_t i = 0; i < made_.all.size(); ++i) {
        if (!is_cable(made_.all[i].culprit) || !fits(split, i)) continue;
        const FaultMember one = likelihood_.weigh(i, passing);
        if (one.gain > best.gain) best = one;
      }
      if (best.gain <= 0) break;
      const std::size_t before = split.members.size();
      split.members.push_back(best);
      settle(split);
      if (split.members.size() <= before) break;
    }
    settle(split);
    // Else it would only speak against the switch.
    if (split.score > set.score) growth.add(std::move(split));
  }
}

// The faults that are known to be broken: what has happened since they were found may lead the
// search to other sets first, of fewer and larger members, and away from this one.
FaultSet FaultSetSearch::known_set() const {
  FaultSet set;
  const DeliveryShares passing = likelihood_.passing_of({});
  for (std::size_t i = 0; i < made_.all.size(); ++i) {
    const FaultCandidate& one = made_.all[i];
    if (!one.is_known || one.is_worse || set.members.size() >= options_.most_faults) continue;
    const FaultMember member = likelihood_.weigh(i, passing);
    const auto same = std::ranges::find_if(set.members, [&](const FaultMember& other) {
      return made_.all[other.candidate].culprit == one.culprit;
    });
    if (same == set.members.end()) {
      if (fits(set, i)) set.members.push_back(member);
    } else if (member.gain > same->gain) {
      *same = member;
    }
  }
  settle(set);
  return set;
}

std::vector<FaultSet> FaultSetSearch::run() const {
  Growth growth;
  growth.add({});
  const auto by_score = [](std::vector<FaultSet>& sets) {
    std::ranges::sort(sets, std::ranges::greater(), &FaultSet::score);
  };
  // Keep the best few of each size: a small set explains less, however good it is.
  std::vector<FaultSet> level = growth.all;
  for (double best = 0; !level.empty();) {
    const std::size_t known = growth.all.size();
    for (const FaultSet& set : level)
      grow(set, growth);
    level.assign(growth.all.begin() + static_cast<std::ptrdiff_t>(known), growth.all.end());
    by_score(level);
    if (level.size() > kBeam) level.resize(kBeam);
    if (level.empty() || level.front().score < best - kHopeless) break;
    best = std::max(best, level.front().score);
  }
  growth.add(known_set());
  std::set<std::vector<std::size_t>> swapped;
  for (int round = 0; round < kSwaps; ++round) {
    by_score(growth.all);
    const FaultSet best = growth.all.front();
    if (!swapped.insert(names(best)).second) break;
    swap_members(best, growth);
    split_switches(best, growth);
    grow(best, growth);
  }
  by_score(growth.all);
  return std::move(growth.all);
}

}  // namespace regatta::diag
