// sched/internal/quota_checks.h: what makes a list of queues a valid tree. Errors are of
// kInvalidInput.
#pragma once

#include <string_view>
#include <vector>

#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// All that can be said before the tree is known: names, parents, amounts, weights, limits.
Status check_queues(const std::vector<QuotaQueue>& queues);

// `children`: what the children of the queue are guaranteed together of this type.
Status check_device_type(const QuotaQueue& queue, std::string_view type, long long children);

// Guarantees by device type are part of the guaranteed devices, which are their sum where the queue
// does not say them. `sum` as below.
Status settle_compute(QuotaQueue& queue, const ResourceAmounts& sum);

// `sum`: what the children of `parent` are guaranteed together.
Status check_children(const QuotaQueue& parent, const ResourceAmounts& sum);

// Names a circle among the queues that are not reached from the top.
Error circle_error(const std::vector<QuotaQueue>& queues, const std::vector<bool>& is_reached);

}  // namespace regatta::sched
