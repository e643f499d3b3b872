#include "regatta/platform/sched/internal/device_mixes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/interference.h"

namespace regatta::sched {
namespace {

constexpr double kMoreWork = 1e-9;  // a difference beyond rounding
constexpr long long kMiB = 1LL << 20;

template <typename Visit>
void for_each_device(const ReplicaPlacement& replica, Visit visit) {
  for (int device = 0; device < kNodeDevicesMax; ++device)
    if ((replica.devices >> static_cast<unsigned>(device) & 1U) != 0)
      visit(DeviceKey{replica.node, device});
}

std::vector<int> kinds_on(const std::vector<MixOccupant>& there) {
  std::vector<int> kinds;
  kinds.reserve(there.size() + 1);
  for (const MixOccupant& occupant : there)
    kinds.push_back(occupant.kind);
  return kinds;
}

}  // namespace

DeviceMixes::DeviceMixes(const ClusterSnapshot& snapshot, const SchedulingPolicy& policy,
                         mixing::MixMemo* memo)
    : snapshot_(&snapshot),
      policy_(&policy),
      own_memo_(memo == nullptr ? std::make_unique<mixing::MixMemo>() : nullptr),
      memo_(memo == nullptr ? own_memo_.get() : memo) {
  for (const RunningJob& job : snapshot.running)
    for (const ReplicaPlacement& replica : job.replicas)
      take(job.request, replica);
  for (const DeviceMix& mix : snapshot.mixes) {
    const auto there = devices_.find({mix.node, mix.device});
    before_[{mix.node, mix.device}] =
        there == devices_.end() ? std::vector<MixOccupant>{} : there->second;
  }
}

int DeviceMixes::kind_of(const JobRequest& job, const Role& role) {
  return memo_->kind_of({"", job.job_class, Bytes{role.device_memory_mib * kMiB}, role.duty});
}

const std::vector<int>& DeviceMixes::kinds_of(const JobRequest& job) {
  NamedKinds& known = kinds_[&job];
  // Another request may lie where one was that lived shorter: names are unique.
  if (known.job != job.name || known.by_role.size() != job.roles.size()) {
    known = {job.name, {}};
    for (const Role& role : job.roles)
      known.by_role.push_back(role.is_mixable() ? kind_of(job, role) : -1);
  }
  return known.by_role;
}

void DeviceMixes::take(const JobRequest& job, const ReplicaPlacement& replica) {
  if (!at(job.roles, replica.role).is_mixable()) return;
  const int kind = at(kinds_of(job), replica.role);
  const Role& role = at(job.roles, replica.role);
  const MixOccupant occupant{&job, kind, role.device_milli, role.device_memory_mib};
  for_each_device(replica, [&](DeviceKey device) {
    std::vector<MixOccupant>& there = devices_[device];
    const auto place = std::upper_bound(
        there.begin(), there.end(), occupant, [](const MixOccupant& a, const MixOccupant& b) {
          return std::tie(a.kind, a.job->name) < std::tie(b.kind, b.job->name);
        });
    there.insert(place, occupant);
  });
}

void DeviceMixes::give(const JobRequest& job, const ReplicaPlacement& replica) {
  if (!at(job.roles, replica.role).is_mixable()) return;
  const int kind = at(kinds_of(job), replica.role);
  for_each_device(replica, [&](DeviceKey device) {
    const auto entry = devices_.find(device);
    if (entry == devices_.end()) return;
    const auto found = std::find_if(
        entry->second.begin(), entry->second.end(),
        [&](const MixOccupant& each) { return each.job == &job && each.kind == kind; });
    if (found != entry->second.end()) entry->second.erase(found);
    if (entry->second.empty()) devices_.erase(entry);
  });
}

double DeviceMixes::mean_need(const JobRequest& job) {
  double mean = 0;
  for (const int kind : kinds_of(job))
    if (kind >= 0) mean = std::max(mean, memo_->mean_of(kind));
  return mean;
}

bool DeviceMixes::prefers_sharing(const JobRequest& job) {
  return mean_need(job) < policy_->mix_first_below;
}

std::string DeviceMixes::kinds_text(const JobRequest& job) {
  std::string text;
  for (const int kind : kinds_of(job))
    text += "," + std::to_string(kind);
  return text;
}

mixing::DeviceCapacity DeviceMixes::capacity_of(DeviceKey device) const {
  return {.memory = Bytes{at(snapshot_->nodes, device.first).device_memory_mib * kMiB},
          .host_memory = Bytes{policy_->host_memory_mib * kMiB},
          .interference = policy_->interference};
}

DeviceMixes::Verdict DeviceMixes::judge(const std::vector<int>& kinds, DeviceKey device) {
  std::pair key{at(snapshot_->nodes, device.first).device_memory_mib, kinds};
  const auto known = verdicts_.find(key);
  if (known != verdicts_.end()) return known->second;
  Verdict verdict;
  const auto& decision = memo_->decide(kinds, capacity_of(device), policy_->budget);
  if (decision) {
    verdict.keeps_budget = decision->is_within_budget;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const double share = decision->slices[i].expected_share;
      verdict.work += share * memo_->mean_of(kinds[i]);
      verdict.keeps_budget &= share >= policy_->least_share ||
                              has_latency_target(memo_->workload_of(kinds[i]).load_class);
    }
  }
  verdicts_.emplace(std::move(key), verdict);
  return verdict;
}

// The checks that draw no series come first.
bool DeviceMixes::admits(const std::vector<MixOccupant>& there, int kind, DeviceKey device) {
  std::vector<int> kinds = kinds_on(there);
  const std::vector<int> before = kinds;
  kinds.insert(std::upper_bound(kinds.begin(), kinds.end(), kind), kind);
  const mixing::DeviceCapacity capacity = capacity_of(device);
  Bytes memory{};
  double targets = 0;
  for (const int each : kinds) {
    const mixing::ProfiledWorkload& workload = memo_->workload_of(each);
    memory = memory + workload.memory;
    if (has_latency_target(workload.load_class)) targets += memo_->mean_of(each);
  }
  if (memory > capacity.memory && memory > capacity.host_memory) return false;
  if (targets > 1) return false;
  const Verdict verdict = judge(kinds, device);
  if (!verdict.keeps_budget) return false;
  // Work that may wait comes only where the device then does more.
  return has_latency_target(memo_->workload_of(kind).load_class) ||
         verdict.work > judge(before, device).work + kMoreWork;
}

std::optional<double> DeviceMixes::need_with(const JobRequest& job, DeviceKey device,
                                             const NodeCapacity& free) {
  const ClusterNode& node = at(snapshot_->nodes, device.first);
  const auto entry = devices_.find(device);
  if (entry == devices_.end() || !free.is_open ||
      (node.failed_devices >> static_cast<unsigned>(device.second) & 1U) != 0)
    return std::nullopt;
  const std::vector<MixOccupant>& there = entry->second;
  if (std::ssize(there) >= kMixedJobsMax) return std::nullopt;
  int milli = at(free.device_milli, device.second);
  for (const MixOccupant& occupant : there) {
    if (occupant.job == &job) return std::nullopt;
    milli += occupant.milli;
  }
  if (milli != kDeviceMilli) return std::nullopt;  // somebody there cannot be mixed
  const auto has_target = [](const MixOccupant& occupant) {
    return has_latency_target(occupant.job->job_class);
  };
  if (has_latency_target(job.job_class) &&
      std::count_if(there.begin(), there.end(), has_target) >= policy_->targets_per_device)
    return std::nullopt;
  // In rising order, so that the sum does not depend on the numbers of the kinds.
  std::vector<double> means;
  double largest = 0;
  for (const int kind : kinds_of(job)) {
    if (kind < 0) continue;
    if (!admits(there, kind, device)) return std::nullopt;
    largest = std::max(largest, memo_->mean_of(kind));
  }
  means.push_back(largest);
  for (const MixOccupant& occupant : there)
    means.push_back(memo_->mean_of(occupant.kind));
  std::sort(means.begin(), means.end());
  double sum = 0;
  double squares = 0;
  for (const double mean : means) {
    sum += mean;
    squares += mean * mean;
  }
  return mixing::mixed_demand(static_cast<float>(sum), static_cast<float>(squares),
                              static_cast<float>(policy_->interference));
}

bool DeviceMixes::keeps_budget(DeviceKey device) {
  const auto entry = devices_.find(device);
  return entry == devices_.end() || entry->second.size() < 2 ||
         judge(kinds_on(entry->second), device).keeps_budget;
}

double DeviceMixes::daily_loss(DeviceKey device, const JobRequest* left) {
  std::vector<int> kinds;
  const auto entry = devices_.find(device);
  if (entry != devices_.end())
    for (const MixOccupant& occupant : entry->second)
      if (occupant.job != left) kinds.push_back(occupant.kind);
  if (kinds.empty()) return 0;
  const auto& decision = memo_->decide(kinds, capacity_of(device), policy_->budget);
  if (!decision) return std::numeric_limits<double>::infinity();
  return at(decision->modes, static_cast<int>(decision->mode)).cost * mixing::kDrawnInterval.value /
         mixing::kDrawnDays;
}

std::optional<mixing::MixDecision> DeviceMixes::decision_of(DeviceKey device) {
  const auto entry = devices_.find(device);
  if (entry == devices_.end()) return std::nullopt;
  const auto& decision =
      memo_->decide(kinds_on(entry->second), capacity_of(device), policy_->budget);
  if (!decision) return std::nullopt;
  mixing::MixDecision named = *decision;
  for (std::size_t i = 0; i < named.slices.size(); ++i)
    named.slices[i].workload = entry->second[i].job->name;
  return named;
}

}  // namespace regatta::sched
