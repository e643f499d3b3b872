#include "regatta/platform/sched/internal/reclaim_rule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

std::vector<ResourceAmounts> guarantees_of(const QuotaTree& tree) {
  std::vector<ResourceAmounts> guaranteed;
  for (int queue = 0; queue < tree.size(); ++queue)
    guaranteed.push_back(tree.queue(queue).guaranteed);
  return guaranteed;
}

}  // namespace

ReclaimRule::ReclaimRule(const QuotaTree& tree, std::vector<ResourceAmounts> entitled)
    : tree_(&tree), entitled_(std::move(entitled)) {
  is_any_ = std::any_of(entitled_.begin(), entitled_.end(), [](const ResourceAmounts& amounts) {
    return amounts != ResourceAmounts{};
  });
}

ReclaimRule::ReclaimRule(const QuotaTree& tree) : ReclaimRule(tree, guarantees_of(tree)) {}

// The compute that no entitlement by device type covers.
long long ReclaimRule::beyond_types(int queue, const ResourceAmounts& used) const {
  long long compute = used[Resource::kCompute];
  const auto& entitled = at(entitled_, queue).of_type;
  for (std::size_t type = 0; type < entitled.size(); ++type)
    compute -= std::min(used.of_type[type], entitled[type]);
  return compute;
}

double ReclaimRule::fill(int queue, const ResourceAmounts& used) const {
  ResourceAmounts entitled = at(entitled_, queue);
  const bool has_types = entitled.of_type != ResourceAmounts{}.of_type;
  double fill = 0;
  bool is_entitled = false;
  bool is_used = false;
  for (std::size_t r = 0; r < used.of.size(); ++r) {
    const bool is_compute = r == static_cast<std::size_t>(Resource::kCompute);
    long long amount = used.of[r];
    if (is_compute && has_types) {
      amount = beyond_types(queue, used);
      entitled.of[r] = beyond_types(queue, entitled);
      if (entitled.of[r] <= 0 && amount > 0) return std::numeric_limits<double>::infinity();
    }
    is_used |= amount > 0;
    if (entitled.of[r] <= 0) continue;
    is_entitled = true;
    fill = std::max(fill, static_cast<double>(amount) / static_cast<double>(entitled.of[r]));
  }
  return is_entitled || has_types || !is_used ? fill : std::numeric_limits<double>::infinity();
}

bool ReclaimRule::is_below(int queue, const ResourceAmounts& used) const {
  const ResourceAmounts& entitled = at(entitled_, queue);
  for (std::size_t type = 0; type < entitled.of_type.size(); ++type)
    if (used.of_type[type] < entitled.of_type[type]) return true;
  return is_entitled_beyond_types(queue) && fill(queue, used) < 1;
}

// Whether entitlements by type cover all devices of `more`.
bool ReclaimRule::is_covered(int queue, const ResourceAmounts& used,
                             const ResourceAmounts& more) const {
  if (more[Resource::kCompute] <= 0) return false;
  ResourceAmounts with = used;
  with += more;
  return beyond_types(queue, with) <= beyond_types(queue, used);
}

bool ReclaimRule::is_above(int queue, const ResourceAmounts& used,
                           const ResourceAmounts& victim) const {
  const auto& entitled = at(entitled_, queue).of_type;
  for (std::size_t type = 0; type < entitled.size(); ++type)
    if (victim.of_type[type] > 0 && entitled[type] > 0 && used.of_type[type] <= entitled[type])
      return false;
  return fill(queue, used) > 1;
}

bool ReclaimRule::falls_below(int queue, const ResourceAmounts& used,
                              const ResourceAmounts& victim) const {
  ResourceAmounts without = used;
  without -= victim;
  const auto& entitled = at(entitled_, queue).of_type;
  for (std::size_t type = 0; type < entitled.size(); ++type)
    if (victim.of_type[type] > 0 && without.of_type[type] < entitled[type]) return true;
  return is_entitled_beyond_types(queue) && fill(queue, without) < 1;
}

bool ReclaimRule::is_entitled_beyond_types(int queue) const {
  ResourceAmounts entitled = at(entitled_, queue);
  entitled[Resource::kCompute] = beyond_types(queue, entitled);
  entitled.of_type = {};
  return entitled != ResourceAmounts{};
}

int ReclaimRule::entitled_distance(const QuotaUsage& usage, const QuotaClaim& claim,
                                   int above) const {
  int distance = 0;
  for (int queue = claim.leaf; queue != above; queue = tree_->parent(queue), ++distance) {
    const ResourceAmounts& used = usage.of_queue(queue);
    if (is_covered(queue, used, claim.amounts)) return distance;
    ResourceAmounts with_claim = used;
    with_claim += claim.amounts;
    const bool is_within = fill(queue, with_claim) <= 1;
    if (is_within && is_entitled_beyond_types(queue) && fill(queue, used) < 1) return distance;
    if (!is_within && claim.was_evicted && at(entitled_, queue) != ResourceAmounts{}) return -1;
  }
  return -1;
}

// The lowest queue that holds both leaves; -1: the top.
int ReclaimRule::common_queue(const QuotaClaim& claim, const QuotaClaim& victim) const {
  int queue = claim.leaf;
  while (queue >= 0 && (victim.leaf < queue || victim.leaf >= tree_->subtree_end(queue)))
    queue = tree_->parent(queue);
  return queue;
}

bool ReclaimRule::protects(const QuotaUsage& usage, const QuotaClaim& claim,
                           const QuotaClaim& victim) const {
  if (!is_any_ || claim.leaf == victim.leaf) return false;
  const int above = common_queue(claim, victim);
  bool is_within = false;
  for (int queue = victim.leaf; queue != above; queue = tree_->parent(queue))
    is_within |= at(entitled_, queue) != ResourceAmounts{} &&
                 !is_above(queue, usage.of_queue(queue), victim.amounts);
  return is_within && !is_entitled(usage, claim, above);
}

bool ReclaimRule::allows(const QuotaUsage& usage, const QuotaClaim& claim, const QuotaClaim& victim,
                         ReclaimLoss loss) const {
  if (claim.leaf == victim.leaf) return false;
  const int above = common_queue(claim, victim);
  if (!is_entitled(usage, claim, above)) return false;

  for (int queue = victim.leaf; queue != above; queue = tree_->parent(queue)) {
    const ResourceAmounts& used = usage.of_queue(queue);
    if (!is_above(queue, used, victim.amounts)) return false;
    if (loss == ReclaimLoss::kSurplus && falls_below(queue, used, victim.amounts)) return false;
  }
  return true;
}

}  // namespace regatta::sched
