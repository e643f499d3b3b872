// Mixes of workloads that are known by their profiles: mixing/mix_decision.h.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <tuple>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/mixing/mix_decision.h"

namespace regatta::mixing {
namespace {

auto content_of(const ProfiledWorkload& workload) {
  return std::tie(workload.load_class, workload.memory, workload.duty.shares, workload.duty.day);
}

void add_hash(std::uint64_t& hash, std::uint64_t value) {
  hash = splitmix(hash ^ value);
}

unsigned seed_of(const ProfiledWorkload& workload, int equal_before) {
  std::uint64_t hash = splitmix(as_index(equal_before));
  add_hash(hash, static_cast<std::uint64_t>(workload.load_class));
  add_hash(hash, static_cast<std::uint64_t>(workload.memory.value));
  for (const std::vector<float>* values : {&workload.duty.shares, &workload.duty.day}) {
    add_hash(hash, values->size());
    for (const float value : *values)
      add_hash(hash, std::bit_cast<std::uint32_t>(value));
  }
  return static_cast<unsigned>(hash);
}

template <typename Value>
void add_bytes(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string bytes_of(const ProfiledWorkload& workload) {
  std::string bytes;
  add_bytes(bytes, workload.load_class);
  add_bytes(bytes, workload.memory.value);
  for (const std::vector<float>* values : {&workload.duty.shares, &workload.duty.day}) {
    add_bytes(bytes, values->size());
    for (const float value : *values)
      add_bytes(bytes, value);
  }
  return bytes;
}

std::string bytes_of(const DeviceCapacity& device, const ServiceBudget& budget) {
  std::string bytes;
  add_bytes(bytes, device.memory.value);
  add_bytes(bytes, device.host_memory.value);
  add_bytes(bytes, device.link.value);
  add_bytes(bytes, device.interference);
  add_bytes(bytes, budget.missed_share);
  add_bytes(bytes, budget.missed_price);
  add_bytes(bytes, budget.reclaim_lead.value);
  return bytes;
}

int number_of(std::map<std::string, int>& numbers, std::string bytes) {
  return numbers.try_emplace(std::move(bytes), static_cast<int>(numbers.size())).first->second;
}

}  // namespace

Result<MixDecision> decide_profiled_mix(std::span<const ProfiledWorkload> workloads,
                                        const DeviceCapacity& device, const ServiceBudget& budget) {
  std::vector<int> order(workloads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return content_of(at(workloads, a)) < content_of(at(workloads, b));
  });
  std::vector<MixedWorkload> drawn;
  int equal_before = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ProfiledWorkload& workload = at(workloads, order[i]);
    const bool is_equal = i > 0 && content_of(workload) == content_of(at(workloads, order[i - 1]));
    equal_before = is_equal ? equal_before + 1 : 0;
    drawn.push_back(
        {workload.name, workload.load_class, workload.memory,
         draw_series(workload.duty, kDrawnDays, kDrawnInterval, seed_of(workload, equal_before))});
  }
  ServiceBudget drawn_budget = budget;
  drawn_budget.interval = kDrawnInterval;
  REGATTA_TRY(decision, decide_mix(drawn, device, drawn_budget));
  std::vector<SliceSetting> slices(workloads.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    at(slices, order[i]) = std::move(decision.slices[i]);
  decision.slices = std::move(slices);
  return decision;
}

int MixMemo::kind_of(const ProfiledWorkload& workload) {
  const int kind = number_of(kind_by_bytes_, bytes_of(workload));
  if (kind == std::ssize(kinds_)) {
    kinds_.push_back(workload);
    kinds_.back().name.clear();
    means_.push_back(mean_share(workload.duty));
  }
  return kind;
}

const Result<MixDecision>& MixMemo::decide(const std::vector<int>& kinds,
                                           const DeviceCapacity& device,
                                           const ServiceBudget& budget) {
  std::pair key{number_of(device_by_bytes_, bytes_of(device, budget)), kinds};
  const auto known = decisions_.find(key);
  if (known != decisions_.end()) return known->second;
  std::vector<ProfiledWorkload> workloads;
  for (const int kind : kinds)
    workloads.push_back(at(kinds_, kind));
  return decisions_.emplace(std::move(key), decide_profiled_mix(workloads, device, budget))
      .first->second;
}

}  // namespace regatta::mixing
