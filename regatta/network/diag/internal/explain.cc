#include "regatta/network/diag/internal/explain.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "regatta/network/diag/internal/candidates.h"
#include "regatta/network/diag/internal/fault_sets.h"

namespace regatta::diag {
namespace {

class Explainer {
 public:
  Explainer(const topo::Graph& graph, std::span<const PathCounts> paths, const KnownState& known,
            const ExplainOptions& options)
      : components_(graph),
        options_(options),
        known_(known),
        windows_(paths.empty() ? 0 : paths[0].sent.size()),
        made_(make_candidates(components_, paths, known, options)),
        search_(made_, paths, options) {}

  std::vector<Explanation> run() {
    if (made_.all.empty()) return {};
    sets_ = search_.run();
    for (const FaultSet& set : sets_)
      culprits_.push_back(culprits_of(set));
    std::vector<Explanation> all;
    const FaultSet& best = sets_.front();
    for (std::size_t i = 0; i < best.members.size(); ++i)
      all.push_back({verdict(best, i), best.members[i].onset});
    join_worse(all);
    join_directions(all);
    for (Explanation& one : all)
      weigh_against_others(one.verdict);
    std::ranges::sort(all, std::ranges::greater(),
                      [](const Explanation& one) { return one.verdict.confidence; });
    return all;
  }

 private:
  bool is_black_hole(const FaultMember& member) const {
    return made_.all[member.candidate].some_flows || member.rate > kBlackHoleLoss;
  }

  // Takes the second of a pair into the first where merge(first, second) says that they are one
  // fault; it began with whichever was seen first.
  template <typename Merge>
  static void join_pairs(std::vector<Explanation>& all, Merge&& merge) {
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = i + 1; k < all.size(); ++k) {
        if (!merge(all[i].verdict, all[k].verdict)) continue;
        all[i].onset = std::min(all[i].onset, all[k].onset);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(k));
        break;
      }
  }

  // Joins a fault that has become worse into one: as it is now, since it began.
  static void join_worse(std::vector<Explanation>& all) {
    join_pairs(all, [](FaultVerdict& one, const FaultVerdict& other) {
      if (one.culprit != other.culprit) return false;
      one.loss_share = 1 - (1 - one.loss_share) * (1 - other.loss_share);
      if (one.loss_share > kBlackHoleLoss) one.symptom = Symptom::kBlackHole;
      one.confidence = std::max(one.confidence, other.confidence);
      return true;
    });
  }

  // Both directions of a cable through which nothing comes are one fault, however much earlier the
  // one was seen than the other.
  void join_directions(std::vector<Explanation>& all) const {
    const auto is_black_hole_cable = [](const FaultVerdict& verdict) {
      return is_cable(verdict.culprit) && verdict.symptom != Symptom::kLoss;
    };
    join_pairs(all, [&](FaultVerdict& one, const FaultVerdict& other) {
      if (!is_black_hole_cable(one) || !is_black_hole_cable(other) ||
          one.culprit.link != other.culprit.link)
        return false;
      one.culprit = components_.both_directions(one.culprit.link);
      one.symptom = Symptom::kBlackHole;
      one.loss_share = std::min(one.loss_share, other.loss_share);
      one.confidence = std::min(one.confidence, other.confidence);
      one.evidence.paths += other.evidence.paths;
      one.evidence.paths_hit += other.evidence.paths_hit;
      one.evidence.sent += other.evidence.sent;
      one.evidence.lost += other.evidence.lost;
      return true;
    });
  }

  // The same of a set, for comparison.
  std::vector<Culprit> culprits_of(const FaultSet& set) const {
    std::vector<Culprit> all;
    for (const FaultMember& member : set.members) {
      Culprit culprit = made_.all[member.candidate].culprit;
      for (const FaultMember& other : set.members) {
        const Culprit& its = made_.all[other.candidate].culprit;
        if (is_cable(culprit) && is_cable(its) && its.link == culprit.link && its != culprit &&
            is_black_hole(member) && is_black_hole(other))
          culprit = components_.both_directions(culprit.link);
      }
      all.push_back(culprit);
    }
    return all;
  }

  // Verdict on a member of the likeliest set; confidence 1 when it lasts, else 0.
  FaultVerdict verdict(const FaultSet& set, std::size_t place) const {
    const FaultMember& member = set.members[place];
    const FaultCandidate& own = made_.all[member.candidate];
    const Symptom symptom = own.some_flows                 ? Symptom::kSomeFlows
                            : member.rate > kBlackHoleLoss ? Symptom::kBlackHole
                                                           : Symptom::kLoss;
    return {.culprit = own.culprit,
            .symptom = symptom,
            .loss_share = member.rate,
            .evidence = {.paths = own.totals.paths,
                         .paths_hit = own.totals.paths_hit,
                         .sent = own.totals.lost +
                                 static_cast<std::uint64_t>(arrived_since(own, member.onset)),
                         .lost = own.totals.lost},
            .confidence = is_lasting(set, place) ? 1.0 : 0.0,
            .since = {},
            .at = {},
            .alternatives = own.same};
  }

  // Whether probes see them on the very same paths.
  bool look_alike(const Culprit& one, const Culprit& other) const {
    if (one == other) return true;
    const auto mine = std::ranges::find(made_.all, one, &FaultCandidate::culprit);
    const auto its = std::ranges::find(made_.all, other, &FaultCandidate::culprit);
    return mine != made_.all.end() && its != made_.all.end() && mine->group == its->group;
  }

  // The share of the likelihood that those sets have that blame the same one, or one that looks
  // like it to the probes: other packets may tell which of these it is, and nobody waits for them.
  void weigh_against_others(FaultVerdict& verdict) const {
    double same = 0;
    double all = 0;
    std::vector<std::pair<Culprit, double>> others;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const double share = std::exp(sets_[i].score - sets_.front().score);
      all += share;
      if (std::ranges::find(culprits_[i], verdict.culprit) != culprits_[i].end()) {
        same += share;
        continue;
      }
      if (std::ranges::any_of(culprits_[i], [&](const Culprit& culprit) {
            return look_alike(culprit, verdict.culprit);
          }))
        same += share;
      for (const Culprit& culprit : culprits_[i])
        if (std::ranges::find(culprits_.front(), culprit) == culprits_.front().end())
          others.emplace_back(culprit, share);
    }
    verdict.confidence *= same / all;
    for (const auto& [culprit, share] : others)
      if (share > 0.05 &&
          std::ranges::find(verdict.alternatives, culprit) == verdict.alternatives.end())
        verdict.alternatives.push_back(culprit);
    std::ranges::stable_partition(verdict.alternatives, [&](const Culprit& culprit) {
      return components_.has_any(culprit, known_.with_errors);
    });
  }

  // By what no other fault explains.
  bool is_lasting(const FaultSet& set, std::size_t place) const {
    const FaultMember& member = set.members[place];
    const FaultCandidate& one = made_.all[member.candidate];
    const DeliveryShares passing = search_.passing_without(set, place);
    std::uint64_t windows = 0;
    std::uint32_t lost = 0;
    bool all_black_hole = true;
    for (const PathCrossing& crossed : one.lossy) {
      const std::uint32_t at = crossed.lossy;
      if (passing.last(at) < 1 - 1e-6) continue;
      const PathSums& path = made_.sums[made_.lossy[at]];
      if (!path.is_probe) continue;
      windows |= path.windows;
      lost += path.lost;
      all_black_hole = all_black_hole && path.is_black_hole;
    }
    const int count = std::popcount(windows);
    if (count == 0) return false;
    if (all_black_hole && one.some_flows && count >= options_.windows_some_black_hole) return true;
    const bool most = 2 * one.totals.paths_hit > one.totals.paths;
    if (all_black_hole && !one.some_flows && member.rate > kBlackHoleLoss && most)
      return count >= options_.windows_black_hole;
    const int first = std::countr_zero(windows);
    const int last = 63 - std::countl_zero(windows);
    if (count < options_.windows_least || last - first < options_.windows_apart) return false;
    // Expected number of boxes that so many balls fall into.
    const auto boxes = static_cast<double>(windows_) - first;
    const double expected = boxes * (1 - std::pow(1 - 1 / boxes, static_cast<double>(lost)));
    return count >= options_.spread_least * expected;
  }

  Components components_;
  const ExplainOptions& options_;
  const KnownState& known_;
  std::size_t windows_;
  FaultCandidates made_;
  FaultSetSearch search_;
  std::vector<FaultSet> sets_;                  // likeliest first
  std::vector<std::vector<Culprit>> culprits_;  // of each
};

}  // namespace

std::vector<Explanation> explain(const topo::Graph& graph, std::span<const PathCounts> paths,
                                 std::span<const KnownFault> known_faults,
                                 const ExplainOptions& options,
                                 std::span<const std::uint32_t> with_errors) {
  return Explainer(graph, paths, {known_faults, with_errors}, options).run();
}

}  // namespace regatta::diag
