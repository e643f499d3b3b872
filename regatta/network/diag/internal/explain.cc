#include "regatta/network/diag/internal/explain.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "regatta/network/diag/internal/candidates.h"
#include "regatta/network/diag/internal/fault_sets.h"

namespace regatta::diag {
namespace {

bool is_cable(const Culprit& culprit) {
  return culprit.kind == CulpritKind::kLink || culprit.kind == CulpritKind::kNic;
}

class Telling {
 public:
  Telling(const topo::Graph& graph, std::span<const WayCount> ways,
          std::span<const Standing> standing, const ExplainOptions& options)
      : components_(graph),
        options_(options),
        windows_(ways.empty() ? 0 : ways[0].sent.size()),
        made_(make_candidates(components_, ways, standing, options)),
        search_(made_, ways, options) {}

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
  bool is_dark(const Member& member) const {
    return made_.all[member.candidate].some_flows || member.rate > kDark;
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

  // What has become worse is one fault: as it is now, since it began.
  static void join_worse(std::vector<Explanation>& all) {
    join_pairs(all, [](Verdict& one, const Verdict& other) {
      if (one.culprit != other.culprit) return false;
      one.loss_share = 1 - (1 - one.loss_share) * (1 - other.loss_share);
      if (one.loss_share > kDark) one.symptom = Symptom::kBlackHole;
      one.confidence = std::max(one.confidence, other.confidence);
      return true;
    });
  }

  // Both directions of a cable through which nothing comes are one fault, however much earlier the
  // one was seen than the other.
  void join_directions(std::vector<Explanation>& all) const {
    const auto is_dark_cable = [](const Verdict& verdict) {
      return is_cable(verdict.culprit) && verdict.symptom != Symptom::kLoss;
    };
    join_pairs(all, [&](Verdict& one, const Verdict& other) {
      if (!is_dark_cable(one) || !is_dark_cable(other) || one.culprit.link != other.culprit.link)
        return false;
      one.culprit = components_.both_ways(one.culprit.link);
      one.symptom = Symptom::kBlackHole;
      one.loss_share = std::min(one.loss_share, other.loss_share);
      one.confidence = std::min(one.confidence, other.confidence);
      one.evidence.ways += other.evidence.ways;
      one.evidence.ways_hit += other.evidence.ways_hit;
      one.evidence.sent += other.evidence.sent;
      one.evidence.lost += other.evidence.lost;
      return true;
    });
  }

  // The same of a set, for comparison.
  std::vector<Culprit> culprits_of(const FaultSet& set) const {
    std::vector<Culprit> all;
    for (const Member& member : set.members) {
      Culprit culprit = made_.all[member.candidate].culprit;
      for (const Member& other : set.members) {
        const Culprit& its = made_.all[other.candidate].culprit;
        if (is_cable(culprit) && is_cable(its) && its.link == culprit.link && its != culprit &&
            is_dark(member) && is_dark(other))
          culprit = components_.both_ways(culprit.link);
      }
      all.push_back(culprit);
    }
    return all;
  }

  // What speaks for a member of the likeliest set; confidence 1 when it lasts, else 0.
  Verdict verdict(const FaultSet& set, std::size_t place) const {
    const Member& member = set.members[place];
    const Candidate& own = made_.all[member.candidate];
    const Symptom symptom = own.some_flows        ? Symptom::kSomeFlows
                            : member.rate > kDark ? Symptom::kBlackHole
                                                  : Symptom::kLoss;
    return {.culprit = own.culprit,
            .symptom = symptom,
            .loss_share = member.rate,
            .evidence = {.ways = own.totals.ways,
                         .ways_hit = own.totals.ways_hit,
                         .sent = own.totals.lost +
                                 static_cast<std::uint64_t>(arrived_since(own, member.onset)),
                         .lost = own.totals.lost},
            .confidence = is_lasting(set, place) ? 1.0 : 0.0,
            .since = {},
            .at = {},
            .alternatives = own.same};
  }

  // Whether probes see them on the very same ways.
  bool look_alike(const Culprit& one, const Culprit& other) const {
    if (one == other) return true;
    const auto mine = std::ranges::find(made_.all, one, &Candidate::culprit);
    const auto its = std::ranges::find(made_.all, other, &Candidate::culprit);
    return mine != made_.all.end() && its != made_.all.end() && mine->group == its->group;
  }

  // The share of the likelihood that those sets have that blame the same one, or one that looks
  // like it to the probes: other packets may tell which of these it is, and nobody waits for them.
  void weigh_against_others(Verdict& verdict) const {
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
  }

  // By what no other fault explains.
  bool is_lasting(const FaultSet& set, std::size_t place) const {
    const Member& member = set.members[place];
    const Candidate& one = made_.all[member.candidate];
    const Passing passing = search_.passing_without(set, place);
    std::uint64_t windows = 0;
    std::uint32_t lost = 0;
    bool all_dark = true;
    for (const Crossed& crossed : one.lossy) {
      const std::uint32_t at = crossed.lossy;
      if (passing.last(at) < 1 - 1e-6) continue;
      const Sums& way = made_.sums[made_.lossy[at]];
      if (!way.is_probe) continue;
      windows |= way.windows;
      lost += way.lost;
      all_dark = all_dark && way.is_dark;
    }
    const int count = std::popcount(windows);
    if (count == 0) return false;
    if (all_dark && one.some_flows && count >= options_.windows_some_dark) return true;
    const bool most = 2 * one.totals.ways_hit > one.totals.ways;
    if (all_dark && !one.some_flows && member.rate > kDark && most)
      return count >= options_.windows_dark;
    const int first = std::countr_zero(windows);
    const int last = 63 - std::countl_zero(windows);
    if (count < options_.windows_least || last - first < options_.windows_apart) return false;
    // Of so many boxes, those that so many balls fall into.
    const auto boxes = static_cast<double>(windows_) - first;
    const double expected = boxes * (1 - std::pow(1 - 1 / boxes, static_cast<double>(lost)));
    return count >= options_.spread_least * expected;
  }

  Components components_;
  const ExplainOptions& options_;
  std::size_t windows_;
  Candidates made_;
  FaultSearch search_;
  std::vector<FaultSet> sets_;                  // likeliest first
  std::vector<std::vector<Culprit>> culprits_;  // of each
};

}  // namespace

std::vector<Explanation> explain(const topo::Graph& graph, std::span<const WayCount> ways,
                                 std::span<const Standing> standing,
                                 const ExplainOptions& options) {
  return Telling(graph, ways, standing, options).run();
}

}  // namespace regatta::diag
