#include "regatta/platform/sched/quota_tree.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/quota_checks.h"

namespace regatta::sched {

ResourceAmounts& ResourceAmounts::operator+=(const ResourceAmounts& other) {
  for (std::size_t i = 0; i < of.size(); ++i)
    of[i] += other.of[i];
  for (std::size_t i = 0; i < of_type.size(); ++i)
    of_type[i] += other.of_type[i];
  return *this;
}

ResourceAmounts& ResourceAmounts::operator-=(const ResourceAmounts& other) {
  for (std::size_t i = 0; i < of.size(); ++i)
    of[i] -= other.of[i];
  for (std::size_t i = 0; i < of_type.size(); ++i)
    of_type[i] -= other.of_type[i];
  return *this;
}

ResourceAmounts amounts_of(const JobRequest& job, std::span<const int> replicas,
                           int device_memory_mib) {
  ResourceAmounts amounts;
  for (std::size_t i = 0; i < job.roles.size(); ++i) {
    const Role& role = job.roles[i];
    const long long count = replicas[i];
    const long long devices = count * role.devices;
    amounts[Resource::kCompute] += devices * role.device_milli;
    amounts[Resource::kDeviceMemory] += devices * role.memory_taken(device_memory_mib);
    amounts[Resource::kCpu] += count * role.cpu_milli;
    amounts[Resource::kMemory] += count * role.memory_mib;
    amounts[Resource::kNic] += count * role.nic_milli;
  }
  return amounts;
}

std::string amount_text(Resource resource, long long amount) {
  const double thousandths = static_cast<double>(amount) / 1000;
  const char* plural = amount == 1000 ? "" : "s";
  switch (resource) {
    case Resource::kCompute:
      return fmt::format("{} device{}", thousandths, plural);
    case Resource::kDeviceMemory:
      return fmt::format("{} MiB of device memory", amount);
    case Resource::kCpu:
      return fmt::format("{} core{}", thousandths, plural);
    case Resource::kMemory:
      return fmt::format("{} MiB of memory", amount);
    case Resource::kNic:
      return fmt::format("{} NIC{}", thousandths, plural);
  }
  return {};
}

std::string device_type_text(std::string_view amount, std::string_view type) {
  return fmt::format("{} of type {}", amount, type);
}

double dominant_share(const ResourceAmounts& amounts, const ResourceAmounts& capacity) {
  double share = 0;
  for (std::size_t r = 0; r < amounts.of.size(); ++r) {
    if (amounts.of[r] <= 0) continue;
    if (capacity.of[r] <= 0) return std::numeric_limits<double>::infinity();
    share =
        std::max(share, static_cast<double>(amounts.of[r]) / static_cast<double>(capacity.of[r]));
  }
  return share;
}

QuotaTree::QuotaTree() : is_default_(true) {
  QuotaQueue queue;
  queue.name = "default";
  const bool is_ordered = order_queues({std::move(queue)}).has_value();
  REGATTA_CHECK(is_ordered);
}

Result<QuotaTree> QuotaTree::create(std::vector<QuotaQueue> queues) {
  QuotaTree tree;
  if (queues.empty()) return tree;
  REGATTA_TRY_DO(check_queues(queues));
  tree.is_default_ = false;
  REGATTA_TRY_DO(tree.order_queues(std::move(queues)));
  REGATTA_TRY_DO(tree.index_device_types());
  REGATTA_TRY_DO(tree.settle_guarantees());
  return tree;
}

// Depth-first; the queues that it does not reach from the top are in a circle.
Status QuotaTree::order_queues(std::vector<QuotaQueue> queues) {
  const int count = static_cast<int>(queues.size());
  std::map<std::string_view, int> given;
  for (int i = 0; i < count; ++i)
    given.emplace(at(queues, i).name, i);
  std::vector<std::vector<int>> below(queues.size() + 1);  // by given queue + 1
  for (int i = 0; i < count; ++i) {
    const std::string& parent = at(queues, i).parent;
    at(below, parent.empty() ? 0 : given.at(parent) + 1).push_back(i);
  }
  queues_.clear();
  parents_.clear();
  leaves_.clear();
  children_.assign(queues.size() + 1, {});
  subtree_ends_.assign(queues.size(), 0);
  heights_.assign(queues.size(), 0);
  struct Visit {
    int queue;   // as given
    int placed;  // as numbered here; -1: above the top
    std::size_t next_child;
  };
  std::vector<bool> is_visited(queues.size(), false);
  std::vector<Visit> path{{-1, -1, 0}};
  while (!path.empty()) {
    Visit& visit = path.back();
    const std::vector<int>& children = at(below, visit.queue + 1);
    if (visit.next_child < children.size()) {
      const int child = children[visit.next_child++];
      const int placed = static_cast<int>(queues_.size());
      at(is_visited, child) = true;
      at(children_, visit.placed + 1).push_back(placed);
      parents_.push_back(visit.placed);
      if (at(below, child + 1).empty()) leaves_.push_back(placed);
      queues_.push_back(at(queues, child));
      path.push_back({child, placed, 0});
      continue;
    }
    if (visit.placed >= 0) at(subtree_ends_, visit.placed) = static_cast<int>(queues_.size());
    path.pop_back();
  }
  if (queues_.size() < queues.size()) return circle_error(queues, is_visited);

  for (int queue = count - 1; queue >= 0; --queue) {
    for (const int child : children(queue))
      at(heights_, queue) = std::max(at(heights_, queue), at(heights_, child) + 1);
  }
  by_name_.resize(queues_.size());
  name_ranks_.resize(queues_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](int a, int b) { return at(queues_, a).name < at(queues_, b).name; });
  for (int rank = 0; rank < count; ++rank)
    at(name_ranks_, at(by_name_, rank)) = rank;
  return {};
}

Status QuotaTree::index_device_types() {
  for (const QuotaQueue& queue : queues_)
    for (const DeviceTypeQuota& quota : queue.device_types)
      device_types_.push_back(quota.type);
  std::sort(device_types_.begin(), device_types_.end());
  device_types_.erase(std::unique(device_types_.begin(), device_types_.end()), device_types_.end());
  if (device_types_.size() > kQuotaDeviceTypesMax) {
    return Error{Code::kInvalidInput,
                 fmt::format("queues: their quotas name {} device types, but at most {} are "
                             "possible; leave some out",
                             device_types_.size(), kQuotaDeviceTypesMax)};
  }
  if (device_types_.empty()) return {};
  device_type_limits_.resize(queues_.size());
  for (int queue = 0; queue < size(); ++queue) {
    for (const DeviceTypeQuota& quota : at(queues_, queue).device_types) {
      const int type = find_device_type(quota.type);
      at(at(queues_, queue).guaranteed.of_type, type) = quota.guaranteed;
      at(at(device_type_limits_, queue).of_queue, type) = quota.limit;
      at(at(device_type_limits_, queue).of_user, type) = quota.user_limit;
    }
  }
  return {};
}

// From the leaves up, so that a parent that says nothing has what its children are guaranteed.
Status QuotaTree::settle_guarantees() {
  for (int queue = size() - 1; queue >= 0; --queue) {
    ResourceAmounts sum;
    for (const int child : children(queue))
      sum += at(queues_, child).guaranteed;
    QuotaQueue& settled = at(queues_, queue);
    for (std::size_t type = 0; type < device_types_.size(); ++type) {
      REGATTA_TRY_DO(check_device_type(settled, device_types_[type], sum.of_type[type]));
      long long& guaranteed = settled.guaranteed.of_type[type];
      if (guaranteed == 0) guaranteed = sum.of_type[type];
    }
    REGATTA_TRY_DO(settle_compute(settled, sum));
    REGATTA_TRY_DO(check_children(settled, sum));
    for (std::size_t r = 0; r < sum.of.size(); ++r)
      if (settled.guaranteed.of[r] == 0) settled.guaranteed.of[r] = sum.of[r];
  }
  return {};
}

const QuotaQueue& QuotaTree::queue(int queue) const {
  return at(queues_, queue);
}

int QuotaTree::parent(int queue) const {
  return at(parents_, queue);
}

std::span<const int> QuotaTree::children(int queue) const {
  return at(children_, queue + 1);
}

int QuotaTree::subtree_end(int queue) const {
  return at(subtree_ends_, queue);
}

int QuotaTree::height(int queue) const {
  return at(heights_, queue);
}

int QuotaTree::find_device_type(std::string_view name) const {
  const auto found = std::lower_bound(device_types_.begin(), device_types_.end(), name);
  if (found == device_types_.end() || *found != name) return -1;
  return static_cast<int>(found - device_types_.begin());
}

const DeviceTypeLimits& QuotaTree::device_type_limits(int queue) const {
  return at(device_type_limits_, queue);
}

int QuotaTree::name_rank(int queue) const {
  return at(name_ranks_, queue);
}

Result<int> QuotaTree::find_leaf(std::string_view name) const {
  if (is_default_ && name.empty()) return 0;
  if (name.empty())
    return Error{Code::kNotFound, fmt::format("queue: it is missing; name one like {}",
                                              queue(leaves_.front()).name)};
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](int queue, std::string_view n) { return at(queues_, queue).name < n; });
  if (found == by_name_.end() || at(queues_, *found).name != name)
    return Error{Code::kNotFound, fmt::format("queue '{}': there is no such queue; use one like {}",
                                              name, queue(leaves_.front()).name)};
  if (!is_leaf(*found)) {
    return Error{Code::kNotFound,
                 fmt::format("queue {}: it has queues below it, and jobs wait in one of those, "
                             "like {}",
                             name, queue(children(*found).front()).name)};
  }
  return *found;
}

}  // namespace regatta::sched
