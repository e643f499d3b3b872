#include "regatta/platform/sched/internal/reclaim_rule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {

ReclaimRule::ReclaimRule(const QuotaTree& tree, std::vector<ResourceAmounts> entitled)
    : tree_(&tree), entitled_(std::move(entitled)) {}

ReclaimRule::ReclaimRule(const QuotaTree& tree) : tree_(&tree) {
  for (int queue = 0; queue < tree.size(); ++queue)
    entitled_.push_back(tree.queue(queue).guaranteed);
}

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

bool ReclaimRule::allows(const QuotaUsage& usage, const QuotaClaim& claim,
                         const QuotaClaim& victim) const {
  // The child, on the claimant's side, of the lowest queue that both are below.
  int claiming = claim.leaf;
  const auto holds_victim = [&](int queue) {
    return queue < 0 || (queue <= victim.leaf && victim.leaf < tree_->subtree_end(queue));
  };
  if (holds_victim(claiming)) return false;
  while (!holds_victim(tree_->parent(claiming)))
    claiming = tree_->parent(claiming);
  ResourceAmounts with_claim = usage.of_queue(claiming);
  with_claim += claim.amounts;
  if (fill(claiming, usage.of_queue(claiming)) >= 1 || fill(claiming, with_claim) > 1) return false;

  for (int queue = victim.leaf; queue != tree_->parent(claiming); queue = tree_->parent(queue)) {
    const ResourceAmounts& used = usage.of_queue(queue);
    ResourceAmounts without = used;
    without -= victim.amounts;
    if (fill(queue, used) <= 1) return false;
    const bool keeps_all =
        without == ResourceAmounts{} && at(entitled_, queue) == ResourceAmounts{};
    if (!keeps_all && fill(queue, without) < 1) return false;
  }
  return true;
}

}  // namespace regatta::sched
