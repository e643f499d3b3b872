#include "regatta/platform/sched/internal/quota_checks.h"

#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

Error quota_error(const std::string& queue, const std::string& message) {
  return {Code::kInvalidInput, fmt::format("queue {}: {}", queue, message)};
}

Status check_amount(const QuotaQueue& queue, std::string_view what, Resource resource,
                    long long amount) {
  if (amount >= 0 && amount <= kQuotaAmountMax) return {};
  return quota_error(queue.name, fmt::format("{} {}, but must be from 0 to {}", what,
                                             amount_text(resource, amount),
                                             amount_text(resource, kQuotaAmountMax)));
}

Status check_queue(const QuotaQueue& queue) {
  // The negation also refuses what is no number.
  if (!(queue.weight >= 1 / kQuotaWeightMax && queue.weight <= kQuotaWeightMax)) {
    return quota_error(queue.name, fmt::format("its weight is {}; give one above 0, from {} to {}",
                                               queue.weight, 1 / kQuotaWeightMax, kQuotaWeightMax));
  }
  for (int r = 0; r < kResources; ++r) {
    const auto resource = static_cast<Resource>(r);
    const long long guaranteed = queue.guaranteed[resource];
    const std::optional<long long> limit = at(queue.limit, r);
    const std::optional<long long> user_limit = at(queue.user_limit, r);
    REGATTA_TRY_DO(check_amount(queue, "it is guaranteed", resource, guaranteed));
    REGATTA_TRY_DO(check_amount(queue, "its limit is", resource, limit.value_or(0)));
    REGATTA_TRY_DO(check_amount(queue, "its limit of a user is", resource, user_limit.value_or(0)));
    if (limit && *limit < guaranteed) {
      return quota_error(
          queue.name,
          fmt::format("it is guaranteed {}, but its limit is {}; raise the limit or "
                      "guarantee less",
                      amount_text(resource, guaranteed), amount_text(resource, *limit)));
    }
  }
  return {};
}

}  // namespace

Status check_queues(const std::vector<QuotaQueue>& queues) {
  if (queues.size() > kQuotaQueuesMax) {
    return Error{Code::kInvalidInput,
                 fmt::format("queues: there are {}, but at most {} are possible; merge some",
                             queues.size(), kQuotaQueuesMax)};
  }
  std::map<std::string_view, int> names;
  for (const QuotaQueue& queue : queues) {
    if (queue.name.empty())
      return Error{Code::kInvalidInput, "queues: a queue has no name; give it one"};
    if (!names.emplace(queue.name, 0).second)
      return quota_error(queue.name, "it is there twice; give each queue a name of its own");
  }
  for (const QuotaQueue& queue : queues) {
    if (!queue.parent.empty() && !names.contains(queue.parent)) {
      return quota_error(queue.name, fmt::format("its parent {} does not exist; add that queue or "
                                                 "leave the parent out",
                                                 queue.parent));
    }
    REGATTA_TRY_DO(check_queue(queue));
  }
  return {};
}

Status check_children(const QuotaQueue& parent, const ResourceAmounts& sum) {
  for (int r = 0; r < kResources; ++r) {
    const auto resource = static_cast<Resource>(r);
    const long long guaranteed = parent.guaranteed[resource];
    if (guaranteed > 0 && sum[resource] > guaranteed) {
      return quota_error(
          parent.name,
          fmt::format("the queues below it are guaranteed {}, but it is guaranteed "
                      "{}; raise its guarantee or lower theirs",
                      amount_text(resource, sum[resource]), amount_text(resource, guaranteed)));
    }
    const std::optional<long long> limit = at(parent.limit, r);
    if (limit && sum[resource] > *limit) {
      return quota_error(
          parent.name,
          fmt::format("the queues below it are guaranteed {}, but its limit is {}; "
                      "raise its limit or lower their guarantees",
                      amount_text(resource, sum[resource]), amount_text(resource, *limit)));
    }
    if (sum[resource] > kQuotaAmountMax) {
      return quota_error(parent.name,
                         fmt::format("the queues below it are guaranteed {}, above {}; lower them",
                                     amount_text(resource, sum[resource]),
                                     amount_text(resource, kQuotaAmountMax)));
    }
  }
  return {};
}

Error circle_error(const std::vector<QuotaQueue>& queues, const std::vector<bool>& is_reached) {
  std::map<std::string_view, const QuotaQueue*> by_name;
  const QuotaQueue* queue = nullptr;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    by_name.emplace(queues[i].name, &queues[i]);
    if (!is_reached[i] && queue == nullptr) queue = &queues[i];
  }
  // After so many steps upwards the queue is in a circle; it is told from its first name on.
  for (std::size_t i = 0; i < queues.size(); ++i)
    queue = by_name.at(queue->parent);
  const QuotaQueue* first = queue;
  for (const QuotaQueue* above = by_name.at(queue->parent); above != queue;
       above = by_name.at(above->parent)) {
    if (above->name < first->name) first = above;
  }
  queue = first;
  std::string circle = queue->name;
  int named = 0;
  for (const QuotaQueue* above = by_name.at(queue->parent); above != queue;
       above = by_name.at(above->parent)) {
    if (++named <= 5) circle += " below " + above->name;
  }
  if (named > 5) circle += " and so on";
  return quota_error(queue->name,
                     fmt::format("it is its own ancestor ({} below {}); give one of them another "
                                 "parent, or none",
                                 circle, queue->name));
}

}  // namespace regatta::sched
