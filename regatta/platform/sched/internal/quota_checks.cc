#include "regatta/platform/sched/internal/quota_checks.h"

#include <map>
#include <numeric>
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

// "8 devices of type h100"
std::string devices_text(std::string_view type, long long amount) {
  return device_type_text(amount_text(Resource::kCompute, amount), type);
}

Status check_device_types(const QuotaQueue& queue) {
  std::map<std::string_view, int> names;
  for (const DeviceTypeQuota& quota : queue.device_types) {
    if (quota.type.empty())
      return quota_error(queue.name, "a device type of its quota has no name; give it one");
    if (!names.emplace(quota.type, 0).second)
      return quota_error(queue.name, fmt::format("its quota names device type {} twice; leave one "
                                                 "out",
                                                 quota.type));
    for (const long long amount :
         {quota.guaranteed, quota.limit.value_or(0), quota.user_limit.value_or(0)}) {
      if (amount >= 0 && amount <= kQuotaAmountMax) continue;
      return quota_error(queue.name, fmt::format("its quota of {} must be from 0 to {}",
                                                 devices_text(quota.type, amount),
                                                 amount_text(Resource::kCompute, kQuotaAmountMax)));
    }
    if (quota.limit && *quota.limit < quota.guaranteed) {
      return quota_error(queue.name,
                         fmt::format("it is guaranteed {}, but its limit is {}; raise the limit or "
                                     "guarantee less",
                                     devices_text(quota.type, quota.guaranteed),
                                     amount_text(Resource::kCompute, *quota.limit)));
    }
  }
  return {};
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
  return check_device_types(queue);
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

Status check_device_type(const QuotaQueue& queue, std::string_view type, long long children) {
  for (const DeviceTypeQuota& quota : queue.device_types) {
    if (quota.type != type) continue;
    if (quota.guaranteed > 0 && children > quota.guaranteed) {
      return quota_error(
          queue.name, fmt::format("the queues below it are guaranteed {}, but it is guaranteed {}; "
                                  "raise its guarantee or lower theirs",
                                  devices_text(type, children),
                                  amount_text(Resource::kCompute, quota.guaranteed)));
    }
    if (quota.limit && children > *quota.limit) {
      return quota_error(
          queue.name,
          fmt::format("the queues below it are guaranteed {}, but its limit is {}; "
                      "raise its limit or lower their guarantees",
                      devices_text(type, children), amount_text(Resource::kCompute, *quota.limit)));
    }
  }
  if (children <= kQuotaAmountMax) return {};
  return quota_error(
      queue.name,
      fmt::format("the queues below it are guaranteed {}, above {}; lower them",
                  devices_text(type, children), amount_text(Resource::kCompute, kQuotaAmountMax)));
}

Status settle_compute(QuotaQueue& queue, const ResourceAmounts& sum) {
  const auto total = [](const ResourceAmounts& amounts) {
    return std::accumulate(amounts.of_type.begin(), amounts.of_type.end(), 0LL);
  };
  const long long by_type = total(queue.guaranteed);
  if (by_type == 0) return {};
  // The children's guarantees of devices of any type come on top of those by type.
  const long long needed = by_type + sum[Resource::kCompute] - total(sum);
  long long& guaranteed = queue.guaranteed[Resource::kCompute];
  if (guaranteed == 0) guaranteed = needed;
  if (guaranteed < needed) {
    return quota_error(queue.name,
                       fmt::format("it is guaranteed {}, but {} by device type and for the queues "
                                   "below it; raise its guarantee or lower those",
                                   amount_text(Resource::kCompute, guaranteed),
                                   amount_text(Resource::kCompute, needed)));
  }
  const std::optional<long long> limit = queue.limit[0];
  if (!limit || guaranteed <= *limit) return {};
  return quota_error(queue.name, fmt::format("it is guaranteed {} by device type, but its limit is "
                                             "{}; raise the limit or guarantee less",
                                             amount_text(Resource::kCompute, guaranteed),
                                             amount_text(Resource::kCompute, *limit)));
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
