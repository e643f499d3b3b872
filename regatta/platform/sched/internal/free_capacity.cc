#include "regatta/platform/sched/internal/free_capacity.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

// Ends a domain wherever `key` of the nodes changes along the order.
template <typename Key>
void form_domains(ClusterDomains& domains, TopologyLevel level, Key key) {
  auto& ranges = at(domains.domains, static_cast<int>(level));
  auto& domain_of = at(domains.domain_of, static_cast<int>(level));
  domain_of.resize(domains.order.size());
  for (int i = 0; i < std::ssize(domains.order); ++i) {
    if (i == 0 || key(at(domains.order, i)) != key(at(domains.order, i - 1)))
      ranges.push_back({i, i});
    ranges.back().end = i + 1;
    at(domain_of, i) = static_cast<int>(std::ssize(ranges)) - 1;
  }
}

void index_device_types(const std::vector<ClusterNode>& nodes, ClusterDomains& domains) {
  std::map<std::string, int> known;
  for (const ClusterNode& node : nodes) {
    if (!domains.device_type.empty() &&
        at(domains.device_types, domains.device_type.back()) == node.device_type) {
      domains.device_type.push_back(domains.device_type.back());
      continue;
    }
    const auto [entry, is_new] =
        known.try_emplace(node.device_type, static_cast<int>(std::ssize(domains.device_types)));
    if (is_new) domains.device_types.push_back(node.device_type);
    domains.device_type.push_back(entry->second);
  }
}

ClusterDomains form_cluster_domains(const std::vector<ClusterNode>& nodes) {
  ClusterDomains domains;
  domains.order.resize(nodes.size());
  std::iota(domains.order.begin(), domains.order.end(), 0);
  std::stable_sort(domains.order.begin(), domains.order.end(), [&nodes](int a, int b) {
    const ClusterNode& first = at(nodes, a);
    const ClusterNode& second = at(nodes, b);
    return std::tie(first.group, first.leaf) < std::tie(second.group, second.leaf);
  });
  domains.position.resize(nodes.size());
  for (int i = 0; i < std::ssize(nodes); ++i)
    at(domains.position, at(domains.order, i)) = i;
  form_domains(domains, TopologyLevel::kServer, [](int node) { return node; });
  form_domains(domains, TopologyLevel::kLeaf, [&nodes](int node) {
    return std::pair{at(nodes, node).group, at(nodes, node).leaf};
  });
  form_domains(domains, TopologyLevel::kGroup,
               [&nodes](int node) { return at(nodes, node).group; });
  form_domains(domains, TopologyLevel::kCluster, [](int /*node*/) { return 0; });
  index_device_types(nodes, domains);
  return domains;
}

NodeCapacity empty_node(const ClusterNode& node) {
  NodeCapacity free;
  free.is_open = node.health == NodeHealth::kReady;
  free.cpu_milli = node.cpu_milli;
  free.memory_mib = node.memory_mib;
  free.nic_milli = node.nics * 1000;
  for (int device = 0; device < node.devices; ++device) {
    if ((node.failed_devices >> device & 1U) != 0) continue;
    free.whole_free |= 1U << device;
    at(free.device_milli, device) = kDeviceMilli;
    at(free.device_memory_mib, device) = node.device_memory_mib;
  }
  return free;
}

}  // namespace

void take_replica(const ClusterNode& node, const Role& role, std::uint32_t devices,
                  NodeCapacity& free) {
  free.cpu_milli -= role.cpu_milli;
  free.memory_mib -= role.memory_mib;
  free.nic_milli -= role.nic_milli;
  for (std::uint32_t left = devices & ~node.failed_devices; left != 0; left &= left - 1) {
    const int device = std::countr_zero(left);
    std::int16_t& milli = at(free.device_milli, device);
    std::int32_t& memory = at(free.device_memory_mib, device);
    free.whole_free &= ~(1U << device);
    milli = static_cast<std::int16_t>(milli - role.device_milli);
    memory -= role.memory_taken(node.device_memory_mib);
  }
}

void give_replica(const ClusterNode& node, const Role& role, std::uint32_t devices,
                  NodeCapacity& free) {
  free.cpu_milli += role.cpu_milli;
  free.memory_mib += role.memory_mib;
  free.nic_milli += role.nic_milli;
  for (std::uint32_t left = devices & ~node.failed_devices; left != 0; left &= left - 1) {
    const int device = std::countr_zero(left);
    std::int16_t& milli = at(free.device_milli, device);
    std::int32_t& memory = at(free.device_memory_mib, device);
    milli = static_cast<std::int16_t>(milli + role.device_milli);
    memory += role.memory_taken(node.device_memory_mib);
    if (milli == kDeviceMilli) free.whole_free |= 1U << device;
  }
}

FreeCapacity::FreeCapacity(const ClusterSnapshot& snapshot)
    : snapshot_(&snapshot),
      domains_(std::make_shared<const ClusterDomains>(form_cluster_domains(snapshot.nodes))) {
  free_.reserve(snapshot.nodes.size());
  for (const ClusterNode& node : snapshot.nodes)
    free_.push_back(empty_node(node));
  for (const RunningJob& job : snapshot.running)
    for (const ReplicaPlacement& replica : job.replicas)
      take_replica(node(replica.node), at(job.request.roles, replica.role), replica.devices,
                   at(free_, replica.node));
  for (int level = static_cast<int>(TopologyLevel::kLeaf); level < kTopologyLevels; ++level)
    at(sums_, level).resize(at(domains_->domains, level).size());
  has_free_.resize(snapshot.nodes.size() / kMaskBits + 1);
  for (int node = 0; node < nodes(); ++node)
    add_to_domains(node, {});
  sum_failures();
}

void FreeCapacity::sum_failures() {
  std::vector<double> before = {0};
  before.reserve(free_.size() + 1);
  for (const int node : domains_->order)
    before.push_back(before.back() + failures_per_day(node));
  failures_before_ = std::make_shared<const std::vector<double>>(std::move(before));
}

FreeCapacity::DomainSum FreeCapacity::sum_of(int node) const {
  const NodeCapacity& capacity = at(free_, node);
  const int devices = this->node(node).devices;
  if (!capacity.is_open || devices == 0) return {};
  long long milli = 0;
  for (const std::int16_t each : capacity.device_milli)
    milli += std::max<int>(0, each);
  return {milli, 1, std::popcount(capacity.whole_free) == devices ? 1 : 0};
}

// Counts what the node has now in place of `before`.
void FreeCapacity::add_to_domains(int node, const DomainSum& before) {
  const DomainSum now = sum_of(node);
  const int position = at(domains_->position, node);
  std::uint64_t& word = at(has_free_, position / kMaskBits);
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(position % kMaskBits);
  word = now.free_milli > 0 ? word | bit : word & ~bit;
  for (int level = static_cast<int>(TopologyLevel::kLeaf); level < kTopologyLevels; ++level) {
    DomainSum& sum = at(at(sums_, level), at(at(domains_->domain_of, level), position));
    sum.free_milli += now.free_milli - before.free_milli;
    sum.nodes += now.nodes - before.nodes;
    sum.whole_nodes += now.whole_nodes - before.whole_nodes;
  }
}

long long FreeCapacity::free_milli(TopologyLevel level, int domain) const {
  if (level == TopologyLevel::kServer) return sum_of(at(domains_->order, domain)).free_milli;
  return at(at(sums_, static_cast<int>(level)), domain).free_milli;
}

bool FreeCapacity::is_wholly_free(TopologyLevel level, int domain) const {
  const DomainSum sum = level == TopologyLevel::kServer
                            ? sum_of(at(domains_->order, domain))
                            : at(at(sums_, static_cast<int>(level)), domain);
  return sum.nodes > 0 && sum.whole_nodes == sum.nodes;
}

const ClusterNode& FreeCapacity::node(int node) const {
  return at(snapshot_->nodes, node);
}

const NodeCapacity& FreeCapacity::free(int node) const {
  return at(free_, node);
}

int FreeCapacity::nodes() const {
  return static_cast<int>(std::ssize(free_));
}

void FreeCapacity::take(const Role& role, const ReplicaPlacement& placement) {
  const DomainSum before = sum_of(placement.node);
  take_replica(node(placement.node), role, placement.devices, at(free_, placement.node));
  add_to_domains(placement.node, before);
}

void FreeCapacity::give(const Role& role, const ReplicaPlacement& placement) {
  const DomainSum before = sum_of(placement.node);
  give_replica(node(placement.node), role, placement.devices, at(free_, placement.node));
  add_to_domains(placement.node, before);
}

void FreeCapacity::block(const Role& role, const ReplicaPlacement& placement) {
  const DomainSum before = sum_of(placement.node);
  NodeCapacity& free = at(free_, placement.node);
  free.cpu_milli = std::max(0, free.cpu_milli - role.cpu_milli);
  free.memory_mib = std::max(0, free.memory_mib - role.memory_mib);
  free.nic_milli = std::max(0, free.nic_milli - role.nic_milli);
  free.whole_free &= ~placement.devices;
  for (int device = 0; device < kNodeDevicesMax; ++device) {
    if ((placement.devices >> static_cast<unsigned>(device) & 1U) == 0) continue;
    std::int16_t& milli = at(free.device_milli, device);
    std::int32_t& memory = at(free.device_memory_mib, device);
    milli = static_cast<std::int16_t>(std::max(std::min<int>(0, milli), milli - role.device_milli));
    memory = std::max(std::min(0, memory),
                      memory - role.memory_taken(node(placement.node).device_memory_mib));
  }
  add_to_domains(placement.node, before);
}

void FreeCapacity::open_device(int node, int device, int milli, int memory_mib) {
  const DomainSum before = sum_of(node);
  NodeCapacity& free = at(free_, node);
  at(free.device_milli, device) = static_cast<std::int16_t>(milli);
  at(free.device_memory_mib, device) = memory_mib;
  if (milli == kDeviceMilli) free.whole_free |= 1U << static_cast<unsigned>(device);
  add_to_domains(node, before);
}

void FreeCapacity::close_devices() {
  for (int node = 0; node < nodes(); ++node) {
    const DomainSum before = sum_of(node);
    NodeCapacity& free = at(free_, node);
    free.whole_free = 0;
    free.device_milli.fill(0);
    free.device_memory_mib.fill(0);
    add_to_domains(node, before);
  }
}

double FreeCapacity::failures_per_day(int node) const {
  return failures_per_day_ ? at(*failures_per_day_, node) : this->node(node).failures_per_day;
}

void FreeCapacity::set_failures_per_day(
    std::shared_ptr<const std::vector<double>> failures_per_day) {
  if (failures_per_day == failures_per_day_) return;
  failures_per_day_ = std::move(failures_per_day);
  sum_failures();
}

void FreeCapacity::set_open(int node, bool is_open) {
  const DomainSum before = sum_of(node);
  at(free_, node).is_open = is_open;
  add_to_domains(node, before);
}

}  // namespace regatta::sched
