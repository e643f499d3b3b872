#include "regatta/platform/sched/internal/role_shares.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/domain_filler.h"

namespace regatta::sched {
namespace {

// The counts of a subgroups' domain that leave `remainder` replicas of an incomplete subgroup: the
// least and the most between what it keeps and what it can hold; `least` > `most` where none.
struct CountRange {
  int least = 0;
  int most = 0;
};

CountRange counts_with_remainder(int kept, int holds, int size, int remainder) {
  const int below = holds - remainder;
  const int above = std::max(0, kept - remainder);
  return {(above + size - 1) / size * size + remainder,
          below < 0 ? -1 : below / size * size + remainder};
}

std::vector<int> prefix_sums(const std::vector<int>& values) {
  std::vector<int> before(values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    before[i + 1] = before[i] + values[i];
  return before;
}

}  // namespace

RoleShares::RoleShares(Request request)
    : request_(std::move(request)), room_before_(prefix_sums(request_.room)) {
  if (!request_.kept.empty()) kept_before_ = prefix_sums(request_.kept);
}

int RoleShares::room_of(NodeRange range) const {
  const int begin = request_.range.begin;
  return at(room_before_, range.end - begin) - at(room_before_, range.begin - begin);
}

int RoleShares::kept_of(NodeRange range) const {
  if (kept_before_.empty()) return 0;
  const int begin = request_.range.begin;
  return at(kept_before_, range.end - begin) - at(kept_before_, range.begin - begin);
}

bool RoleShares::has_subgroups(DomainRef domain) const {
  return request_.role.subgroup_replicas > 1 && request_.role.subgroup_level < domain.level;
}

// A domain may have, with what it keeps, a multiple of the subgroup's size; one of them has the
// incomplete subgroup in addition.
std::optional<RoleShares::SubgroupPlan> RoleShares::plan_subgroups(DomainRef domain) const {
  const Role& role = request_.role;
  const int size = role.subgroup_replicas;
  const int remainder = request_.replicas % size;
  const NodeRange nodes = at(request_.free.domains().of(domain.level), domain.index);
  SubgroupPlan plan;
  plan.first = request_.free.domains().domain_at(role.subgroup_level, nodes.begin);
  const int last = request_.free.domains().domain_at(role.subgroup_level, nodes.end - 1);
  std::vector<CountRange> whole;
  std::vector<int> kept;
  long long least = 0;
  long long most = 0;
  int invalid = 0;  // domains that must have the incomplete subgroup
  const auto is_valid = [](const CountRange& range) { return range.least <= range.most; };
  for (int i = plan.first; i <= last; ++i) {
    const NodeRange range = at(request_.free.domains().of(role.subgroup_level), i);
    kept.push_back(kept_of(range));
    whole.push_back(counts_with_remainder(kept.back(), kept.back() + room_of(range), size, 0));
    invalid += is_valid(whole.back()) ? 0 : 1;
    if (!is_valid(whole.back())) continue;
    least += whole.back().least;
    most += whole.back().most;
  }
  int chosen = -1;
  std::tuple<int, int> chosen_waste;
  for (int i = 0; i < std::ssize(whole) && remainder > 0; ++i) {
    const NodeRange range = at(request_.free.domains().of(role.subgroup_level), plan.first + i);
    const CountRange with =
        counts_with_remainder(at(kept, i), at(kept, i) + room_of(range), size, remainder);
    const CountRange& without = at(whole, i);
    if (!is_valid(with) || invalid > (is_valid(without) ? 0 : 1)) continue;
    const int without_least = is_valid(without) ? without.least : 0;
    const int without_most = is_valid(without) ? without.most : 0;
    if (least - without_least + with.least > request_.replicas ||
        most - without_most + with.most < request_.replicas)
      continue;
    // Least lost of whole subgroups elsewhere, then the tightest room.
    const std::tuple waste{without_most - with.most, room_of(range)};
    if (chosen >= 0 && chosen_waste <= waste) continue;
    chosen = i;
    chosen_waste = waste;
  }
  if (remainder > 0 ? chosen < 0
                    : invalid > 0 || least > request_.replicas || most < request_.replicas)
    return std::nullopt;
  if (chosen >= 0) {
    const NodeRange range =
        at(request_.free.domains().of(role.subgroup_level), plan.first + chosen);
    at(whole, chosen) =
        counts_with_remainder(at(kept, chosen), at(kept, chosen) + room_of(range), size, remainder);
  }
  plan.units_needed = request_.replicas;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    plan.lowest.push_back(whole[i].least - kept[i]);
    plan.units.push_back((whole[i].most - whole[i].least) / size);
    plan.units_needed -= whole[i].least;
  }
  plan.units_needed /= size;
  return plan;
}

bool RoleShares::holds(DomainRef domain) const {
  if (has_subgroups(domain)) return plan_subgroups(domain).has_value();
  const NodeRange nodes = at(request_.free.domains().of(domain.level), domain.index);
  const int kept = kept_of(nodes);
  return kept <= request_.replicas && kept + room_of(nodes) >= request_.replicas;
}

std::optional<std::vector<NodeShare>> RoleShares::share_out(DomainRef domain,
                                                            FillOrder order) const {
  const NodeRange nodes = at(request_.free.domains().of(domain.level), domain.index);
  if (domain.level == TopologyLevel::kServer) {
    if (!holds(domain)) return std::nullopt;
    const int more = request_.replicas - kept_of(nodes);
    return more > 0 ? std::vector<NodeShare>{{nodes.begin, more}} : std::vector<NodeShare>{};
  }
  const int begin = request_.range.begin;
  const long long milli = 1LL * request_.role.devices * request_.role.device_milli;
  DomainFiller replicas(request_.free, order,
                        {TopologyLevel::kServer, nodes.begin,
                         std::vector<int>(request_.room.begin() + (nodes.begin - begin),
                                          request_.room.begin() + (nodes.end - begin)),
                         milli});
  if (has_subgroups(domain)) {
    const auto plan = plan_subgroups(domain);
    if (!plan) return std::nullopt;
    const TopologyLevel level = request_.role.subgroup_level;
    DomainFiller subgroups(
        request_.free, order,
        {level, plan->first, plan->units, milli * request_.role.subgroup_replicas});
    subgroups.fill(domain, plan->units_needed);
    for (int i = 0; i < std::ssize(plan->units); ++i)
      replicas.fill(
          {level, plan->first + i},
          at(plan->lowest, i) + at(subgroups.amounts(), i) * request_.role.subgroup_replicas);
  } else {
    if (!holds(domain)) return std::nullopt;
    replicas.fill(domain, request_.replicas - kept_of(nodes));
  }
  std::vector<NodeShare> shares;
  for (int i = 0; i < std::ssize(replicas.amounts()); ++i)
    if (at(replicas.amounts(), i) > 0)
      shares.push_back({nodes.begin + i, at(replicas.amounts(), i)});
  return shares;
}

}  // namespace regatta::sched
