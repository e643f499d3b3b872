#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/blocking_room.h"
#include "regatta/platform/sched/internal/blocking_text.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/start_prediction.h"

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
std::map<std::pair<int, std::string>, std::vector<int>> rooms_of(const ClusterSnapshot& snapshot,
                                                                 const JobRequest& job) {
  std::map<std::pair<int, std::string>, std::vector<int>> rooms;
  for (int i = 0; i < static_cast<int>(snapshot.nodes.size()); ++i) {
    const ClusterNode& node = at(snapshot.nodes, i);
    if (node.health != NodeHealth::kReady) continue;
    // Without a list any node will do, of one type for the whole gang.
    const auto& types = job.device_types;
    if (!types.empty() && std::count(types.begin(), types.end(), node.device_type) == 0) continue;
    rooms[{domain_of(snapshot.nodes, i, job.topology.required), node.device_type}].push_back(i);
  }
  return rooms;
}

class BlockingSearch {
 public:
  BlockingSearch(const DecisionState& state, const PendingJob& job)
      : state_(state),
        job_(job.request),
        account_(state.accounts.at(&job.request)),
        usage_(state.usage),
        ends_(median_ends(state.snapshot)),
        replicas_(replicas_of(job.request)) {
    set_.wanted = amounts_wanted(state, job_, smallest_size(job_));
    set_.devices = devices_of(set_.wanted);
  }

  BlockingSet run() {
    set_.never_fits = !free_limits() || !free_room();
    if (set_.never_fits) set_.jobs.clear();
    set_.sentence = blocking_sentence(job_, set_, state_.snapshot.now);
    return std::move(set_);
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
      if (jobs.empty()) return false;
    }
    return true;
  }

  ResourceAmounts held_by(int job) const {
    const RunningJob& running = at(state_.snapshot.running, job);
    return amounts_on(state_, running.request, running.replicas);
  }

  BlockingJob blocking_job(int job) const {
    return {
        at(state_.snapshot.running, job).request.name, devices_of(held_by(job)), {at(ends_, job)}};
  }

  // The fewest jobs that hold `missing` of the limit; among as few, those that end first. Jobs are
  // looked at by their end: the largest of those before an end suffice there or not.
  std::vector<int> below_limit(const QuotaLimit& limit, long long missing) const {
    const QuotaTree& tree = state_.queue.quotas;
    std::vector<std::pair<long long, int>> amounts;  // and index
    for (int job = 0; job < static_cast<int>(state_.snapshot.running.size()); ++job) {
      const JobRequest& running = at(state_.snapshot.running, job).request;
      const int leaf = usage_.leaf_of(state_.accounts.at(&running));
      const bool is_below = leaf >= limit.queue && leaf < tree.subtree_end(limit.queue) &&
                            (!limit.is_of_user || running.user == job_.user);
      const long long amount = limited_amount(limit, held_by(job));
      if (is_below && amount > 0 && gone_.count(job) == 0) amounts.emplace_back(amount, job);
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

  // The room with the fewest jobs, of as few the one that is free first; false where none holds it.
  bool free_room() {
    bool is_found = false;
    std::pair<std::size_t, double> least{};
    for (auto& [key, nodes] : rooms_of(state_.snapshot, job_)) {
      if (job_.roles.size() == 1) note_startable(BlockingRoom(state_.snapshot, ends_, nodes, {}));
      BlockingRoom room(state_.snapshot, ends_, std::move(nodes), gone_);
      if (!room.settle(replicas_)) continue;
      const std::pair<std::size_t, double> cost{room.released().size(), room.last_end()};
      if (is_found && !(cost < least)) continue;
      least = cost;
      is_found = true;
      set_.missing = room.missing();
      set_.jobs.clear();
      for (const int holder : room.released())
        set_.jobs.push_back(blocking_job(holder));
    }
    std::stable_sort(set_.jobs.begin(), set_.jobs.end(),
                     [](const BlockingJob& a, const BlockingJob& b) { return a.ends < b.ends; });
    if (is_found)
      set_.free_devices = static_cast<int>(
          (set_.wanted[Resource::kCompute] - set_.missing[Resource::kCompute]) / kDeviceMilli);
    if (set_.startable_devices >= set_.devices) set_.startable_devices = 0;
    return is_found;
  }

  // A smaller size that would start now: fewer replicas, or fewer whole devices of one.
  void note_startable(const BlockingRoom& room) {
    Role role = job_.roles.front();
    const bool is_one = replicas_.size() == 1;
    int count = is_one ? room.startable_devices(role) : room.startable(replicas_);
    JobRequest smaller = job_;
    for (; count > 0; --count) {
      smaller.roles.front().devices = is_one ? count : role.devices;
      if (state_.usage.admits(account_, amounts_wanted(state_, smaller, {is_one ? 1 : count})))
        break;
    }
    const int milli = is_one ? count * kDeviceMilli : count * role.devices * role.device_milli;
    set_.startable_devices = std::max(set_.startable_devices, milli / kDeviceMilli);
  }

  const DecisionState& state_;
  const JobRequest& job_;
  int account_ = 0;
  QuotaUsage usage_;  // without the jobs that end
  std::vector<double> ends_;
  std::vector<const Role*> replicas_;
  std::set<int> gone_;
  BlockingSet set_;
};

}  // namespace

Result<BlockingSet> blocking_set(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 std::string_view job) {
  const auto found =
      std::find_if(queue.jobs.begin(), queue.jobs.end(),
                   [&](const PendingJob& pending) { return pending.request.name == job; });
  if (found == queue.jobs.end())
    return Error{Code::kNotFound, fmt::format("job {}: it is not pending", job)};
  const SchedulingPolicy policy;
  REGATTA_TRY(state, DecisionState::create(snapshot, queue, policy));
  return BlockingSearch(state, *found).run();
}

}  // namespace regatta::sched
