#include "regatta/platform/sched/internal/blocking_room.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/node_amounts.h"

namespace regatta::sched {

std::vector<double> median_ends(const ClusterSnapshot& snapshot) {
  std::vector<double> ends;
  ends.reserve(snapshot.running.size());
  for (const RunningJob& job : snapshot.running)
    ends.push_back(is_degraded(snapshot, job) ? std::numeric_limits<double>::infinity()
                                              : end_time(snapshot, job, 0.5).value);
  return ends;
}

BlockingRoom::BlockingRoom(const ClusterSnapshot& snapshot, const std::vector<double>& ends,
                           std::vector<int> nodes, const std::set<int>& gone)
    : snapshot_(snapshot), ends_(ends), position_(snapshot.nodes.size(), -1) {
  for (const int index : nodes) {
    at(position_, index) = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
    nodes_.back().index = index;
    nodes_.back().free = usable_amounts(at(snapshot.nodes, index));
  }
  for (int job = 0; job < static_cast<int>(snapshot.running.size()); ++job) {
    if (gone.count(job) > 0) continue;
    const RunningJob& running = at(snapshot.running, job);
    for (const ReplicaPlacement& replica : running.replicas) {
      const int position = at(position_, replica.node);
      if (position < 0) continue;
      Node& node = at(nodes_, position);
      const ResourceAmounts amounts = amounts_on(node, at(running.request.roles, replica.role));
      node.free -= amounts;
      if (!node.held.empty() && node.held.back().job == job)
        node.held.back().amounts += amounts;
      else
        node.held.push_back({at(ends, job), job, amounts});
    }
  }
  for (Node& node : nodes_) {
    node.free_now = node.free;
    std::sort(node.held.begin(), node.held.end(), [](const Held& a, const Held& b) {
      return std::pair(a.end, a.job) < std::pair(b.end, b.job);
    });
  }
}

ResourceAmounts BlockingRoom::amounts_on(const Node& node, const Role& role) const {
  return amounts_of_replica(at(snapshot_.nodes, node.index), role);
}

double BlockingRoom::last_end() const {
  double last = 0;
  for (const int job : released_)
    last = std::max(last, at(ends_, job));
  return last;
}

// The jobs on the node that end first, until the amounts fit.
std::vector<int> BlockingRoom::needed(const Node& node, const ResourceAmounts& amounts,
                                      bool& fits) const {
  ResourceAmounts free = node.free;
  std::vector<const Held*> jobs;
  for (const Held& held : node.held) {
    if (holds(free, amounts)) break;
    if (released_.count(held.job) > 0) continue;
    free += held.amounts;
    jobs.push_back(&held);
  }
  fits = holds(free, amounts);
  std::vector<int> needed;
  if (!fits) return needed;
  // A large job may make an earlier, smaller one needless.
  for (const Held* held : jobs) {
    ResourceAmounts less = free;
    less -= held->amounts;
    if (holds(less, amounts))
      free = less;
    else
      needed.push_back(held->job);
  }
  return needed;
}

void BlockingRoom::release(int job, std::vector<int>& changed) {
  if (!released_.insert(job).second) return;
  const RunningJob& running = at(snapshot_.running, job);
  for (const ReplicaPlacement& replica : running.replicas) {
    const int position = at(position_, replica.node);
    if (position < 0) continue;
    Node& node = at(nodes_, position);
    node.free += amounts_on(node, at(running.request.roles, replica.role));
    changed.push_back(position);
  }
}

// Equal replicas: the cost of a node changes only when jobs on it are released or it takes one.
bool BlockingRoom::settle_role(const Role& role, int count) {
  std::set<Cost> order;
  std::vector<std::optional<Cost>> costs(nodes_.size());
  const auto renew = [&](int position) {
    auto& cost = at(costs, position);
    if (cost) order.erase(*cost);
    cost.reset();
    const Node& node = at(nodes_, position);
    bool fits = false;
    const std::vector<int> jobs = needed(node, amounts_on(node, role), fits);
    if (!fits) return;
    double end = jobs.empty() ? static_cast<double>(node.free[Resource::kCompute]) : 0;
    for (const int job : jobs)
      end = std::max(end, at(ends_, job));
    cost = Cost{static_cast<int>(jobs.size()), end, position};
    order.insert(*cost);
  };
  for (int position = 0; position < static_cast<int>(nodes_.size()); ++position)
    renew(position);
  for (int replica = 0; replica < count; ++replica) {
    if (order.empty()) return false;
    const int best = order.begin()->node;
    const ResourceAmounts amounts = amounts_on(at(nodes_, best), role);
    bool fits = false;
    std::vector<int> changed{best};
    for (const int job : needed(at(nodes_, best), amounts, fits))
      release(job, changed);
    at(nodes_, best).free -= amounts;
    at(nodes_, best).taken += amounts;
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const int position : changed)
      renew(position);
  }
  return true;
}

bool BlockingRoom::settle(std::span<const Role* const> replicas) {
  for (std::size_t first = 0; first < replicas.size();) {
    std::size_t last = first;
    while (last < replicas.size() && replicas[last] == replicas[first])
      ++last;
    if (!settle_role(*replicas[first], static_cast<int>(last - first))) return false;
    first = last;
  }
  for (const Node& node : nodes_)
    for (std::size_t i = 0; i < missing_.of.size(); ++i)
      missing_.of[i] +=
          node.taken.of[i] - std::min(node.taken.of[i], std::max(0LL, node.free_now.of[i]));
  drop_needless(replicas);
  return true;
}

// Jobs that were released for one node may not be needed since others were. Those with the latest
// end are tried first.
void BlockingRoom::drop_needless(std::span<const Role* const> replicas) {
  if (released_.size() < 2) return;
  std::vector<int> order(released_.begin(), released_.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return at(ends_, a) > at(ends_, b); });
  std::vector<ResourceAmounts> free;
  for (const Node& node : nodes_)
    free.push_back(node.free_now);
  const auto change = [&](int job, int sign) {
    const RunningJob& running = at(snapshot_.running, job);
    for (const ReplicaPlacement& replica : running.replicas)
      if (const int position = at(position_, replica.node); position >= 0) {
        const ResourceAmounts amounts =
            amounts_on(at(nodes_, position), at(running.request.roles, replica.role));
        if (sign > 0)
          at(free, position) += amounts;
        else
          at(free, position) -= amounts;
      }
  };
  for (const int job : order)
    change(job, 1);
  for (const int job : order) {
    change(job, -1);
    if (place(replicas, free) == static_cast<int>(replicas.size()))
      released_.erase(job);
    else
      change(job, 1);
  }
}

int BlockingRoom::place(std::span<const Role* const> replicas,
                        std::vector<ResourceAmounts> free) const {
  int placed = 0;
  for (const Role* role : replicas) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(free.size()); ++i) {
      if (best >= 0 && at(free, i)[Resource::kCompute] >= at(free, best)[Resource::kCompute])
        continue;
      if (holds(at(free, i), amounts_on(at(nodes_, i), *role))) best = i;
    }
    if (best < 0) return placed;
    at(free, best) -= amounts_on(at(nodes_, best), *role);
    ++placed;
  }
  return placed;
}

int BlockingRoom::startable(std::span<const Role* const> replicas) const {
  std::vector<ResourceAmounts> free;
  for (const Node& node : nodes_)
    free.push_back(node.free_now);
  return place(replicas, std::move(free));
}

int BlockingRoom::startable_devices(const Role& role) const {
  int most = 0;
  for (const Node& node : nodes_)
    for (int devices = role.devices; devices > most; --devices) {
      Role smaller = role;
      smaller.devices = devices;
      if (holds(node.free_now, amounts_on(node, smaller))) most = devices;
    }
  return most;
}

}  // namespace regatta::sched
