#include "regatta/platform/sched/internal/gang_placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/gang_search.h"
#include "regatta/platform/sched/internal/node_fit.h"
#include "regatta/platform/sched/internal/pair_shares.h"

namespace regatta::sched {
namespace {

// Steps of the exact search for levels below the required one: a gang not found there may still
// be placed on more domains.
constexpr int kLowerLevelStates = kGangStatesMax / 10;
// Domains of a level in which gangs of several roles are tried, those with the least free first.
constexpr int kDomainsTried = 8;

struct Candidate {
  GangShares shares;
  GangCost cost;
  bool is_beyond_preferred = false;

  bool is_better_than(const Candidate& other) const {
    return std::tuple{is_beyond_preferred, cost.cost} <
           std::tuple{other.is_beyond_preferred, other.cost.cost};
  }
};

// The placements of a gang on one type of devices.
class GangSearch {
 public:
  GangSearch(const GangTask& task, int device_type) : task_(task), device_type_(device_type) {
    const auto kept = kept_by_position(task);
    const NodeRange all{0, task.free.nodes()};
    for (int role = 0; role < std::ssize(task.job.roles); ++role) {
      std::vector<int> room(as_index(all.end));
      const auto count_room = [&](int i) {
        at(room, i) = room_on_node(task, role, device_type, at(task.free.domains().order, i));
      };
      visit_nodes_with_room(task.free, at(task.job.roles, role), all, count_room);
      alone_.emplace_back(RoleShares::Request{task.free, at(task.job.roles, role), all,
                                              std::move(room), at(kept, role),
                                              at(task.size, role)});
    }
    for (int a = 0; a < std::ssize(alone_); ++a)
      for (int b = a + 1; b < std::ssize(alone_); ++b)
        if (!at(task.job.roles, a).is_sliced() && !at(task.job.roles, b).is_sliced())
          pairs_.emplace_back(task, order_pair(task.job, a, b, device_type));
    orders_ = {FillOrder::kFewest, FillOrder::kPartlyUsed};
    if (task.free.has_failures()) orders_.push_back(FillOrder::kSafest);
    if (task.job.job_class == JobClass::kOnline) orders_.push_back(FillOrder::kSpread);
  }

  std::optional<Candidate> best() {
    const TopologyLevel required = task_.job.topology.required;
    for (int i = 0; i <= static_cast<int>(required); ++i) {
      const auto level = static_cast<TopologyLevel>(i);
      if (best_ && (is_one_replica() || !may_improve(level))) break;
      const std::vector<DomainRef> domains = domains_with_room(level);
      try_orders(domains);
      if (best_ || alone_.size() == 1) continue;
      int states = level == required ? kGangStatesMax : lower_states_;
      for (const DomainRef domain : domains) {
        if (auto shares = share_out_together(domain, states)) {
          consider(std::move(*shares));
          break;
        }
        if (states < 0) break;
      }
      lower_states_ = states;
    }
    return std::move(best_);
  }

 private:
  // Then a wider level holds the same placements.
  bool is_one_replica() const {
    return std::accumulate(task_.size.begin(), task_.size.end(), 0) == 1;
  }

  // A wider level costs at least its slowdown.
  bool may_improve(TopologyLevel level) const {
    if (level > task_.job.topology.preferred && !best_->is_beyond_preferred) return false;
    return task_.weights.communication * (at(task_.job.slowdown, static_cast<int>(level)) - 1) <
           best_->cost.cost;
  }

  std::optional<GangShares> share_out_together(DomainRef domain, int& states) const {
    const bool is_pair = alone_.size() == 2 && pairs_.size() == 1 &&
                         std::none_of(alone_.begin(), alone_.end(), [domain](const auto& role) {
                           return role.has_subgroups(domain);
                         });
    return is_pair ? pairs_[0].share_out(domain)
                   : share_out_exactly(task_, device_type_, domain, states);
  }

  // Those that hold what is kept and each role alone, and may hold each pair of roles, by rising
  // free devices, but none that is its only child again.
  std::vector<DomainRef> domains_with_room(TopologyLevel level) const {
    const ClusterDomains& domains = task_.free.domains();
    std::vector<DomainRef> found;
    if (level == TopologyLevel::kServer && alone_.size() == 1 && task_.kept.empty() &&
        task_.size[0] > 0) {
      visit_nodes_with_room(task_.free, task_.job.roles[0], {0, task_.free.nodes()}, [&](int i) {
        if (alone_[0].holds({level, i})) found.push_back({level, i});
      });
      sort_by_free(found);
      return found;
    }
    for (int index = 0; index < std::ssize(domains.of(level)); ++index) {
      const NodeRange nodes = at(domains.of(level), index);
      const DomainRef domain{level, index};
      if (level != TopologyLevel::kServer) {
        const auto below = static_cast<TopologyLevel>(static_cast<int>(level) - 1);
        if (domains.domain_at(below, nodes.begin) == domains.domain_at(below, nodes.end - 1))
          continue;
      }
      if (holds_kept(task_, domain) &&
          std::all_of(alone_.begin(), alone_.end(),
                      [domain](const RoleShares& role) { return role.holds(domain); }) &&
          std::all_of(pairs_.begin(), pairs_.end(),
                      [domain](const PairShares& pair) { return pair.may_hold(domain); }))
        found.push_back(domain);
    }
    sort_by_free(found);
    return found;
  }

  // Rising; of equal ones the first comes first.
  void sort_by_free(std::vector<DomainRef>& found) const {
    std::vector<std::pair<long long, int>> by_free;
    by_free.reserve(found.size());
    for (const DomainRef domain : found)
      by_free.emplace_back(task_.free.free_milli(domain.level, domain.index), domain.index);
    std::sort(by_free.begin(), by_free.end());
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i].index = by_free[i].second;
  }

  // Whether a node costs the gang what one before it costs, which goes before then: what
  // cost_of_shares() looks at is equal. The gang has one role and keeps nothing.
  bool is_like_one_before(DomainRef server) {
    const FreeCapacity& free = task_.free;
    const ClusterDomains& domains = free.domains();
    const ClusterNode& node = free.node(at(domains.order, server.index));
    const auto is_wholly_free = [&](TopologyLevel level) {
      return free.is_wholly_free(level, domains.domain_at(level, server.index));
    };
    const NodeTerms terms{free.free_milli(TopologyLevel::kServer, server.index), node.devices,
                          free.failures_per_day(at(domains.order, server.index)),
                          is_wholly_free(TopologyLevel::kLeaf),
                          is_wholly_free(TopologyLevel::kGroup)};
    if (std::find(tried_nodes_.begin(), tried_nodes_.end(), terms) != tried_nodes_.end())
      return true;
    tried_nodes_.push_back(terms);
    return false;
  }

  void try_orders(const std::vector<DomainRef>& domains) {
    int placed = 0;
    for (const DomainRef domain : domains) {
      if (domain.level == TopologyLevel::kServer && alone_.size() == 1 && task_.kept.empty() &&
          is_like_one_before(domain))
        continue;
      bool is_placed = false;
      for (const FillOrder order : orders_) {
        auto shares = alone_.size() == 1 ? share_out_one_role(domain, order)
                                         : share_out_by_role(task_, device_type_, domain, order);
        if (!shares) break;
        is_placed |= consider(std::move(*shares));
        if (domain.level == TopologyLevel::kServer) break;
      }
      placed += is_placed ? 1 : 0;
      if (alone_.size() > 1 && placed == kDomainsTried) return;
    }
  }

  std::optional<GangShares> share_out_one_role(DomainRef domain, FillOrder order) const {
    auto shares = alone_[0].share_out(domain, order);
    if (!shares) return std::nullopt;
    return GangShares{std::move(*shares)};
  }

  // Whether the shares fit; keeps the cheapest ones.
  bool consider(GangShares shares) {
    if (alone_.size() > 1 && !has_devices(shares)) return false;
    Candidate candidate;
    candidate.cost = cost_of_shares(task_, shares);
    candidate.is_beyond_preferred = candidate.cost.level > task_.job.topology.preferred;
    if (best_ && !candidate.is_better_than(*best_)) return true;
    candidate.shares = std::move(shares);
    best_ = std::move(candidate);
    return true;
  }

  bool has_devices(const GangShares& shares) const;

  // Free thousandths, devices, failures a day, whether its leaf and its group are wholly free.
  using NodeTerms = std::tuple<long long, int, double, bool, bool>;

  const GangTask& task_;
  int device_type_;
  std::vector<RoleShares> alone_;  // each role as if it were the only one
  std::vector<PairShares> pairs_;  // of the roles that are not sliced
  std::vector<FillOrder> orders_;
  std::vector<NodeTerms> tried_nodes_;
  int lower_states_ = kLowerLevelStates;
  std::optional<Candidate> best_;
};

// Devices for the shares of all roles of each node; nothing where some do not fit together.
std::optional<std::vector<ReplicaPlacement>> devices_of_shares(const GangTask& task,
                                                               const GangShares& shares) {
  std::map<int, std::vector<int>> counts_at;  // by role
  for (int role = 0; role < std::ssize(shares); ++role)
    for (const NodeShare& share : at(shares, role)) {
      std::vector<int>& counts = counts_at[share.position];
      counts.resize(shares.size());
      at(counts, role) = share.replicas;
    }
  std::vector<ReplicaPlacement> replicas;
  for (const auto& [position, counts] : counts_at) {
    const int node = at(task.free.domains().order, position);
    const auto placements =
        fit_on_node(task.free.node(node), task.free.free(node), task.job.roles, counts);
    if (!placements) return std::nullopt;
    for (ReplicaPlacement placement : *placements) {
      placement.node = node;
      replicas.push_back(placement);
    }
  }
  return replicas;
}

bool GangSearch::has_devices(const GangShares& shares) const {
  return devices_of_shares(task_, shares).has_value();
}

}  // namespace

void order_gang(const ClusterDomains& domains, const JobRequest& job,
                std::vector<ReplicaPlacement>& replicas) {
  std::stable_sort(replicas.begin(), replicas.end(), [&](const auto& a, const auto& b) {
    return std::pair{a.role, at(domains.position, a.node)} <
           std::pair{b.role, at(domains.position, b.node)};
  });
  for (auto begin = replicas.begin(); begin != replicas.end();) {
    const Role& role = at(job.roles, begin->role);
    const auto end = std::find_if(begin, replicas.end(), [role_index = begin->role](const auto& r) {
      return r.role != role_index;
    });
    const auto domain = [&](const ReplicaPlacement& replica) {
      return domains.domain_at(role.subgroup_level, at(domains.position, replica.node));
    };
    for (auto first = begin; first != end;) {
      const auto last = std::find_if(
          first, end, [&](const auto& replica) { return domain(replica) != domain(*first); });
      const auto incomplete = (last - first) % role.subgroup_replicas;
      if (incomplete > 0) {
        std::rotate(last - incomplete, last, end);
        break;
      }
      first = last;
    }
    begin = end;
  }
}

std::optional<GangPlacement> place_gang(const FreeCapacity& free, const GangRequest& gang) {
  const JobRequest& job = gang.job;
  const GangTask task{free, job, gang.size, gang.weights, gang.kept};
  std::optional<Candidate> best;
  for (const int device_type : possible_device_types(task)) {
    auto candidate = GangSearch(task, device_type).best();
    if (!candidate || (best && !candidate->is_better_than(*best))) continue;
    best = std::move(candidate);
    if (!job.device_types.empty()) break;
  }
  if (!best) return std::nullopt;
  GangPlacement placement;
  placement.level = best->cost.level;
  placement.cost = best->cost.cost;
  placement.replicas = *devices_of_shares(task, best->shares);
  order_gang(free.domains(), job, placement.replicas);
  return placement;
}

}  // namespace regatta::sched
