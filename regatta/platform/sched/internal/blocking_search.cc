#include "regatta/platform/sched/internal/blocking_search.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/blocking_room.h"
#include "regatta/platform/sched/internal/start_trial.h"

namespace regatta::sched {
namespace {

// The part of `amounts` that the limit counts.
long long limited_amount(const QuotaLimit& limit, const ResourceAmounts& amounts) {
  return limit.device_type < 0 ? amounts[limit.resource] : at(amounts.of_type, limit.device_type);
}

// The replicas of the smallest size, the largest first.
std::vector<const Role*> replicas_of(const JobRequest& job) {
  std::vector<const Role*> replicas;
  for (const Role& role : job.roles)
    replicas.insert(replicas.end(), as_index(role.replicas_min), &role);
  std::stable_sort(replicas.begin(), replicas.end(), [](const Role* a, const Role* b) {
    return a->devices * a->device_milli > b->devices * b->device_milli;
  });
  return replicas;
}

// The nodes that jobs of these types may use, by their domain and type: a gang has one type.
std::map<std::pair<int, std::string>, std::vector<int>> rooms_of(const DecisionState& state,
                                                                 const JobRequest& job) {
  const ClusterSnapshot& snapshot = state.snapshot;
  const std::vector<int>& spares = state.precautions.spares;
  std::map<std::pair<int, std::string>, std::vector<int>> rooms;
  for (int i = 0; i < static_cast<int>(snapshot.nodes.size()); ++i) {
    const ClusterNode& node = at(snapshot.nodes, i);
    if (node.health != NodeHealth::kReady ||
        std::find(spares.begin(), spares.end(), i) != spares.end())
      continue;
    // Without a list any node will do, of one type for the whole gang.
    const auto& types = job.device_types;
    if (!types.empty() && std::count(types.begin(), types.end(), node.device_type) == 0) continue;
    rooms[{domain_of(snapshot.nodes, i, job.topology.required), node.device_type}].push_back(i);
  }
  return rooms;
}

class BlockingSearch {
 public:
  // `job`: the pending job on the device types that it may get, whose account is `account`.
  BlockingSearch(const DecisionState& state, const JobRequest& job, int account)
      : state_(state),
        job_(job),
        account_(account),
        usage_(state.usage),
        ends_(median_ends(state.snapshot)),
        replicas_(replicas_of(job)),
        trial_(state, account) {
    set_.wanted = amounts_wanted(state, job_, smallest_size(job_));
    set_.devices = devices_of(set_.wanted);
    const QuotaClaim claim{
        .leaf = usage_.leaf_of(account), .amounts = set_.wanted, .was_evicted = false};
    set_.is_owed = state.policy.reclaims && state.guarantees.is_any() &&
                   state.guarantees.entitled_distance(usage_, claim, -1) >= 0;
  }

  BlockingFind run() {
    set_.never_fits = !free_limits() || !find_room();
    if (!set_.never_fits && set_.nodes.empty()) drop_needless();
    if (set_.never_fits) set_.jobs.clear();
    const bool waits = !set_.jobs.empty() || !set_.limits.empty() || !set_.nodes.empty();
    auto startable = waits && !set_.never_fits ? find_startable() : std::nullopt;
    return {job_, std::move(set_), std::move(startable)};
  }

 private:
  static int devices_of(const ResourceAmounts& amounts) {
    return static_cast<int>((amounts[Resource::kCompute] + kDeviceMilli - 1) / kDeviceMilli);
  }

  // The jobs below each limit in the way whose end lets the job pass it; false where no end does.
  bool free_limits() {
    for (auto limit = usage_.limit_passed(account_, set_.wanted); limit;
         limit = usage_.limit_passed(account_, set_.wanted)) {
      const QuotaTree& tree = state_.queue.quotas;
      BlockingLimit shortage{
          .queue = tree.queue(limit->queue).name,
          .user = limit->is_of_user ? job_.user : "",
          .resource = limit->resource,
          .device_type = limit->device_type < 0 ? "" : at(tree.device_types(), limit->device_type),
          .limit = limit->limit,
          .missing = limit->used + limited_amount(*limit, set_.wanted) - limit->limit,
          .jobs = {}};
      const std::vector<int> jobs = below_limit(*limit, shortage.missing);
      for (const int job : jobs) {
        const RunningJob& running = at(state_.snapshot.running, job);
        usage_.remove(state_.accounts.at(&running.request), held_by(job));
        gone_.insert(job);
        shortage.jobs.push_back(blocking_job(job));
      }
      set_.limits.push_back(std::move(shortage));
      limits_.push_back(*limit);
      if (jobs.empty()) return false;
    }
    return true;
  }

  ResourceAmounts held_by(int job) const {
    const RunningJob& running = at(state_.snapshot.running, job);
    return amounts_on(state_, running.request, running.replicas);
  }

  BlockingJob blocking_job(int job) const {
    const RunningJob& running = at(state_.snapshot.running, job);
    return {.job = running.request.name,
            .devices = devices_of(held_by(job)),
            .ends = {at(ends_, job)},
            .is_degraded = is_degraded(state_.snapshot, running)};
  }

  // The amount of the limit that a running job holds.
  long long amount_below(const QuotaLimit& limit, int job) const {
    const JobRequest& running = at(state_.snapshot.running, job).request;
    const int leaf = usage_.leaf_of(state_.accounts.at(&running));
    const bool is_below = leaf >= limit.queue &&
                          leaf < state_.queue.quotas.subtree_end(limit.queue) &&
                          (!limit.is_of_user || running.user == job_.user);
    return is_below ? limited_amount(limit, held_by(job)) : 0;
  }

  // The fewest jobs that hold `missing` of the limit; among as few, those that end first. Jobs are
  // looked at by their end: the largest of those before an end suffice there or not.
  std::vector<int> below_limit(const QuotaLimit& limit, long long missing) const {
    std::vector<std::pair<long long, int>> amounts;  // and index
    for (int job = 0; job < static_cast<int>(state_.snapshot.running.size()); ++job) {
      const long long amount = gone_.count(job) == 0 ? amount_below(limit, job) : 0;
      if (amount > 0) amounts.emplace_back(amount, job);
    }
    std::sort(amounts.rbegin(), amounts.rend());
    std::size_t fewest = 0;
    long long sum = 0;
    while (fewest < amounts.size() && sum < missing)
      sum += amounts[fewest++].first;
    if (sum < missing) return {};
    std::sort(amounts.begin(), amounts.end(), [&](const auto& a, const auto& b) {
      return std::pair(at(ends_, a.second), a.second) < std::pair(at(ends_, b.second), b.second);
    });
    std::set<std::pair<long long, int>> chosen;  // the largest of those that ended: amount, -index
    sum = 0;
    for (const auto& amount : amounts) {
      chosen.emplace(amount.first, -amount.second);
      sum += amount.first;
      if (chosen.size() > fewest) {
        sum -= chosen.begin()->first;
        chosen.erase(chosen.begin());
      }
      if (sum >= missing) break;
    }
    std::vector<int> jobs;
    for (const auto& amount : amounts)
      if (chosen.count({amount.first, -amount.second}) > 0) jobs.push_back(amount.second);
    return jobs;
  }

  // Amounts of nodes are quick to search, but say too much is free where shares leave parts of
  // several devices, or where a node that becomes free is kept as a spare: a trial decides.
  bool find_room() {
    if (free_room() && trial_.place(job_, all_gone())) return true;
    set_.jobs.clear();
    released_ = released_by_trial();
    const auto placement = trial_.place(job_, all_gone());
    if (!placement) return find_nodes();
    for (const int job : released_)
      set_.jobs.push_back(blocking_job(job));
    sort_jobs();
    set_.missing = trial_.missing_for(job_, *placement);
    count_free();
    return true;
  }

  std::set<int> all_gone() const {
    std::set<int> gone = gone_;
    gone.insert(released_.begin(), released_.end());
    return gone;
  }

  // The jobs that end first until there is room, without those that are needless.
  std::set<int> released_by_trial() {
    std::vector<int> order;
    for (int job = 0; job < std::ssize(state_.snapshot.running); ++job)
      if (gone_.count(job) == 0) order.push_back(job);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return at(ends_, a) < at(ends_, b); });
    const auto suffices = [&](const std::vector<int>& jobs) {
      std::set<int> gone = gone_;
      gone.insert(jobs.begin(), jobs.end());
      return trial_.place(job_, gone).has_value();
    };
    std::size_t low = 0;
    std::size_t high = order.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (suffices({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(middle)}))
        high = middle;
      else
        low = middle + 1;
    }
    order.resize(high);
    // Whole parts at once, the last to end first: most of many jobs are needless.
    for (std::size_t part = order.size(); part > 0; part /= 2)
      for (std::size_t end = order.size(); end > 0; end -= std::min(end, part)) {
        const std::size_t begin = end - std::min(end, part);
        std::vector<int> fewer(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(begin));
        fewer.insert(fewer.end(), order.begin() + static_cast<std::ptrdiff_t>(end), order.end());
        if (suffices(fewer)) order = std::move(fewer);
      }
    return {order.begin(), order.end()};
  }

  // Jobs at one limit may be needless because of those at another one, or on nodes; and fewer
  // spares may be kept without a large gang.
  void drop_needless() {
    if (set_.limits.empty() && !state_.policy.spares.is_kept()) return;
    if (all_gone().size() < 2) return;
    const std::set<int> all = all_gone();
    std::vector<int> order(all.begin(), all.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return at(ends_, a) > at(ends_, b); });
    std::set<int> left = all;
    for (const int job : order) {
      left.erase(job);
      if (!trial_.place(job_, left)) left.insert(job);
    }
    if (left == all) return;
    const auto is_left = [&](const BlockingJob& job) {
      return std::any_of(left.begin(), left.end(), [&](int index) {
        return at(state_.snapshot.running, index).request.name == job.job;
      });
    };
    for (std::size_t i = 0; i < set_.limits.size(); ++i) {
      std::vector<BlockingJob>& jobs = set_.limits[i].jobs;
      std::erase_if(jobs, [&](const BlockingJob& job) { return !is_left(job); });
      for (const int job : left)
        if (jobs.empty() && amount_below(limits_[i], job) > 0) jobs.push_back(blocking_job(job));
    }
    std::erase_if(gone_, [&](int job) { return left.count(job) == 0; });
    set_.jobs.clear();
    for (const int job : left)
      if (gone_.count(job) == 0) set_.jobs.push_back(blocking_job(job));
    sort_jobs();
    set_.missing = trial_.missing_for(job_, *trial_.place(job_, left));
    count_free();
  }

  // Not even the end of all jobs suffices: whether nodes that return would.
  bool find_nodes() {
    released_.clear();
    if (!trial_.fits_repaired(job_)) return false;
    const auto& types = job_.device_types;
    for (const ClusterNode& node : state_.snapshot.nodes)
      if ((node.health != NodeHealth::kReady || node.failed_devices != 0) &&
          (types.empty() || std::count(types.begin(), types.end(), node.device_type) > 0))
        set_.nodes.push_back(node.name);
    return true;
  }

  // The room with the fewest jobs, of as few the one that is free first; false where none holds it.
  bool free_room() {
    bool is_found = false;
    std::pair<std::size_t, double> least{};
    for (auto& [key, nodes] : rooms_of(state_, job_)) {
      if (job_.roles.size() == 1) note_startable(BlockingRoom(state_.snapshot, ends_, nodes, {}));
      BlockingRoom room(state_.snapshot, ends_, std::move(nodes), gone_);
      if (!room.settle(replicas_)) continue;
      const std::pair<std::size_t, double> cost{room.released().size(), room.last_end()};
      if (is_found && !(cost < least)) continue;
      least = cost;
      is_found = true;
      set_.missing = room.missing();
      released_ = room.released();
    }
    set_.jobs.clear();
    for (const int holder : released_)
      set_.jobs.push_back(blocking_job(holder));
    sort_jobs();
    if (is_found) count_free();
    return is_found;
  }

  void sort_jobs() {
    std::stable_sort(set_.jobs.begin(), set_.jobs.end(),
                     [](const BlockingJob& a, const BlockingJob& b) { return a.ends < b.ends; });
  }

  void count_free() {
    set_.free_devices = static_cast<int>(
        (set_.wanted[Resource::kCompute] - set_.missing[Resource::kCompute]) / kDeviceMilli);
  }

  // Replicas, or whole devices of one, that the amounts of the room hold: no more start.
  void note_startable(const BlockingRoom& room) {
    startable_most_ =
        std::max(startable_most_, replicas_.size() == 1 ? room.startable_devices(job_.roles.front())
                                                        : room.startable(replicas_));
  }

  JobRequest smaller_job(int count) const {
    JobRequest smaller = job_;
    Role& role = smaller.roles.front();
    if (replicas_.size() == 1)
      role.devices = count;
    else
      role.replicas_min = role.replicas_max = count;
    return smaller;
  }

  // The largest smaller size that would start now: fewer replicas, or fewer whole devices of one.
  std::optional<JobRequest> find_startable() {
    if (job_.roles.empty()) return std::nullopt;
    const Role& role = job_.roles.front();
    const int whole = replicas_.size() == 1 ? role.devices : role.replicas_min;
    int low = 0;
    int high = std::min(startable_most_, whole - 1);
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (trial_.place(smaller_job(middle), {}))
        low = middle;
      else
        high = middle - 1;
    }
    if (low == 0) return std::nullopt;
    return smaller_job(low);
  }

  const DecisionState& state_;
  const JobRequest& job_;
  int account_ = 0;
  QuotaUsage usage_;  // without the jobs that end
  std::vector<double> ends_;
  std::vector<const Role*> replicas_;
  std::vector<QuotaLimit> limits_;  // of the set
  std::set<int> gone_;              // at the limits
  std::set<int> released_;          // on nodes
  int startable_most_ = 0;
  StartTrial trial_;
  BlockingSet set_;
};

}  // namespace

BlockingFind find_blocking(const DecisionState& state, const JobRequest& job, int account) {
  return BlockingSearch(state, job, account).run();
}

}  // namespace regatta::sched
