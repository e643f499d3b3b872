#include "regatta/network/diag/internal/candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "regatta/base/core/result.h"
#include "regatta/base/core/stats.h"

namespace regatta::diag {
namespace {

// A cable of which both directions are known to be broken stands for each of them.
bool is_direction_of(const Culprit& direction, const Culprit& cable) {
  return direction.kind == CulpritKind::kLink && cable.kind == CulpritKind::kLink &&
         direction.link == cable.link && cable.forward && cable.backward;
}

class CandidateMaker {
 public:
  CandidateMaker(const Components& components, std::span<const PathCounts> paths,
                 const KnownState& known, const ExplainOptions& options)
      : components_(components), paths_(paths), known_(known), options_(options) {
    for (std::uint32_t path = 0; path < paths.size(); ++path) {
      made_.sums.emplace_back(paths[path]);
      if (made_.sums.back().lost > 0) made_.lossy.push_back(path);
    }
  }

  FaultCandidates run() {
    if (made_.lossy.empty()) return std::move(made_);
    const std::vector<ComponentTotals> totals = sum_up();
    gather(totals);
    count_arrived();
    add_some_flows();
    name_all();
    add_worse();
    return std::move(made_);
  }

 private:
  template <typename Visit>
  void visit_path(std::uint32_t number, Visit&& visit) const {
    const PathCounts& path = paths_[number];
    const auto left_out =
        path.answered_by.is_valid() ? components_.of(path.answered_by) : components_.size();
    for (const std::uint32_t link : path.links)
      components_.visit(link, [&](std::uint32_t component) {
        if (component != left_out) visit(component);
      });
  }

  std::vector<ComponentTotals> sum_up() const {
    std::vector<ComponentTotals> totals(components_.size());
    for (std::uint32_t number = 0; number < paths_.size(); ++number) {
      const PathSums& path = made_.sums[number];
      if (path.sent == 0) continue;
      // Spread, so that sums of them tell sets of paths apart.
      ComponentTotals one{.signature = splitmix(number)};
      if (path.is_probe) {
        one.lost = path.lost;
        one.paths = 1;
        one.paths_hit = path.lost > 0 ? 1U : 0U;
        one.probes = one.signature;
      }
      visit_path(number, [&](std::uint32_t component) { totals[component].add(one); });
    }
    return totals;
  }

  void gather(const std::vector<ComponentTotals>& totals) {
    std::unordered_map<std::uint32_t, std::vector<PathCrossing>> lossy_of;
    std::vector<std::uint32_t> found;
    for (std::uint32_t at = 0; at < made_.lossy.size(); ++at)
      visit_path(made_.lossy[at], [&](std::uint32_t component) {
        std::vector<PathCrossing>& lossy = lossy_of[component];
        if (lossy.empty() || lossy.back().lossy != at)
          lossy.push_back({at});
        else
          ++lossy.back().times;
      });
    for (const auto& [component, lossy] : lossy_of)
      if (made_.sums[made_.lossy[lossy.front().lossy]].is_probe) found.push_back(component);
    std::ranges::sort(found);
    std::map<std::uint64_t, std::size_t> by_signature;
    for (const std::uint32_t component : found) {
      const auto [at, is_new] =
          by_signature.try_emplace(totals[component].signature, made_.all.size());
      if (!is_new) {
        made_.all[at->second].same.push_back(components_.culprit(component));
        continue;
      }
      FaultCandidate one;
      one.component = component;
      one.culprit = components_.culprit(component);
      one.prior = components_.prior(component, options_);
      one.totals = totals[component];
      one.group = totals[component].probes;
      one.arrived.assign(paths_[0].sent.size(), 0);
      one.lossy = std::move(lossy_of[component]);
      made_.all.push_back(std::move(one));
    }
  }

  void count_arrived() {
    std::unordered_map<std::uint32_t, std::size_t> place;
    for (std::size_t i = 0; i < made_.all.size(); ++i)
      place[made_.all[i].component] = i;
    for (std::uint32_t number = 0; number < paths_.size(); ++number) {
      if (made_.sums[number].sent == 0) continue;
      visit_path(number, [&](std::uint32_t component) {
        const auto at = place.find(component);
        if (at != place.end()) add_arrived(number, made_.all[at->second].arrived);
      });
    }
  }

  // To sums over each window and all later ones.
  void add_arrived(std::uint32_t number, std::vector<double>& arrived) const {
    const PathCounts& path = paths_[number];
    double sum = 0;
    for (std::size_t window = path.sent.size(); window-- > 0;) {
      sum += path.sent[window] - path.lost[window];
      arrived[window] += sum;
    }
  }

  const KnownFault* find_known_fault(const Culprit& culprit) const {
    const std::span<const KnownFault> faults = known_.faults;
    auto at = std::ranges::find(faults, culprit, &KnownFault::culprit);
    if (at == faults.end())
      at = std::ranges::find_if(
          faults, [&](const KnownFault& known) { return is_direction_of(culprit, known.culprit); });
    return at == faults.end() ? nullptr : &*at;
  }
  bool is_standing(const Culprit& culprit) const { return find_known_fault(culprit) != nullptr; }
  bool has_errors(const Culprit& culprit) const {
    return components_.has_any(culprit, known_.with_errors);
  }
  // The known fault among the candidate and those with the same paths.
  const KnownFault* find_known_fault(const FaultCandidate& one) const {
    const KnownFault* known = find_known_fault(one.culprit);
    for (auto other = one.same.begin(); known == nullptr && other != one.same.end(); ++other)
      known = find_known_fault(*other);
    return known;
  }
  bool is_better_name(const Culprit& one, const Culprit& other) const {
    if (has_errors(one) != has_errors(other)) return has_errors(one);
    return is_standing(one) && !is_standing(other);
  }

  // Among components with the same paths, the one with errors gives the name, then the known fault,
  // else the smallest.
  void name_all() {
    struct Bonus {
      double of_group = 0;
      double of_others = 0;  // on top
    };
    std::unordered_map<std::uint64_t, Bonus> bonus;  // by group
    for (FaultCandidate& one : made_.all) {
      for (Culprit& other : one.same)
        if (is_better_name(other, one.culprit)) std::swap(one.culprit, other);
      if (has_errors(one.culprit)) one.prior += options_.prior_errors;
      one.is_known = is_standing(one.culprit);
      if (const KnownFault* const known = find_known_fault(one))
        bonus[one.group] = {options_.prior_known_fault - components_.prior(one.component, options_),
                            known->is_settled ? options_.prior_settled : options_.prior_look_alike};
    }
    // It is known that one component of the group is broken; which one is less certain.
    for (FaultCandidate& one : made_.all) {
      const auto its = bonus.find(one.group);
      if (its == bonus.end()) continue;
      one.prior += its->second.of_group;
      if (!one.is_known) one.prior += its->second.of_others;
    }
  }

  // Adds each known fault once more: it may lose more since some window.
  void add_worse() {
    const std::size_t count = made_.all.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (made_.all[i].some_flows || !made_.all[i].is_known) continue;
      FaultCandidate worse = made_.all[i];
      worse.is_worse = true;
      worse.prior = options_.prior_known_fault;
      made_.all.push_back(std::move(worse));
    }
  }

  // The same components as dropping all of the flows that lost much and nothing of the others.
  void add_some_flows() {
    // Fewer may be lost by chance in the last window of a flow that another fault hits, and then
    // the arrivals of that flow would speak against a fault that takes all of its own.
    constexpr std::uint32_t kProbesLeast = 5;
    constexpr std::uint32_t kPacketsLeast = 3;  // of others, of which there are few
    const std::size_t count = made_.all.size();
    for (std::size_t i = 0; i < count; ++i) {
      const FaultCandidate& whole = made_.all[i];
      const CulpritKind kind = whole.culprit.kind;
      const bool fits =
          (kind == CulpritKind::kLink && whole.culprit.forward != whole.culprit.backward) ||
          kind == CulpritKind::kSwitch;
      if (!fits || whole.totals.paths_hit == whole.totals.paths) continue;
      FaultCandidate some = whole;
      some.some_flows = true;
      some.same.clear();
      some.lossy.clear();
      std::ranges::fill(some.arrived, 0);
      for (const PathCrossing& at : whole.lossy) {
        const PathSums& path = made_.sums[made_.lossy[at.lossy]];
        const bool is_its =
            path.is_probe ? path.lost_at_last >= kProbesLeast : path.lost >= kPacketsLeast;
        if (!path.is_black_hole || !is_its) continue;
        some.lossy.push_back(at);
        add_arrived(made_.lossy[at.lossy], some.arrived);
      }
      const auto hits = std::ranges::count_if(some.lossy, [&](const PathCrossing& at) {
        return made_.sums[made_.lossy[at.lossy]].is_probe;
      });
      if (hits < 2) continue;
      const auto hit = static_cast<double>(hits);
      const auto all = static_cast<double>(whole.totals.paths);
      // Which of its flows: each share of them may be hit, very few or nearly all more rarely.
      some.prior += options_.prior_some_flows + std::log(6) + std::lgamma(hit + 2) +
                    std::lgamma(all - hit + 2) - std::lgamma(all + 4);
      made_.all.push_back(std::move(some));
    }
  }

  const Components& components_;
  std::span<const PathCounts> paths_;
  const KnownState& known_;
  const ExplainOptions& options_;
  FaultCandidates made_;
};

}  // namespace

PathSums::PathSums(const PathCounts& path) : is_probe(path.background <= 0) {
  for (std::size_t window = 0; window < path.sent.size(); ++window) {
    if (path.sent[window] == 0) continue;
    REGATTA_CHECK(path.lost[window] <= path.sent[window]);
    sent += path.sent[window];
    lost += path.lost[window];
    lost_at_last = path.lost[window] == path.sent[window] ? lost_at_last + path.lost[window] : 0;
    is_black_hole = path.lost[window] == path.sent[window] ||
                    (path.lost[window] > 0 && window + 1 < path.sent.size());
    if (path.lost[window] > 0) windows |= std::uint64_t{1} << window;
  }
}

FaultCandidates make_candidates(const Components& components, std::span<const PathCounts> paths,
                                const KnownState& known, const ExplainOptions& options) {
  return CandidateMaker(components, paths, known, options).run();
}

}  // namespace regatta::diag
