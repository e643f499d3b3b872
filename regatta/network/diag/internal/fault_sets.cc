#include "regatta/network/diag/internal/fault_sets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

namespace regatta::diag {
namespace {

constexpr double kMostLoss = 0.9999;
constexpr int kRateSteps = 16;
constexpr std::size_t kBeam = 5;      // sets of one size that grow
constexpr std::size_t kBranches = 6;  // out of each of them
constexpr double kHopeless = 20;      // where the larger ones are so much worse, it ends
constexpr int kSwaps = 4;
// Answers that a busy server sent so many windows late are lost on what died meanwhile: of what
// went before the onset this share.
constexpr std::size_t kLateWindows = 14;
constexpr double kLateShare = 0.02;
constexpr double kMostly = 0.5;  // what has become so much worse that no one rate fits both

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

// Losses of a path that a candidate crosses.
struct Lost {
  double count = 0;
  double share = 1;  // that the others let through
  double background = 0;
  const PathCrossing* path = nullptr;

  // The share that is lost where one crossing loses `rate`.
  double lost_at(double rate) const { return background + 1 - share * path->all_of(1 - rate); }
};

// By expectation and maximisation; `lost` is the sum of all.
double likeliest_rate(const std::vector<Lost>& all, double lost, double arrived) {
  double rate = std::min(kMostLoss, lost / (lost + arrived));
  for (int step = 0; step < kRateSteps && rate > 1e-9; ++step) {
    double dropped = 0;
    for (const Lost& its : all)
      dropped += its.count * std::min(1.0, (1 - its.path->all_of(1 - rate)) / its.lost_at(rate));
    const double next = std::min(kMostLoss, dropped / (lost + arrived));
    const bool settled = std::abs(next - rate) < 0.01 * rate;
    rate = next;
    if (settled) break;
  }
  return rate;
}

}  // namespace

// Sets that were found, each once.
struct FaultSetSearch::Growth {
  std::vector<FaultSet> all;
  std::set<std::vector<std::size_t>> seen;

  void add(FaultSet set) {
    if (seen.insert(names(set)).second) all.push_back(std::move(set));
  }
};

double arrived_since(const FaultCandidate& one, std::size_t onset) {
  return onset + 1 < one.arrived.size() ? one.arrived[onset + 1] : 0;
}

FaultSetSearch::FaultSetSearch(const FaultCandidates& made, std::span<const PathCounts> paths,
                               const ExplainOptions& options)
    : made_(made), options_(options), windows_(paths.empty() ? 0 : paths[0].lost.size()) {
  for (const std::uint32_t number : made.lossy) {
    const PathCounts& path = paths[number];
    std::vector<double> from(path.lost.size() + 1, 0);
    for (std::size_t window = path.lost.size(); window-- > 0;)
      from[window] = from[window + 1] + (path.sent[window] > 0 ? path.lost[window] : 0);
    lost_from_.push_back(std::move(from));
    background_.push_back(path.background > 0 ? path.background : options.background);
  }
}

// The rest of a set as what it lets through.
DeliveryShares FaultSetSearch::passing_of(const std::vector<FaultMember>& members) const {
  struct Step {
    std::size_t from = 0;
    double share = 1;
    std::size_t candidate = 0;
  };
  std::vector<Step> steps;
  for (const FaultMember& member : members) {
    const double before = member.early < member.onset ? 1 - kLateShare : 1;
    if (before < 1) steps.push_back({member.early, before, member.candidate});
    steps.push_back({member.onset, (1 - member.rate) / before, member.candidate});
  }
  std::ranges::sort(steps, {}, &Step::from);
  DeliveryShares passing;
  passing.first.assign(made_.lossy.size() + 1, 0);
  for (std::size_t at = 0; at < made_.lossy.size(); ++at)
    passing.first[at + 1] = 1;
  for (const Step& step : steps)
    for (const PathCrossing& at : made_.all[step.candidate].lossy)
      ++passing.first[at.lossy + 1];
  for (std::size_t at = 0; at < made_.lossy.size(); ++at)
    passing.first[at + 1] += passing.first[at];
  passing.spans.resize(passing.first.back());
  std::vector<std::uint32_t> next(passing.first.begin(), passing.first.end() - 1);
  for (std::uint32_t& place : next)
    passing.spans[place++] = {.from = 0, .share = 1};
  for (const Step& step : steps)
    for (const PathCrossing& at : made_.all[step.candidate].lossy) {
      std::uint32_t& place = next[at.lossy];
      passing.spans[place] = {.from = step.from,
                              .share = passing.spans[place - 1].share * at.all_of(step.share)};
      ++place;
    }
  return passing;
}

// Losses on the path in windows `first` to before `last`, span by span.
template <typename Visit>
void FaultSetSearch::visit_losses(std::uint32_t at, std::size_t first, std::size_t last,
                                  const DeliveryShares& passing, Visit&& visit) const {
  const std::vector<double>& lost_from = lost_from_[at];
  for (std::uint32_t i = passing.first[at]; i < passing.first[at + 1]; ++i) {
    const std::size_t from = std::max(first, passing.spans[i].from);
    const std::size_t until =
        std::min(last, i + 1 < passing.first[at + 1] ? passing.spans[i + 1].from : windows_);
    if (from >= until) continue;
    const double lost = lost_from[from] - lost_from[until];
    if (lost > 0) visit(lost, passing.spans[i].share);
  }
}

// The likeliest rate and onset of a candidate beside others.
FaultMember FaultSetSearch::weigh(std::size_t candidate, const DeliveryShares& passing) const {
  const FaultCandidate& one = made_.all[candidate];
  FaultMember best{.candidate = candidate, .gain = -1e300};
  std::uint64_t unexplained = 0;
  std::uint64_t all = 0;
  for (const PathCrossing& crossed : one.lossy) {
    const std::uint32_t at = crossed.lossy;
    const PathSums& path = made_.sums[made_.lossy[at]];
    if (!path.is_probe) continue;
    all |= path.windows;
    for (std::uint32_t i = passing.first[at]; i < passing.first[at + 1]; ++i) {
      if (passing.spans[i].share <= 0.5) continue;
      const std::size_t until =
          i + 1 < passing.first[at + 1] ? passing.spans[i + 1].from : windows_;
      const std::uint64_t before = until < 64 ? (std::uint64_t{1} << until) - 1 : ~std::uint64_t{0};
      unexplained |= path.windows & before & ~((std::uint64_t{1} << passing.spans[i].from) - 1);
    }
  }
  const auto first =
      static_cast<std::size_t>(std::countr_zero(unexplained != 0 ? unexplained : all));
  weigh_from(first, passing, best);
  // Earlier losses may be chance; and a busy server loses probes before the fault if it would have
  // answered them after it. So try some of the windows.
  int number = 0;
  for (std::uint64_t left = all & ~std::uint64_t{0} << first; left != 0; left &= left - 1) {
    constexpr std::uint32_t kTried = 0b1'0010'0001'0010'1110;  // the 1st, 2nd, 3rd, 5th, 8th...
    const auto onset = static_cast<std::size_t>(std::countr_zero(left));
    // A component with constant small loss may lose more from any window on.
    const bool is_tried = one.is_worse || (number < 17 && ((kTried >> number) & 1U) != 0);
    if (is_tried) weigh_from(onset, passing, best);
    ++number;
  }
  return best;
}

void FaultSetSearch::weigh_from(std::size_t onset, const DeliveryShares& passing,
                                FaultMember& best) const {
  const FaultCandidate& one = made_.all[best.candidate];
  // Nothing speaks against any of them in the very last window.
  if (one.is_worse && onset + 1 >= windows_) return;
  std::vector<Lost> all;
  double lost = 0;
  for (const PathCrossing& at : one.lossy)
    visit_losses(at.lossy, onset, windows_, passing, [&](double count, double share) {
      all.push_back({count, share, background_[at.lossy], &at});
      lost += count;
    });
  const double arrived = arrived_since(one, onset);
  const double rate = likeliest_rate(all, lost, arrived);
  if (!(rate > 0) || (one.some_flows && rate < kBlackHoleLoss) || (one.is_worse && rate < kMostly))
    return;
  double gain = one.prior + options_.prior_onset + arrived * std::log1p(-rate);
  for (const Lost& its : all)
    gain += its.count * std::log(its.lost_at(rate) / its.lost_at(0));
  FaultMember found{.candidate = best.candidate, .rate = rate, .onset = onset, .early = onset};
  if (rate > kBlackHoleLoss) {
    found.early = onset - std::min(onset, kLateWindows);
    double lost_early = 0;
    double gain_early = 0;
    for (const PathCrossing& at : one.lossy)
      visit_losses(at.lossy, found.early, onset, passing, [&](double count, double share) {
        const Lost its{count, share, background_[at.lossy], &at};
        lost_early += count;
        gain_early += count * std::log(its.lost_at(kLateShare) / its.lost_at(0));
      });
    // Else anything would do that has lost all in the very last window.
    if (2 * lost_early > lost) found.early = onset;
    if (found.early < onset) gain += gain_early;
  }
  if (gain <= best.gain) return;
  best = found;
  best.gain = gain;
}

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
  return passing_of(rest);
}

// Lets all members find their rates beside each other; who explains nothing any more has to go.
void FaultSetSearch::settle(FaultSet& set) const {
  std::ranges::sort(set.members, {}, &FaultMember::candidate);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < set.members.size();) {
      const FaultMember again = weigh(set.members[i].candidate, passing_without(set, i));
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
  const DeliveryShares passing = passing_of(set.members);
  set.score = 0;
  for (const FaultMember& member : set.members)
    set.score +=
        made_.all[member.candidate].prior + options_.prior_onset +
        arrived_since(made_.all[member.candidate], member.onset) * std::log1p(-member.rate);
  for (std::uint32_t at = 0; at < made_.lossy.size(); ++at)
    visit_losses(at, 0, windows_, passing, [&](double lost, double share) {
      set.score += lost * std::log1p((1 - share) / background_[at]);
    });
}

void FaultSetSearch::grow(const FaultSet& set, Growth& growth) const {
  if (set.members.size() >= options_.most_faults) return;
  Best best(kBranches);
  const DeliveryShares passing = passing_of(set.members);
  for (std::size_t i = 0; i < made_.all.size(); ++i)
    if (fits(set, i)) best.offer(weigh(i, passing));
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
    const DeliveryShares passing = passing_of(rest.members);
    Best best(kBranches);
    for (std::size_t i = 0; i < made_.all.size(); ++i)
      if (i != set.members[place].candidate && fits(rest, i)) best.offer(weigh(i, passing));
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
      const DeliveryShares passing = passing_of(split.members);
      FaultMember best{.gain = 0};
      for (std::size_t i = 0; i < made_.all.size(); ++i) {
        if (!is_cable(made_.all[i].culprit) || !fits(split, i)) continue;
        const FaultMember one = weigh(i, passing);
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
  const DeliveryShares passing = passing_of({});
  for (std::size_t i = 0; i < made_.all.size(); ++i) {
    const FaultCandidate& one = made_.all[i];
    if (!one.is_known || one.is_worse || set.members.size() >= options_.most_faults) continue;
    const FaultMember member = weigh(i, passing);
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
