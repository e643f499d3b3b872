#include "regatta/network/diag/internal/fault_likelihood.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace regatta::diag {
namespace {

constexpr double kMostLoss = 0.9999;
constexpr int kRateSteps = 16;
// Answers that a busy server sent so many windows late are lost on what died meanwhile: of what
// went before the onset this share.
constexpr std::size_t kLateWindows = 14;
constexpr double kLateShare = 0.02;
constexpr double kMostly = 0.5;  // what has become so much worse that no one rate fits both

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

double arrived_since(const FaultCandidate& one, std::size_t onset) {
  return onset + 1 < one.arrived.size() ? one.arrived[onset + 1] : 0;
}

FaultLikelihood::FaultLikelihood(const FaultCandidates& made, std::span<const PathCounts> paths,
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
DeliveryShares FaultLikelihood::passing_of(const std::vector<FaultMember>& members) const {
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
void FaultLikelihood::visit_losses(std::uint32_t at, std::size_t first, std::size_t last,
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
FaultMember FaultLikelihood::weigh(std::size_t candidate, const DeliveryShares& passing) const {
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

void FaultLikelihood::weigh_from(std::size_t onset, const DeliveryShares& passing,
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

double FaultLikelihood::score(const std::vector<FaultMember>& members) const {
  const DeliveryShares passing = passing_of(members);
  double score = 0;
  for (const FaultMember& member : members)
    score += made_.all[member.candidate].prior + options_.prior_onset +
             arrived_since(made_.all[member.candidate], member.onset) * std::log1p(-member.rate);
  for (std::uint32_t at = 0; at < made_.lossy.size(); ++at)
    visit_losses(at, 0, windows_, passing, [&](double lost, double share) {
      score += lost * std::log1p((1 - share) / background_[at]);
    });
  return score;
}

}  // namespace regatta::diag
