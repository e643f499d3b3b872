#include "regatta/diag/explain.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "regatta/diag/internal/candidates.h"

namespace regatta::diag {
namespace {

constexpr double kMostLoss = 0.9999;
constexpr double kDark = 0.9;  // a loss rate from which on nothing is said to come through
constexpr int kRateSteps = 16;

class Search {
 public:
  Search(const topo::Graph& graph, std::span<const WayCount> ways,
         std::span<const Culprit> standing, const ExplainOptions& options)
      : components_(graph), ways_(ways), options_(options) {
    Candidates made = make_candidates(components_, ways, standing, options);
    sums_ = std::move(made.sums);
    lossy_ = std::move(made.lossy);
    candidates_ = std::move(made.all);
    passing_.assign(lossy_.size(), 1);
  }

  std::vector<Explanation> run() {
    while (chosen_.size() < options_.most_faults) {
      const std::size_t best = best_candidate();
      if (best == candidates_.size() || candidates_[best].gain <= 0) break;
      choose(best);
      const std::size_t count = chosen_.size();
      refine();
      if (chosen_.size() < count) break;
    }
    std::vector<Explanation> all;
    for (std::size_t i = 0; i < chosen_.size(); ++i)
      all.push_back({verdict(i), candidates_[chosen_[i]].onset});
    join_directions(all);
    std::ranges::sort(all, std::ranges::greater(),
                      [](const Explanation& one) { return one.verdict.confidence; });
    return all;
  }

 private:
  static bool is_cable(const Culprit& culprit) {
    return culprit.kind == CulpritKind::kLink || culprit.kind == CulpritKind::kNic;
  }

  // Both directions of a cable through which nothing comes are one fault, however much earlier the
  // one was seen than the other.
  void join_directions(std::vector<Explanation>& all) const {
    const auto is_dark = [](const Verdict& verdict) {
      return is_cable(verdict.culprit) && verdict.symptom != Symptom::kLoss;
    };
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = i + 1; k < all.size(); ++k) {
        Verdict& one = all[i].verdict;
        const Verdict& other = all[k].verdict;
        if (!is_dark(one) || !is_dark(other) || one.culprit.link != other.culprit.link) continue;
        one.culprit = components_.both_ways(one.culprit.link);
        one.symptom = Symptom::kBlackHole;
        one.loss_share = std::min(one.loss_share, other.loss_share);
        one.confidence = std::min(one.confidence, other.confidence);
        one.evidence.ways += other.evidence.ways;
        one.evidence.ways_hit += other.evidence.ways_hit;
        one.evidence.sent += other.evidence.sent;
        one.evidence.lost += other.evidence.lost;
        all[i].onset = std::min(all[i].onset, all[k].onset);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(k));
        break;
      }
  }

  double lost_with(std::uint32_t at, double rate) const {
    return options_.background + 1 - passing_[at] * (1 - rate);
  }

  // What came through in the window of its onset before it broke, nobody can tell from the rest.
  static double arrived_since(const Candidate& one, std::size_t onset) {
    return onset + 1 < one.arrived.size() ? one.arrived[onset + 1] : 0;
  }

  // The likeliest rate and onset of a candidate beside the chosen ones, and what it gains.
  void weigh(Candidate& one) const {
    std::uint64_t unexplained = 0;
    std::uint64_t all = 0;
    for (const std::uint32_t at : one.lossy) {
      const Sums& way = sums_[lossy_[at]];
      all |= way.windows;
      if (passing_[at] > 0.5) unexplained |= way.windows;
    }
    const auto first =
        static_cast<std::size_t>(std::countr_zero(unexplained != 0 ? unexplained : all));
    one.gain = -1e300;
    weigh_from(first, one);
    // What was lost earlier may have been by chance; and of a busy server probes are lost before
    // the fault, when they would have been answered after it. So try some of the windows.
    int number = 0;
    for (std::uint64_t left = all & ~std::uint64_t{0} << first; left != 0; left &= left - 1) {
      constexpr std::uint32_t kTried = 0b1'0010'0001'0010'1110;  // the 1st, 2nd, 3rd, 5th, 8th...
      const auto onset = static_cast<std::size_t>(std::countr_zero(left));
      if (number < 17 && ((kTried >> number) & 1U) != 0) weigh_from(onset, one);
      ++number;
    }
  }

  // By expectation and maximisation.
  void weigh_from(std::size_t onset, Candidate& one) const {
    std::vector<double> lost_on;
    double lost = 0;
    for (const std::uint32_t at : one.lossy) {
      double count = sums_[lossy_[at]].lost;
      for (std::size_t window =
               static_cast<std::size_t>(std::countr_zero(sums_[lossy_[at]].windows));
           window < onset; ++window)
        count -= ways_[lossy_[at]].lost[window];
      lost_on.push_back(count);
      lost += count;
    }
    const double arrived = arrived_since(one, onset);
    double rate = std::min(kMostLoss, lost / (lost + arrived));
    for (int step = 0; step < kRateSteps && rate > 1e-9; ++step) {
      double dropped = 0;
      for (std::size_t i = 0; i < lost_on.size(); ++i)
        dropped += lost_on[i] * std::min(1.0, rate / lost_with(one.lossy[i], rate));
      const double next = std::min(kMostLoss, dropped / (lost + arrived));
      const bool settled = std::abs(next - rate) < 0.01 * rate;
      rate = next;
      if (settled) break;
    }
    double gain = one.prior + options_.prior_onset + arrived * std::log1p(-rate);
    for (std::size_t i = 0; i < lost_on.size(); ++i)
      gain += lost_on[i] * std::log(lost_with(one.lossy[i], rate) / lost_with(one.lossy[i], 0));
    if (gain <= one.gain || (one.some_flows && rate < kDark)) return;
    one.gain = gain;
    one.rate = rate;
    one.onset = onset;
  }

  bool is_chosen(std::size_t candidate) const {
    return std::ranges::find(chosen_, candidate) != chosen_.end();
  }

  std::size_t best_candidate() {
    std::size_t best = candidates_.size();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (is_chosen(i)) continue;
      weigh(candidates_[i]);
      if (best == candidates_.size() || candidates_[i].gain > candidates_[best].gain) best = i;
    }
    return best;
  }

  void pass(const Candidate& one, bool through) {
    for (const std::uint32_t at : one.lossy)
      passing_[at] = through ? passing_[at] / (1 - one.rate) : passing_[at] * (1 - one.rate);
  }

  void choose(std::size_t candidate) {
    chosen_.push_back(candidate);
    pass(candidates_[candidate], false);
  }

  // Lets each chosen one stand against all others in its place.
  void refine() {
    for (int round = 0; round < 3; ++round) {
      bool changed = false;
      for (std::size_t i = 0; i < chosen_.size();) {
        const std::size_t was = chosen_[i];
        pass(candidates_[was], true);
        chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(i));
        const std::size_t best = best_candidate();
        changed = changed || best != was;
        if (candidates_[best].gain <= 0) continue;
        chosen_.insert(chosen_.begin() + static_cast<std::ptrdiff_t>(i), best);
        pass(candidates_[best], false);
        ++i;
      }
      if (!changed) return;
    }
  }

  // By what no other fault explains.
  bool is_lasting(const Candidate& one) const {
    std::uint64_t windows = 0;
    std::uint32_t lost = 0;
    bool all_dark = true;
    for (const std::uint32_t at : one.lossy) {
      if (passing_[at] < 1 - 1e-6) continue;
      const Sums& way = sums_[lossy_[at]];
      windows |= way.windows;
      lost += way.lost;
      all_dark = all_dark && way.is_dark;
    }
    const int count = std::popcount(windows);
    if (count == 0) return false;
    if (all_dark && one.some_flows && count >= options_.windows_some_dark) return true;
    const bool most = 2 * one.totals.ways_hit > one.totals.ways;
    if (all_dark && !one.some_flows && one.rate > kDark && most)
      return count >= options_.windows_dark;
    const int first = std::countr_zero(windows);
    const int last = 63 - std::countl_zero(windows);
    if (count < options_.windows_least || last - first < options_.windows_apart) return false;
    // Of so many boxes, those that so many balls fall into.
    const auto boxes = static_cast<double>(ways_[0].sent.size()) - first;
    const double expected = boxes * (1 - std::pow(1 - 1 / boxes, static_cast<double>(lost)));
    return count >= options_.spread_least * expected;
  }

  // Whether `cable` is, or is joined to, what join_directions() makes of this one and another.
  bool joins(const Candidate& one, const Culprit& cable) const {
    if (!is_cable(one.culprit) || !is_cable(cable) || cable.link != one.culprit.link) return false;
    return std::ranges::any_of(chosen_, [&](std::size_t chosen) {
      const Culprit& other = candidates_[chosen].culprit;
      return is_cable(other) && other.link == one.culprit.link && other != one.culprit;
    });
  }

  // Of the likeliest two that could stand in the place of a chosen one.
  double gain_of_two(std::size_t chosen) {
    const auto best = [&] {
      Candidate found;
      found.gain = -1e300;
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (is_chosen(i) || candidates_[i].culprit == candidates_[chosen].culprit) continue;
        weigh(candidates_[i]);
        if (candidates_[i].gain > found.gain) found = candidates_[i];
      }
      return found;
    };
    const Candidate first = best();
    if (first.gain <= -1e300) return first.gain;
    pass(first, false);
    const Candidate second = best();
    pass(first, true);
    return first.gain + second.gain;
  }

  Verdict verdict(std::size_t place) {
    const Candidate was = candidates_[chosen_[place]];
    pass(was, true);
    // The set may have changed since it was weighed.
    Candidate own = was;
    weigh(own);
    double others = std::exp(-own.gain);  // none at all
    double same = 0;
    std::vector<Culprit> alternatives = own.same;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (is_chosen(i) && i != chosen_[place]) continue;
      Candidate other = candidates_[i];
      weigh(other);
      const double share = std::exp(std::min(700.0, other.gain - own.gain));
      const bool agrees = other.culprit == own.culprit || joins(own, other.culprit);
      (agrees ? same : others) += share;
      if (!agrees && share > 0.05) alternatives.push_back(other.culprit);
    }
    const bool lasts = is_lasting(own);
    others += std::exp(std::min(700.0, gain_of_two(chosen_[place]) - own.gain));
    pass(was, false);
    const Symptom symptom = own.some_flows     ? Symptom::kSomeFlows
                            : own.rate > kDark ? Symptom::kBlackHole
                                               : Symptom::kLoss;
    const double arrived = arrived_since(own, own.onset);
    return {.culprit = own.culprit,
            .symptom = symptom,
            .loss_share = own.rate,
            .evidence = {.ways = own.totals.ways,
                         .ways_hit = own.totals.ways_hit,
                         .sent = own.totals.lost + static_cast<std::uint64_t>(arrived),
                         .lost = own.totals.lost},
            .confidence = lasts ? same / (same + others) : 0,
            .since = {},
            .at = {},
            .alternatives = std::move(alternatives)};
  }

  Components components_;
  std::span<const WayCount> ways_;
  const ExplainOptions& options_;
  std::vector<Sums> sums_;            // per way
  std::vector<std::uint32_t> lossy_;  // ways with losses
  std::vector<double> passing_;       // of these: what the chosen ones let through
  std::vector<Candidate> candidates_;
  std::vector<std::size_t> chosen_;
};

}  // namespace

std::vector<Explanation> explain(const topo::Graph& graph, std::span<const WayCount> ways,
                                 std::span<const Culprit> standing, const ExplainOptions& options) {
  return Search(graph, ways, standing, options).run();
}

}  // namespace regatta::diag
