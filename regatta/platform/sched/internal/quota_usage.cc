#include "regatta/platform/sched/internal/quota_usage.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

using Limits = std::array<std::optional<long long>, kResources>;
using TypeLimits = std::array<std::optional<long long>, kQuotaDeviceTypesMax>;

std::optional<QuotaLimit> passed(const Limits& limits, const ResourceAmounts& used,
                                 const ResourceAmounts& amounts) {
  for (int r = 0; r < kResources; ++r) {
    const std::optional<long long>& limit = at(limits, r);
    if (!limit || at(amounts.of, r) == 0 || at(used.of, r) + at(amounts.of, r) <= *limit) continue;
    return QuotaLimit{
        .resource = static_cast<Resource>(r), .used = at(used.of, r), .limit = *limit};
  }
  return std::nullopt;
}

std::optional<QuotaLimit> passed(const TypeLimits& limits, const ResourceAmounts& used,
                                 const ResourceAmounts& amounts) {
  for (int type = 0; type < kQuotaDeviceTypesMax; ++type) {
    const std::optional<long long>& limit = at(limits, type);
    const long long added = at(amounts.of_type, type);
    if (!limit || added == 0 || at(used.of_type, type) + added <= *limit) continue;
    return QuotaLimit{.device_type = type, .used = at(used.of_type, type), .limit = *limit};
  }
  return std::nullopt;
}

bool is_any(const auto& limits) {
  return std::any_of(limits.begin(), limits.end(),
                     [](const auto& limit) { return limit.has_value(); });
}

}  // namespace

QuotaUsage::QuotaUsage(const QuotaTree& tree)
    : tree_(&tree), used_(as_index(tree.size())), users_(as_index(tree.size())) {
  for (int queue = 0; queue < tree.size(); ++queue) {
    limits_users_.push_back(
        is_any(tree.queue(queue).user_limit) ||
        (!tree.device_types().empty() && is_any(tree.device_type_limits(queue).of_user)));
  }
}

int QuotaUsage::account(int leaf, std::string_view user) {
  const int number = user_numbers_.find_or_add(
      std::hash<std::string_view>{}(user), static_cast<int>(user_names_.size()),
      [&](int each) { return at(user_names_, each) == user; });
  if (as_index(number) == user_names_.size()) user_names_.emplace_back(user);
  const int added = static_cast<int>(accounts_.size());
  const int account =
      account_numbers_.find_or_add(as_index(leaf) << 32U ^ as_index(number), added, [&](int each) {
        return at(accounts_, each).leaf == leaf && at(accounts_, each).user == number;
      });
  if (account != added) return account;
  accounts_.push_back({.leaf = leaf, .user = number});
  for (int queue = leaf; queue >= 0; queue = tree_->parent(queue)) {
    if (!at(limits_users_, queue)) continue;
    UserSlots& slots = at(users_, queue);
    if (as_index(number) >= slots.slot_of_user.size())
      slots.slot_of_user.resize(as_index(number) + 1, -1);
    int& slot = at(slots.slot_of_user, number);
    if (slot >= 0) continue;
    slot = static_cast<int>(slots.used.size());
    slots.used.emplace_back();
  }
  return account;
}

int QuotaUsage::leaf_of(int account) const {
  return at(accounts_, account).leaf;
}

int QuotaUsage::user_slot(int queue, int user) const {
  return at(at(users_, queue).slot_of_user, user);
}

void QuotaUsage::add(int account, const ResourceAmounts& amounts) {
  const Account& added = at(accounts_, account);
  for (int queue = added.leaf; queue >= 0; queue = tree_->parent(queue)) {
    at(used_, queue) += amounts;
    if (at(limits_users_, queue))
      at(at(users_, queue).used, user_slot(queue, added.user)) += amounts;
  }
}

void QuotaUsage::remove(int account, const ResourceAmounts& amounts) {
  ResourceAmounts negative;
  negative -= amounts;
  add(account, negative);
}

const ResourceAmounts& QuotaUsage::of_queue(int queue) const {
  return at(used_, queue);
}

std::optional<QuotaLimit> QuotaUsage::limit_passed(int account,
                                                   const ResourceAmounts& amounts) const {
  const Account& asked = at(accounts_, account);
  for (int queue = asked.leaf; queue >= 0; queue = tree_->parent(queue)) {
    const QuotaQueue& quotas = tree_->queue(queue);
    const bool has_types = !tree_->device_types().empty();
    std::optional<QuotaLimit> limit = passed(quotas.limit, at(used_, queue), amounts);
    if (!limit && has_types)
      limit = passed(tree_->device_type_limits(queue).of_queue, at(used_, queue), amounts);
    if (!limit && at(limits_users_, queue)) {
      const ResourceAmounts& used = at(at(users_, queue).used, user_slot(queue, asked.user));
      limit = passed(quotas.user_limit, used, amounts);
      if (!limit && has_types)
        limit = passed(tree_->device_type_limits(queue).of_user, used, amounts);
      if (limit) limit->is_of_user = true;
    }
    if (!limit) continue;
    limit->queue = queue;
    return limit;
  }
  return std::nullopt;
}

std::string limit_text(const QuotaTree& tree, const QuotaLimit& limit, std::string_view user) {
  const std::string& queue = tree.queue(limit.queue).name;
  std::string most = amount_text(limit.resource, limit.limit);
  if (limit.device_type >= 0)
    most = device_type_text(most, at(tree.device_types(), limit.device_type));
  const bool is_reached = limit.used >= limit.limit;
  const std::string used = amount_text(limit.resource, limit.used);
  if (limit.is_of_user) {
    return is_reached
               ? fmt::format("user {} is at the limit of {} in queue {}", user, most, queue)
               : fmt::format("user {} has {} of at most {} in queue {}", user, used, most, queue);
  }
  return is_reached ? fmt::format("queue {} is at its limit of {}", queue, most)
                    : fmt::format("queue {} has {} of at most {}", queue, used, most);
}

}  // namespace regatta::sched
