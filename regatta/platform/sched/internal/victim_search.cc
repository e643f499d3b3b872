#include "regatta/platform/sched/internal/victim_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/gang_search.h"
#include "regatta/platform/sched/internal/victim_room.h"
#include "regatta/platform/sched/internal/victim_solver.h"

namespace regatta::sched {
namespace {

constexpr int kExchangeMovesMax = 10'000;  // replicas freed or taken back

class VictimSearch {
 public:
  VictimSearch(const GangTask& task, std::span<const VictimOption> options)
      : task_(task), options_(options), items_(form_items()), room_(task, replicas_) {}

  // Indices into items().
  std::vector<int> find() {
    index_items_by_domain();
    std::vector<std::pair<Place, std::vector<int>>> places;
    for (const int device_type : possible_device_types(task_))
      for (int domain = 0; domain < std::ssize(items_below_); ++domain) {
        const Place place{domain, device_type};
        std::vector<int> useful = useful_below(place);
        if (!useful.empty()) places.emplace_back(place, std::move(useful));
      }
    for (const Effort effort : {Effort::kFast, Effort::kExact})
      for (const auto& [place, useful] : places)
        solve_below(place, useful, effort);
    for (const auto& [place, useful] : places)
      if (place == best_place_) improve(useful);
    while (is_too_much_elsewhere()) {
    }
    return best_;
  }

  const std::vector<VictimItem>& items() const { return items_; }
  long long trial_moves() const { return room_.trial_moves(); }

 private:
  VictimReplica victim_replica(int job, int replica) const {
    const RunningJob& running = at(task_.free.snapshot().running, job);
    const ReplicaPlacement& placement = at(running.replicas, replica);
    return {0, at(task_.free.domains().position, placement.node),
            &at(running.request.roles, placement.role), placement};
  }

  // Replicas on nodes to which none may come make no room.
  std::vector<VictimItem> form_items() {
    std::vector<VictimItem> items;
    for (int option = 0; option < std::ssize(options_); ++option) {
      const VictimOption& victim = at(options_, option);
      const RunningJob& running = at(task_.free.snapshot().running, victim.job);
      VictimItem eviction{option, -1, {victim.eviction_rank, victim.eviction_cost}, {}};
      for (int i = 0; i < std::ssize(running.replicas); ++i) {
        VictimReplica replica = victim_replica(victim.job, i);
        replica.id = replicas_++;
        if (!task_.free.free(replica.placement.node).is_open) continue;
        if (std::find(victim.sheddable.begin(), victim.sheddable.end(), i) !=
            victim.sheddable.end())
          items.push_back({option, i, {0, victim.shrink_cost}, {replica}});
        eviction.replicas.push_back(replica);
      }
      if (!eviction.replicas.empty()) items.push_back(std::move(eviction));
    }
    return items;
  }

  // Items with a replica below each domain of the required level.
  void index_items_by_domain() {
    const TopologyLevel level = task_.job.topology.required;
    items_below_.resize(task_.free.domains_of(level).size());
    for (int i = 0; i < std::ssize(items_); ++i)
      for (const VictimReplica& replica : at(items_, i).replicas) {
        auto& below = at(items_below_, task_.free.domains().domain_at(level, replica.position));
        if (below.empty() || below.back() != i) below.push_back(i);
      }
  }

  enum class Effort { kFast, kExact };

  struct Place {
    int domain = -1;  // of the required level
    int device_type = kAnyDeviceType;

    bool operator==(const Place&) const = default;
  };

  void enter(Place place) {
    room_.enter({task_.job.topology.required, place.domain}, place.device_type);
  }

  // Items below the domain that may help; none where all of them make no room.
  std::vector<int> useful_below(Place place) {
    const std::vector<int>& below = at(items_below_, place.domain);
    if (below.empty()) return {};
    enter(place);
    for (const int i : below)
      room_.free_item(at(items_, i));
    std::vector<int> useful;
    if (room_.fits())
      std::copy_if(below.begin(), below.end(), std::back_inserter(useful),
                   [this](int i) { return room_.is_useful(at(items_, i)); });
    for (const int i : below)
      room_.take_item(at(items_, i));
    return useful;
  }

  std::vector<const VictimItem*> candidate_items(const std::vector<int>& candidates) const {
    std::vector<const VictimItem*> items;
    items.reserve(candidates.size());
    for (const int i : candidates)
      items.push_back(&at(items_, i));
    return items;
  }

  void solve_below(Place place, const std::vector<int>& candidates, Effort effort) {
    if (effort == Effort::kExact && (std::ssize(candidates) > kExactVictimsMax || checks_left_ < 0))
      return;
    enter(place);
    VictimSolver solver(room_, candidate_items(candidates));
    keep(place, candidates,
         effort == Effort::kExact ? solver.solve_exactly(best_cost_, checks_left_)
                                  : solver.solve(best_cost_));
  }

  // Exchanges below the best domain, where it has too many items for the exact search.
  void improve(const std::vector<int>& candidates) {
    if (std::ssize(candidates) <= kExactVictimsMax) return;
    enter(best_place_);
    std::vector<int> chosen;
    for (int i = 0; i < std::ssize(candidates); ++i)
      if (std::binary_search(best_.begin(), best_.end(), at(candidates, i))) chosen.push_back(i);
    int moves = kExchangeMovesMax;
    VictimSolver solver(room_, candidate_items(candidates));
    keep(best_place_, candidates, solver.improve(chosen, best_cost_, moves));
  }

  void keep(Place place, const std::vector<int>& candidates,
            const std::optional<std::vector<int>>& chosen) {
    if (!chosen) return;
    best_.clear();
    best_cost_ = {};
    for (const int i : *chosen) {
      best_.push_back(at(candidates, i));
      best_cost_ += at(items_, best_.back()).cost;
    }
    best_place_ = place;
  }

  // Whether fewer of the best set make room on another domain or type on which its jobs run too;
  // the best set becomes those.
  bool is_too_much_elsewhere() {
    const std::vector<int> best = best_;
    for (const int device_type : possible_device_types(task_))
      for (int domain = 0; domain < std::ssize(items_below_); ++domain) {
        if (best_place_ == Place{domain, device_type}) continue;
        std::vector<int> below;
        std::set_intersection(best.begin(), best.end(), at(items_below_, domain).begin(),
                              at(items_below_, domain).end(), std::back_inserter(below));
        if (below.empty()) continue;
        const VictimCost cost = best_cost_;
        best_cost_ = kInfiniteCost;
        const Place place = best_place_;
        solve_below({domain, device_type}, below, Effort::kFast);
        if (best_.size() < best.size()) return true;
        best_ = best;
        best_cost_ = cost;
        best_place_ = place;
      }
    return false;
  }

  const GangTask& task_;
  std::span<const VictimOption> options_;
  int replicas_ = 0;
  std::vector<VictimItem> items_;
  VictimRoom room_;
  std::vector<std::vector<int>> items_below_;
  std::vector<int> best_;
  VictimCost best_cost_ = kInfiniteCost;
  Place best_place_;
  int checks_left_ = kVictimStatesMax;
};

std::vector<Victim> victims_of(std::span<const VictimOption> options,
                               const std::vector<VictimItem>& items,
                               const std::vector<int>& chosen) {
  std::map<int, Victim> by_job;
  for (const int i : chosen) {
    const VictimItem& item = at(items, i);
    const int job = at(options, item.option).job;
    Victim& victim = by_job.try_emplace(job, Victim{job, false, {}}).first->second;
    if (item.shed < 0)
      victim.is_evicted = true;
    else
      victim.shed.push_back(item.shed);
  }
  std::vector<Victim> victims;
  for (auto& [job, victim] : by_job) {
    std::sort(victim.shed.begin(), victim.shed.end());
    victims.push_back(std::move(victim));
  }
  return victims;
}

}  // namespace

std::optional<VictimSet> find_victims(const FreeCapacity& free, const GangRequest& gang,
                                      std::span<const VictimOption> options) {
  VictimSet set;
  if (auto placement = place_gang(free, gang)) {
    set.placement = std::move(*placement);
    return set;
  }
  const GangTask task{free, gang.job, gang.size, gang.weights, gang.kept};
  VictimSearch search(task, options);
  const std::vector<int> chosen = search.find();
  if (chosen.empty()) return std::nullopt;
  FreeCapacity freed = free;
  for (const int i : chosen) {
    const VictimItem& item = at(search.items(), i);
    set.cost += item.cost.loss;
    set.rank += item.cost.rank;
    for (const VictimReplica& replica : item.replicas)
      freed.give(*replica.role, replica.placement);
  }
  auto placement = place_gang(freed, gang);
  if (!placement) return std::nullopt;
  set.trial_moves = search.trial_moves();
  set.victims = victims_of(options, search.items(), chosen);
  set.placement = std::move(*placement);
  return set;
}

}  // namespace regatta::sched
