#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kNamedJobs = 3;
constexpr EnumNames<kTopologyLevels> kWhere = {" on one server", " under one leaf", " in one group",
                                               ""};

double expected_end(const ClusterSnapshot& snapshot, const RunningJob& job) {
  const Seconds done = job.completed + snapshot.now - job.started;
  return snapshot.now.value +
         remaining_time(job.request.run_time, {std::max(0.0, done.value)}, 0.5).value;
}

int domain_of(const ClusterNode& node, int index, TopologyLevel level) {
  switch (level) {
    case TopologyLevel::kServer:
      return index;
    case TopologyLevel::kLeaf:
      return node.leaf;
    case TopologyLevel::kGroup:
      return node.group;
    case TopologyLevel::kCluster:
      break;
  }
  return 0;
}

// The nodes of one domain at one device type, with the running jobs that hold them.
class Room {
 public:
  Room(const ClusterSnapshot& snapshot, std::vector<int> nodes)
      : snapshot_(snapshot), nodes_(std::move(nodes)) {
    for (const int node : nodes_) {
      const ClusterNode& entry = at(snapshot.nodes, node);
      free_[node] = kDeviceMilli * (entry.devices - std::popcount(entry.failed_devices));
    }
    for (int job = 0; job < static_cast<int>(snapshot.running.size()); ++job)
      for (const ReplicaPlacement& replica : at(snapshot.running, job).replicas)
        if (const auto found = free_.find(replica.node); found != free_.end()) {
          const int milli = held_milli(job, replica);
          found->second -= milli;
          held_[replica.node].emplace(expected_end(snapshot, at(snapshot.running, job)), job);
        }
    free_now_ = free_;
  }

  // Finds a place for each replica and the jobs whose end it takes; false where even the empty
  // nodes do not hold them.
  bool settle(const std::vector<int>& replicas) {
    for (const int milli : replicas)
      if (!settle_replica(milli)) return false;
    drop_needless(replicas);
    return true;
  }

  const std::set<int>& released() const { return released_; }
  double last_end() const {
    double last = 0;
    for (const int job : released_)
      last = std::max(last, expected_end(snapshot_, at(snapshot_.running, job)));
    return last;
  }
  // Free now where the replicas would run, of the amounts that they need.
  long long free_milli() const {
    long long free = 0;
    for (const auto& [node, taken] : taken_)
      free += std::min(taken, std::max(0, free_now_.at(node)));
    return free;
  }
  // Thousandths that a job of `count` equal replicas could start with now: whole replicas, or whole
  // devices of its only one.
  long long startable_milli(long long count, int milli) const {
    long long startable = 0;
    for (const auto& [node, free] : free_now_) {
      const int whole = count == 1 ? std::min(milli, free / kDeviceMilli * kDeviceMilli)
                                   : free / std::max(1, milli) * milli;
      startable =
          count == 1 ? std::max<long long>(startable, whole) : startable + std::max(0, whole);
    }
    return std::min(startable, count * milli);
  }

 private:
  int held_milli(int job, const ReplicaPlacement& replica) const {
    const Role& role = at(at(snapshot_.running, job).request.roles, replica.role);
    return role.devices * role.device_milli;
  }

  void release(int job) {
    if (!released_.insert(job).second) return;
    for (const ReplicaPlacement& replica : at(snapshot_.running, job).replicas)
      if (const auto found = free_.find(replica.node); found != free_.end())
        found->second += held_milli(job, replica);
  }

  // The jobs on the node that end first, until the replica fits.
  std::vector<int> needed(int node, int milli) const {
    std::vector<int> jobs;
    int free = free_.at(node);
    const auto held = held_.find(node);
    if (held == held_.end()) return jobs;
    for (const auto& [end, job] : held->second) {
      if (free >= milli) break;
      if (released_.count(job) > 0) continue;
      for (const ReplicaPlacement& replica : at(snapshot_.running, job).replicas)
        if (replica.node == node) free += held_milli(job, replica);
      jobs.push_back(job);
    }
    // A large job may make an earlier, smaller one needless.
    for (std::size_t i = 0; i + 1 < jobs.size();) {
      int part = 0;
      for (const ReplicaPlacement& replica : at(snapshot_.running, jobs[i]).replicas)
        if (replica.node == node) part += held_milli(jobs[i], replica);
      if (free - part >= milli) {
        free -= part;
        jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (free < milli) jobs.push_back(-1);
    return jobs;
  }

  bool settle_replica(int milli) {
    using Cost = std::pair<std::size_t, double>;
    int best = -1;
    Cost least{};
    std::vector<int> chosen;
    for (const int node : nodes_) {
      std::vector<int> jobs;
      if (free_.at(node) < milli) jobs = needed(node, milli);
      if (free_.at(node) < milli && (jobs.empty() || jobs.back() < 0)) continue;
      double end = 0;
      for (const int job : jobs)
        end = std::max(end, expected_end(snapshot_, at(snapshot_.running, job)));
      // Among places that cost nothing, the one with the least free.
      const Cost cost{jobs.size(), jobs.empty() ? free_.at(node) : end};
      if (best >= 0 && !(cost < least)) continue;
      best = node;
      least = cost;
      chosen = std::move(jobs);
    }
    if (best < 0) return false;
    for (const int job : chosen)
      release(job);
    free_.at(best) -= milli;
    taken_[best] += milli;
    return true;
  }

  // Jobs that were released for one node may not be needed since others were.
  void drop_needless(const std::vector<int>& replicas) {
    const std::set<int> all = released_;
    for (const int job : all) {
      std::map<int, int> free = free_now_;
      for (const int other : released_)
        if (other != job)
          for (const ReplicaPlacement& replica : at(snapshot_.running, other).replicas)
            if (const auto found = free.find(replica.node); found != free.end())
              found->second += held_milli(other, replica);
      if (fits(replicas, free)) released_.erase(job);
    }
  }

  static bool fits(const std::vector<int>& replicas, std::map<int, int> free) {
    for (const int milli : replicas) {
      auto best = free.end();
      for (auto node = free.begin(); node != free.end(); ++node)
        if (node->second >= milli && (best == free.end() || node->second < best->second))
          best = node;
      if (best == free.end()) return false;
      best->second -= milli;
    }
    return true;
  }

  const ClusterSnapshot& snapshot_;
  std::vector<int> nodes_;
  std::map<int, int> free_;
  std::map<int, int> free_now_;
  std::map<int, int> taken_;
  std::map<int, std::set<std::pair<double, int>>> held_;
  std::set<int> released_;
};

struct Wanted {
  std::vector<int> replicas;  // thousandths of devices, largest first
  long long milli = 0;
  bool is_one_size = true;
};

Wanted wanted_of(const JobRequest& job) {
  Wanted wanted;
  for (const Role& role : job.roles)
    if (role.devices > 0)
      wanted.replicas.insert(wanted.replicas.end(), as_index(role.replicas_min),
                             role.devices * role.device_milli);
  std::sort(wanted.replicas.rbegin(), wanted.replicas.rend());
  for (const int milli : wanted.replicas) {
    wanted.milli += milli;
    wanted.is_one_size &= milli == wanted.replicas.front();
  }
  return wanted;
}

int whole_devices(long long milli) {
  return static_cast<int>((milli + kDeviceMilli - 1) / kDeviceMilli);
}

std::string demand_text(const JobRequest& job) {
  std::string text = "devices";
  if (!job.device_types.empty()) text += " of type " + join(job.device_types, " or ");
  const bool is_one_replica = job.roles.size() == 1 && job.roles.front().replicas_min == 1 &&
                              job.topology.required == TopologyLevel::kCluster;
  return text + (is_one_replica ? kWhere.front() : enum_name(kWhere, job.topology.required));
}

std::string holders_text(const BlockingSet& set, Seconds now) {
  std::vector<std::string> names;
  for (const BlockingJob& job : set.jobs)
    names.push_back(
        std::isfinite(job.ends.value)
            ? fmt::format("job {} for about {}", job.job, format_duration(job.ends - now))
            : fmt::format("job {}, whose end is not known", job.job));
  return shortened_list(std::move(names), kNamedJobs);
}

// "16 devices under one leaf", "1 device on one server"
std::string demand_phrase(int devices, std::string demand) {
  if (devices == 1 && demand.starts_with("devices")) demand.replace(0, 7, "device");
  return fmt::format("{} {}", devices, demand);
}

std::string sentence_of(const JobRequest& job, const BlockingSet& set, Seconds now) {
  const std::string demand = demand_text(job);
  if (set.never_fits)
    return fmt::format(
        "asks for {}; the empty cluster does not hold them: ask for fewer, or for "
        "other types",
        demand_phrase(set.devices, demand));
  if (set.jobs.empty())
    return fmt::format("waits for its turn; its {} {} free", demand_phrase(set.devices, demand),
                       set.devices == 1 ? "is" : "are");
  std::string text = fmt::format("waits for {} of {}; held by {}", set.devices - set.free_devices,
                                 demand_phrase(set.devices, demand), holders_text(set, now));
  if (set.startable_devices > 0)
    text += fmt::format("; would start now with {}", pluralized(set.startable_devices, "device"));
  return text;
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
    rooms[{domain_of(node, i, job.topology.required), node.device_type}].push_back(i);
  }
  return rooms;
}

}  // namespace

Result<BlockingSet> blocking_set(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 std::string_view job) {
  const auto found =
      std::find_if(queue.jobs.begin(), queue.jobs.end(),
                   [&](const PendingJob& pending) { return pending.request.name == job; });
  if (found == queue.jobs.end())
    return Error{Code::kNotFound, fmt::format("job {}: it is not pending", job)};
  const JobRequest& request = found->request;
  const Wanted wanted = wanted_of(request);
  BlockingSet set;
  set.devices = whole_devices(wanted.milli);
  set.never_fits = true;
  std::pair<std::size_t, double> least{};
  long long startable = 0;
  for (auto& [key, nodes] : rooms_of(snapshot, request)) {
    Room room(snapshot, std::move(nodes));
    if (wanted.is_one_size && !wanted.replicas.empty())
      startable = std::max(
          startable, room.startable_milli(std::ssize(wanted.replicas), wanted.replicas.front()));
    if (!room.settle(wanted.replicas)) continue;
    const std::pair<std::size_t, double> cost{room.released().size(), room.last_end()};
    if (!set.never_fits && !(cost < least)) continue;
    least = cost;
    set.never_fits = false;
    set.free_devices = static_cast<int>(room.free_milli() / kDeviceMilli);
    set.jobs.clear();
    for (const int holder : room.released()) {
      const RunningJob& running = at(snapshot.running, holder);
      int milli = 0;
      for (const ReplicaPlacement& replica : running.replicas) {
        const Role& role = at(running.request.roles, replica.role);
        milli += role.devices * role.device_milli;
      }
      set.jobs.push_back(
          {running.request.name, whole_devices(milli), {expected_end(snapshot, running)}});
    }
  }
  std::stable_sort(set.jobs.begin(), set.jobs.end(),
                   [](const BlockingJob& a, const BlockingJob& b) { return a.ends < b.ends; });
  if (startable < wanted.milli) set.startable_devices = static_cast<int>(startable / kDeviceMilli);
  set.sentence = sentence_of(request, set, snapshot.now);
  return set;
}

}  // namespace regatta::sched
