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

double ReclaimRule::fill(int queue, const ResourceAmounts& used) const {
  const ResourceAmounts& entitled = at(entitled_, queue);
  double fill = 0;
  bool is_entitled = false;
  bool is_used = false;
  for (std::size_t r = 0; r < used.of.size(); ++r) {
    is_used |= used.of[r] > 0;
    if (entitled.of[r] <= 0) continue;
    is_entitled = true;
    fill = std::max(fill, static_cast<double>(used.of[r]) / static_cast<double>(entitled.of[r]));
  }
  return is_entitled || !is_used ? fill : std::numeric_limits<double>::infinity();
}

bool ReclaimRule::is_entitled(const QuotaUsage& usage, const QuotaClaim& claim, int above) const {
  for (int queue = claim.leaf; queue != above; queue = tree_->parent(queue)) {
    ResourceAmounts with_claim = usage.of_queue(queue);
    with_claim += claim.amounts;
    const bool is_within = fill(queue, with_claim) <= 1;
    if (is_within && fill(queue, usage.of_queue(queue)) < 1) return true;
    if (!is_within && claim.was_evicted && at(entitled_, queue) != ResourceAmounts{}) return false;
  }
  return false;
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
    is_within |=
        fill(queue, usage.of_queue(queue)) <= 1 && at(entitled_, queue) != ResourceAmounts{};
  return is_within && !is_entitled(usage, claim, above);
}

bool ReclaimRule::allows(const QuotaUsage& usage, const QuotaClaim& claim, const QuotaClaim& victim,
                         ReclaimLoss loss) const {
  if (claim.leaf == victim.leaf) return false;
  const int above = common_queue(claim, victim);
  if (!is_entitled(usage, claim, above)) return false;

  for (int queue = victim.leaf; queue != above; queue = tree_->parent(queue)) {
    const ResourceAmounts& used = usage.of_queue(queue);
    if (fill(queue, used) <= 1) return false;
    if (loss == ReclaimLoss::kWholeJob) continue;
    ResourceAmounts without = used;
    without -= victim.amounts;
    const bool keeps_all =
        without == ResourceAmounts{} && at(entitled_, queue) == ResourceAmounts{};
    if (!keeps_all && fill(queue, without) < 1) return false;
  }
  return true;
}

}  // namespace regatta::sched
