#include "regatta/platform/sched/internal/node_fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

using DeviceCounts = std::array<int, kNodeDevicesMax>;

int parts_of(long long whole, int part) {
  if (part <= 0) return kReplicasMax;
  return static_cast<int>(std::clamp<long long>(whole / part, 0, kReplicasMax));
}

// Slices of `role` that a device has room for.
int slots_of(const NodeCapacity& free, const Role& role, int device) {
  if (at(free.device_memory_mib, device) < 0) return 0;  // memory of jobs that are mixed is swapped
  return std::min(parts_of(at(free.device_milli, device), std::max(1, role.device_milli)),
                  parts_of(at(free.device_memory_mib, device), role.device_memory_mib));
}

int numa_node_of(const ClusterNode& node, int device) {
  return device * std::max(1, node.numa_nodes) / std::max(1, node.devices);
}

// `count` devices of `whole_free`: of the NUMA node that they fill best, else of the freest ones.
std::uint32_t choose_whole_devices(const ClusterNode& node, std::uint32_t whole_free, int count) {
  DeviceCounts free_of{};
  for (std::uint32_t left = whole_free; left != 0; left &= left - 1)
    ++at(free_of, numa_node_of(node, std::countr_zero(left)));
  std::uint32_t chosen = 0;
  while (std::popcount(chosen) < count) {
    const int missing = count - std::popcount(chosen);
    int best = -1;
    for (int numa = 0; numa < kNodeDevicesMax; ++numa) {
      if (at(free_of, numa) == 0) continue;
      const bool is_enough = at(free_of, numa) >= missing;
      const bool was_enough = best >= 0 && at(free_of, best) >= missing;
      if (best < 0 || (is_enough && !was_enough) ||
          (is_enough == was_enough && (is_enough ? at(free_of, numa) < at(free_of, best)
                                                 : at(free_of, numa) > at(free_of, best))))
        best = numa;
    }
    if (best < 0) return 0;
    for (std::uint32_t left = whole_free; left != 0 && std::popcount(chosen) < count;
         left &= left - 1)
      if (numa_node_of(node, std::countr_zero(left)) == best) chosen |= left & (~left + 1);
    at(free_of, best) = 0;
  }
  return chosen;
}

// The fullest `role.devices` devices below one NUMA node that have a slot each; 0 where none has.
std::uint32_t choose_slices(const ClusterNode& node, const NodeCapacity& free, const Role& role) {
  std::uint32_t best = 0;
  int best_free = std::numeric_limits<int>::max();
  for (int numa = 0; numa < std::max(1, node.numa_nodes); ++numa) {
    std::vector<int> usable;
    for (int device = 0; device < node.devices; ++device)
      if (numa_node_of(node, device) == numa && slots_of(free, role, device) > 0)
        usable.push_back(device);
    if (std::ssize(usable) < role.devices) continue;
    std::stable_sort(usable.begin(), usable.end(), [&free](int a, int b) {
      return at(free.device_milli, a) < at(free.device_milli, b);
    });
    std::uint32_t chosen = 0;
    int left = 0;
    for (int i = 0; i < role.devices; ++i) {
      chosen |= 1U << at(usable, i);
      left += at(free.device_milli, at(usable, i));
    }
    if (left >= best_free) continue;
    best = chosen;
    best_free = left;
  }
  return best;
}

// The replicas to place on one node.
class NodeFit {
 public:
  NodeFit(const ClusterNode& node, const NodeCapacity& free, std::span<const Role> roles,
          std::span<const int> counts)
      : node_(node), free_(free), roles_(roles), left_(counts.begin(), counts.end()) {
    by_size_.resize(roles.size());
    std::iota(by_size_.begin(), by_size_.end(), 0);
    std::stable_sort(by_size_.begin(), by_size_.end(), [roles](int a, int b) {
      const Role& first = at(roles, a);
      const Role& second = at(roles, b);
      return std::pair{first.devices * first.device_milli, first.device_memory_mib} >
             std::pair{second.devices * second.device_milli, second.device_memory_mib};
    });
  }

  bool place_all() {
    if (!has_shared_resources() || !place_whole()) return false;
    const NodeCapacity free = free_;
    const std::size_t placed = placements_.size();
    if (place_slices_greedily()) return true;
    free_ = free;
    placements_.resize(placed);
    return place_slices_exactly();
  }

  std::vector<ReplicaPlacement> placements() {
    std::stable_sort(placements_.begin(), placements_.end(),
                     [](const auto& a, const auto& b) { return a.role < b.role; });
    return std::move(placements_);
  }

 private:
  bool has_shared_resources() const {
    long long cpu = 0;
    long long memory = 0;
    long long nic = 0;
    for (int role = 0; role < std::ssize(roles_); ++role) {
      const long long count = at(left_, role);
      cpu += count * at(roles_, role).cpu_milli;
      memory += count * at(roles_, role).memory_mib;
      nic += count * at(roles_, role).nic_milli;
    }
    const auto is_enough = [](long long need, int have) { return need == 0 || need <= have; };
    return is_enough(cpu, free_.cpu_milli) && is_enough(memory, free_.memory_mib) &&
           is_enough(nic, free_.nic_milli);
  }

  void place(int role, std::uint32_t devices) {
    take_replica(node_, at(roles_, role), devices, free_);
    placements_.push_back({role, 0, devices});
  }

  bool place_whole() {
    for (const int role : by_size_) {
      const Role& request = at(roles_, role);
      if (request.is_sliced()) continue;
      if (at(left_, role) > 0 && request.device_memory_mib > node_.device_memory_mib &&
          request.devices > 0)
        return false;
      for (int i = 0; i < at(left_, role); ++i) {
        if (std::popcount(free_.whole_free) < request.devices) return false;
        place(role, choose_whole_devices(node_, free_.whole_free, request.devices));
      }
    }
    return true;
  }

  bool place_slices_greedily() {
    for (const int role : by_size_) {
      if (!at(roles_, role).is_sliced()) continue;
      for (int i = 0; i < at(left_, role); ++i) {
        const std::uint32_t devices = choose_slices(node_, free_, at(roles_, role));
        if (devices == 0) return false;
        place(role, devices);
      }
    }
    return true;
  }

  bool place_slices_exactly() {
    std::vector<int> sliced;
    for (const int role : by_size_)
      if (at(roles_, role).is_sliced() && at(left_, role) > 0) sliced.push_back(role);
    if (sliced.size() == 1) return place_one_sliced_role(sliced[0]);
    states_left_ = kNodeStatesMax;
    failed_.clear();
    return search(sliced, 0, at(left_, sliced[0]));
  }

  // As many slices as can be on the fullest devices; then each replica takes the devices with the
  // most slices left to give, so that none is left with more than replicas follow.
  bool place_one_sliced_role(int role) {
    const Role& request = at(roles_, role);
    const int replicas = at(left_, role);
    std::vector<int> devices(as_index(node_.devices));
    std::iota(devices.begin(), devices.end(), 0);
    std::stable_sort(devices.begin(), devices.end(), [this](int a, int b) {
      return at(free_.device_milli, a) < at(free_.device_milli, b);
    });
    DeviceCounts slices{};
    long long missing = 1LL * replicas * request.devices;
    for (const int device : devices) {
      const int slots = std::min(slots_of(free_, request, device), replicas);
      at(slices, device) = static_cast<int>(std::min<long long>(slots, missing));
      missing -= at(slices, device);
    }
    if (missing > 0) return false;
    for (int i = 0; i < replicas; ++i) {
      std::stable_sort(devices.begin(), devices.end(),
                       [&slices](int a, int b) { return at(slices, a) > at(slices, b); });
      std::uint32_t chosen = 0;
      for (int j = 0; j < request.devices; ++j) {
        chosen |= 1U << at(devices, j);
        --at(slices, at(devices, j));
      }
      place(role, chosen);
    }
    return true;
  }

  // Depth-first over the devices of one replica after another; devices with equal free shares are
  // tried once, and states known to fail are not visited again.
  bool search(const std::vector<int>& sliced, int at_role, int replicas) {
    while (replicas == 0) {
      if (++at_role == std::ssize(sliced)) return true;
      replicas = at(left_, at(sliced, at_role));
    }
    if (--states_left_ < 0) return false;
    State state{{at_role, replicas}};
    for (int device = 0; device < node_.devices; ++device)
      state.emplace_back(at(free_.device_milli, device), at(free_.device_memory_mib, device));
    std::sort(state.begin() + 1, state.end());
    if (failed_.contains(state)) return false;
    if (choose_devices(sliced, at_role, replicas, {})) return true;
    failed_.insert(std::move(state));
    return false;
  }

  struct PartialChoice {
    std::uint32_t chosen = 0;
    std::uint32_t refused = 0;
  };

  bool choose_devices(const std::vector<int>& sliced, int at_role, int replicas,
                      PartialChoice choice) {
    const int role = at(sliced, at_role);
    if (std::popcount(choice.chosen) == at(roles_, role).devices) {
      const NodeCapacity free = free_;
      place(role, choice.chosen);
      if (search(sliced, at_role, replicas - 1)) return true;
      free_ = free;
      placements_.pop_back();
      return false;
    }
    int next = -1;
    for (int device = 0; device < node_.devices; ++device) {
      if (((choice.chosen | choice.refused) >> device & 1U) != 0) continue;
      if (slots_of(free_, at(roles_, role), device) == 0) continue;
      if (next < 0 || at(free_.device_milli, device) < at(free_.device_milli, next)) next = device;
    }
    if (next < 0) return false;
    PartialChoice with = choice;
    with.chosen |= 1U << next;
    if (choose_devices(sliced, at_role, replicas, with)) return true;
    for (int device = 0; device < node_.devices; ++device)
      if (at(free_.device_milli, device) == at(free_.device_milli, next) &&
          at(free_.device_memory_mib, device) == at(free_.device_memory_mib, next) &&
          (choice.chosen >> device & 1U) == 0)
        choice.refused |= 1U << device;
    return choose_devices(sliced, at_role, replicas, choice);
  }

  using State = std::vector<std::pair<int, int>>;

  const ClusterNode& node_;
  NodeCapacity free_;
  std::span<const Role> roles_;
  std::vector<int> left_;
  std::vector<int> by_size_;  // roles, those with the largest replicas first
  std::vector<ReplicaPlacement> placements_;
  int states_left_ = 0;
  std::set<State> failed_;
};

}  // namespace

int replicas_max(const ClusterNode& node, const NodeCapacity& free, const Role& role) {
  if (!free.is_open) return 0;
  const int whole = free.whole_free != 0 ? std::popcount(free.whole_free) : 0;
  if (whole < role.devices && !role.is_sliced()) return 0;  // most nodes of a full cluster
  int most = std::min({parts_of(free.cpu_milli, role.cpu_milli),
                       parts_of(free.memory_mib, role.memory_mib),
                       parts_of(free.nic_milli, role.nic_milli)});
  if (role.devices == 0 || most == 0) return most;
  if (role.devices > node.devices || role.device_memory_mib > node.device_memory_mib) return 0;
  if (!role.is_sliced()) return std::min(most, whole / role.devices);
  DeviceCounts slots{};
  for (int device = 0; device < node.devices; ++device)
    at(slots, device) = slots_of(free, role, device);
  while (most > 0) {
    long long sum = 0;
    for (int device = 0; device < node.devices; ++device)
      sum += std::min(at(slots, device), most);
    if (sum >= 1LL * most * role.devices) break;
    most = static_cast<int>(sum / role.devices);
  }
  return most;
}

std::optional<std::vector<ReplicaPlacement>> fit_on_node(const ClusterNode& node,
                                                         const NodeCapacity& free,
                                                         std::span<const Role> roles,
                                                         std::span<const int> counts) {
  if (!free.is_open && std::any_of(counts.begin(), counts.end(), [](int n) { return n > 0; }))
    return std::nullopt;
  NodeFit fit(node, free, roles, counts);
  if (!fit.place_all()) return std::nullopt;
  return fit.placements();
}

}  // namespace regatta::sched
