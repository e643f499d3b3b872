#include "regatta/network/diag/internal/candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "regatta/base/core/check.h"
#include "regatta/base/core/splitmix.h"

namespace regatta::diag {
namespace {

class Maker {
 public:
  Maker(const Components& components, std::span<const WayCount> ways,
        std::span<const Standing> standing, const ExplainOptions& options)
      : components_(components), ways_(ways), standing_(standing), options_(options) {
    for (std::uint32_t way = 0; way < ways.size(); ++way) {
      made_.sums.emplace_back(ways[way]);
      if (made_.sums.back().lost > 0) made_.lossy.push_back(way);
    }
  }

  Candidates run() {
    if (made_.lossy.empty()) return std::move(made_);
    const std::vector<Totals> totals = sum_up();
    gather(totals);
    count_arrived();
    add_some_flows();
    name_all();
    add_worse();
    return std::move(made_);
  }

 private:
  template <typename Visit>
  void visit_way(std::uint32_t number, Visit&& visit) const {
    const WayCount& way = ways_[number];
    const auto left_out =
        way.answered_by.is_valid() ? components_.of(way.answered_by) : components_.size();
    for (const std::uint32_t link : way.links)
      components_.visit(link, [&](std::uint32_t component) {
        if (component != left_out) visit(component);
      });
  }

  std::vector<Totals> sum_up() const {
    std::vector<Totals> totals(components_.size());
    for (std::uint32_t number = 0; number < ways_.size(); ++number) {
      const Sums& way = made_.sums[number];
      if (way.sent == 0) continue;
      // Spread, so that sums of them tell sets of ways apart.
      Totals one{.signature = splitmix(number)};
      if (way.is_probe) {
        one.lost = way.lost;
        one.ways = 1;
        one.ways_hit = way.lost > 0 ? 1U : 0U;
        one.probes = one.signature;
      }
      visit_way(number, [&](std::uint32_t component) { totals[component].add(one); });
    }
    return totals;
  }

  void gather(const std::vector<Totals>& totals) {
    std::unordered_map<std::uint32_t, std::vector<Crossed>> lossy_of;
    std::vector<std::uint32_t> found;
    for (std::uint32_t at = 0; at < made_.lossy.size(); ++at)
      visit_way(made_.lossy[at], [&](std::uint32_t component) {
        std::vector<Crossed>& lossy = lossy_of[component];
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
      Candidate one;
      one.component = component;
      one.culprit = components_.culprit(component);
      one.prior = components_.prior(component, options_);
      one.totals = totals[component];
      one.group = totals[component].probes;
      one.arrived.assign(ways_[0].sent.size(), 0);
      one.lossy = std::move(lossy_of[component]);
      made_.all.push_back(std::move(one));
    }
  }

  void count_arrived() {
    std::unordered_map<std::uint32_t, std::size_t> place;
    for (std::size_t i = 0; i < made_.all.size(); ++i)
      place[made_.all[i].component] = i;
    for (std::uint32_t number = 0; number < ways_.size(); ++number) {
      if (made_.sums[number].sent == 0) continue;
      visit_way(number, [&](std::uint32_t component) {
        const auto at = place.find(component);
        if (at != place.end()) add_arrived(number, made_.all[at->second].arrived);
      });
    }
  }

  // To sums over each window and all later ones.
  void add_arrived(std::uint32_t number, std::vector<double>& arrived) const {
    const WayCount& way = ways_[number];
    double sum = 0;
    for (std::size_t window = way.sent.size(); window-- > 0;) {
      sum += way.sent[window] - way.lost[window];
      arrived[window] += sum;
    }
  }

  const Standing* find_standing(const Culprit& culprit) const {
    const auto at = std::ranges::find(standing_, culprit, &Standing::culprit);
    return at == standing_.end() ? nullptr : &*at;
  }
  bool is_standing(const Culprit& culprit) const { return find_standing(culprit) != nullptr; }

  // Of components with the same ways the one that is known to be broken has the name, else the
  // smallest.
  void name_all() {
    struct Bonus {
      double of_group = 0;
      double of_others = 0;  // on top
    };
    std::unordered_map<std::uint64_t, Bonus> bonus;  // by group
    for (Candidate& one : made_.all) {
      for (Culprit& other : one.same)
        if (is_standing(other) && !is_standing(one.culprit)) std::swap(one.culprit, other);
      if (const Standing* const known = find_standing(one.culprit))
        bonus[one.group] = {options_.prior_standing - components_.prior(one.component, options_),
                            known->is_settled ? options_.prior_settled : options_.prior_look_alike};
    }
    // That one of those is broken whom probes cannot tell apart is known; which one, less so.
    for (Candidate& one : made_.all) {
      const auto its = bonus.find(one.group);
      if (its == bonus.end()) continue;
      one.prior += its->second.of_group;
      if (!is_standing(one.culprit)) one.prior += its->second.of_others;
    }
  }

  // What is known to be broken, once more: it may lose more since some window.
  void add_worse() {
    const std::size_t count = made_.all.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (made_.all[i].some_flows || !is_standing(made_.all[i].culprit)) continue;
      Candidate worse = made_.all[i];
      worse.is_worse = true;
      worse.prior = options_.prior_standing;
      made_.all.push_back(std::move(worse));
    }
  }

  // The same components as dropping all of the flows that lost much and nothing of the others.
  void add_some_flows() {
    const std::size_t count = made_.all.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Candidate& whole = made_.all[i];
      const CulpritKind kind = whole.culprit.kind;
      const bool fits =
          (kind == CulpritKind::kLink && whole.culprit.forward != whole.culprit.backward) ||
          kind == CulpritKind::kSwitch;
      if (!fits || whole.totals.ways_hit == whole.totals.ways) continue;
      Candidate some = whole;
      some.some_flows = true;
      some.same.clear();
      some.lossy.clear();
      std::ranges::fill(some.arrived, 0);
      for (const Crossed& at : whole.lossy) {
        const Sums& way = made_.sums[made_.lossy[at.lossy]];
        if (way.lost < 3 || !way.is_dark) continue;
        some.lossy.push_back(at);
        add_arrived(made_.lossy[at.lossy], some.arrived);
      }
      const auto hits = std::ranges::count_if(some.lossy, [&](const Crossed& at) {
        return made_.sums[made_.lossy[at.lossy]].is_probe;
      });
      if (hits < 2) continue;
      const auto hit = static_cast<double>(hits);
      const auto all = static_cast<double>(whole.totals.ways);
      // Which of its flows: each share of them may be hit, very few or nearly all more rarely.
      some.prior += options_.prior_some_flows + std::log(6) + std::lgamma(hit + 2) +
                    std::lgamma(all - hit + 2) - std::lgamma(all + 4);
      made_.all.push_back(std::move(some));
    }
  }

  const Components& components_;
  std::span<const WayCount> ways_;
  std::span<const Standing> standing_;
  const ExplainOptions& options_;
  Candidates made_;
};

}  // namespace

Sums::Sums(const WayCount& way) : is_probe(way.background <= 0) {
  for (std::size_t window = 0; window < way.sent.size(); ++window) {
    if (way.sent[window] == 0) continue;
    REGATTA_CHECK(way.lost[window] <= way.sent[window]);
    sent += way.sent[window];
    lost += way.lost[window];
    is_dark = way.lost[window] == way.sent[window] ||
              (way.lost[window] > 0 && window + 1 < way.sent.size());
    if (way.lost[window] > 0) windows |= std::uint64_t{1} << window;
  }
}

Candidates make_candidates(const Components& components, std::span<const WayCount> ways,
                           std::span<const Standing> standing, const ExplainOptions& options) {
  return Maker(components, ways, standing, options).run();
}

}  // namespace regatta::diag
