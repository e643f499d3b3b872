#include "regatta/platform/mixing/internal/device_loads.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr double kTie = 1e-6;  // costs that differ by less are equal

}  // namespace

DeviceLoads::DeviceLoads(std::span<const LoadSamples> loads, std::span<const int> homes,
                         LoadCosts costs)
    : loads_(loads), costs_(costs), before_(homes.begin(), homes.end()), homes_(loads.size(), -1) {
  const std::size_t samples = loads.empty() ? 0 : loads.front().demand.size();
  zeros_.assign(samples, 0);
  for (const LoadSamples& load : loads)
    means_.push_back(std::accumulate(load.demand.begin(), load.demand.end(), 0.0) /
                     static_cast<double>(std::max<std::size_t>(1, samples)));
  if (costs.are_independent)
    for (const LoadSamples& load : loads)
      needs_.push_back(need_of(load.demand, costs.interference));
  before_.resize(loads.size(), -1);
  for (std::size_t load = 0; load < loads.size(); ++load) {
    const int device = before_[load];
    if (device < 0) continue;
    if (device >= std::ssize(devices_)) devices_.resize(as_index(device) + 1);
    at(devices_, device).members.push_back(static_cast<int>(load));
    homes_[load] = device;
  }
  for (Device& device : devices_)
    rebuild(device);
}

void DeviceLoads::rebuild(Device& device) {
  for (auto* sums : {&device.target, &device.target_squares, &device.all, &device.all_squares})
    sums->assign(zeros_.size(), 0);
  device.memory = {};
  device.targets = 0;
  for (const int member : device.members) {
    const LoadSamples& load = at(loads_, member);
    device.memory += load.memory;
    device.targets += load.has_target ? 1 : 0;
    for (std::size_t i = 0; i < zeros_.size(); ++i) {
      const float demand = load.demand[i];
      device.all[i] += demand;
      device.all_squares[i] += demand * demand;
      if (!load.has_target) continue;
      device.target[i] += demand;
      device.target_squares[i] += demand * demand;
    }
  }
  if (costs_.are_independent) device.need = need_without(device, -1);
  device.cost = cost_with(device, -1, -1);
}

NeedTail DeviceLoads::need_without(const Device& device, int minus) const {
  NeedDistribution need;
  for (const int member : device.members)
    if (member != minus) need = sum_of(need, at(needs_, member));
  return tail_of(need);
}

DeviceCost DeviceLoads::independent_cost(const Device& device, int plus, int minus) const {
  const NeedTail need = minus >= 0 ? need_without(device, minus) : device.need;
  const double missed = plus >= 0 ? above_together(need, at(needs_, plus)) : need[kNeedParts];
  return {missed, 0, 1 + costs_.missed_price * missed};
}

DeviceCost DeviceLoads::cost_with(const Device& device, int plus, int minus) const {
  const int members =
      static_cast<int>(device.members.size()) + (plus >= 0 ? 1 : 0) - (minus >= 0 ? 1 : 0);
  if (members == 0) return {};
  if (costs_.are_independent) return independent_cost(device, plus, minus);
  const float* const more = plus >= 0 ? at(loads_, plus).demand.data() : zeros_.data();
  const float* const less = minus >= 0 ? at(loads_, minus).demand.data() : zeros_.data();
  const int more_targets = plus >= 0 && at(loads_, plus).has_target ? 1 : 0;
  const int less_targets = minus >= 0 && at(loads_, minus).has_target ? 1 : 0;
  const auto more_weight = static_cast<float>(more_targets);
  const auto less_weight = static_cast<float>(less_targets);
  const float k = costs_.interference;
  int missed = 0;
  float lost = 0;
  for (std::size_t i = 0; i < zeros_.size(); ++i) {
    const float added = more[i];
    const float removed = less[i];
    const float squares = added * added;
    const float removed_squares = removed * removed;
    const float all = device.all[i] + added - removed;
    const float occupied = std::min(all, 1.0F);
    const float target = device.target[i] + more_weight * added - less_weight * removed;
    const float target_squares =
        device.target_squares[i] + more_weight * squares - less_weight * removed_squares;
    missed += exceeds_device(target + k * (occupied * target - target_squares)) ? 1 : 0;
    lost +=
        std::max(0.0F, mixed_demand(all, device.all_squares[i] + squares - removed_squares, k) - 1);
  }
  const auto samples = static_cast<double>(std::max<std::size_t>(1, zeros_.size()));
  const double missed_share = missed / samples;
  const double lost_share = static_cast<double>(lost) / samples;
  const int targets = device.targets + more_targets - less_targets;
  return {missed_share, lost_share, 1 + costs_.missed_price * missed_share * targets + lost_share};
}

double DeviceLoads::move_cost(int load, int device) const {
  const int before = at(before_, load);
  return before >= 0 && before != device ? costs_.move_price : 0;
}

DeviceLoads::Choice DeviceLoads::cheapest(int load, int excluded, bool may_open,
                                          double most) const {
  Choice best;
  double best_mean = 0;
  const Bytes memory = at(loads_, load).memory;
  for (int number = 0; number < std::ssize(devices_); ++number) {
    const Device& device = at(devices_, number);
    if (number == excluded || device.members.empty()) continue;
    if (device.memory + memory > costs_.memory) continue;
    const double cost =
        cost_with(device, load, -1).total - device.cost.total + move_cost(load, number);
    const double mean =
        std::accumulate(device.members.begin(), device.members.end(), 0.0,
                        [&](double sum, int member) { return sum + at(means_, member); });
    if (cost > most) continue;
    if (best.device >= 0 &&
        (cost > best.cost + kTie || (cost > best.cost - kTie && mean <= best_mean)))
      continue;
    best = {number, cost};
    best_mean = mean;
  }
  if (!may_open) return best;
  Device opened;
  opened.target = opened.target_squares = opened.all = opened.all_squares = zeros_;
  const double cost = cost_with(opened, load, -1).total + move_cost(load, -1);
  if (cost <= most && (best.device < 0 || cost < best.cost - kTie)) {
    best = {static_cast<int>(devices_.size()), cost};
    for (int number = 0; number < std::ssize(devices_); ++number) {
      if (!at(devices_, number).members.empty() || number == excluded) continue;
      best.device = number;
      break;
    }
  }
  return best;
}

void DeviceLoads::put(int load, int device) {
  if (device >= std::ssize(devices_)) devices_.resize(as_index(device) + 1);
  at(devices_, device).members.push_back(load);
  rebuild(at(devices_, device));
  at(homes_, load) = device;
}

void DeviceLoads::take(int load) {
  Device& device = at(devices_, at(homes_, load));
  std::erase(device.members, load);
  rebuild(device);
  at(homes_, load) = -1;
}

void DeviceLoads::place_all() {
  std::vector<int> loose;
  for (int load = 0; load < std::ssize(loads_); ++load)
    if (at(homes_, load) < 0) loose.push_back(load);
  std::stable_sort(loose.begin(), loose.end(),
                   [&](int a, int b) { return at(means_, a) > at(means_, b); });
  for (const int load : loose)
    put(load, cheapest(load, -1, true, 1e300).device);
}

bool DeviceLoads::relocate(int load) {
  const int from = at(homes_, load);
  const Device& device = at(devices_, from);
  const double saved =
      device.cost.total - cost_with(device, -1, load).total + move_cost(load, from);
  if (saved <= kTie) return false;
  const bool is_alone = device.members.size() == 1;
  const Choice choice = cheapest(load, from, !is_alone, saved - kTie);
  if (choice.device < 0) return false;
  take(load);
  put(load, choice.device);
  return true;
}

bool DeviceLoads::dissolve(int device) {
  const std::vector<int> members = [&] {
    std::vector<int> sorted = at(devices_, device).members;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](int a, int b) { return at(means_, a) > at(means_, b); });
    return sorted;
  }();
  double left = at(devices_, device).cost.total - kTie;
  for (const int member : members)
    left += move_cost(member, device);
  std::size_t moved = 0;
  for (; moved < members.size(); ++moved) {
    const Choice choice = cheapest(members[moved], device, false, left);
    if (choice.device < 0) break;
    left -= choice.cost;
    take(members[moved]);
    put(members[moved], choice.device);
  }
  if (moved == members.size()) return true;
  for (std::size_t i = 0; i < moved; ++i) {
    take(members[i]);
    put(members[i], device);
  }
  return false;
}

bool DeviceLoads::exchange(int first, int second) {
  const int a = at(homes_, first);
  const int b = at(homes_, second);
  if (a == b) return false;
  const Device& one = at(devices_, a);
  const Device& other = at(devices_, b);
  const Bytes first_memory = at(loads_, first).memory;
  const Bytes second_memory = at(loads_, second).memory;
  if (one.memory - first_memory + second_memory > costs_.memory) return false;
  if (other.memory - second_memory + first_memory > costs_.memory) return false;
  const double before =
      one.cost.total + other.cost.total + move_cost(first, a) + move_cost(second, b);
  const double after = cost_with(one, second, first).total + cost_with(other, first, second).total +
                       move_cost(first, b) + move_cost(second, a);
  if (after >= before - kTie) return false;
  take(first);
  take(second);
  put(first, b);
  put(second, a);
  return true;
}

void DeviceLoads::improve(int rounds, int exchanges, std::uint64_t seed) {
  place_all();
  packing::RandomSequence random(seed);
  for (int round = 0; round < rounds; ++round) {
    bool is_better = false;
    for (int load = 0; load < std::ssize(loads_); ++load)
      is_better = relocate(load) || is_better;
    for (int device = 0; device < std::ssize(devices_); ++device)
      if (!at(devices_, device).members.empty()) is_better = dissolve(device) || is_better;
    for (int i = 0; i < exchanges; ++i)
      is_better = exchange(static_cast<int>(random.below(loads_.size())),
                           static_cast<int>(random.below(loads_.size()))) ||
                  is_better;
    if (!is_better) return;
  }
}

int DeviceLoads::devices_in_use() const {
  return static_cast<int>(std::count_if(devices_.begin(), devices_.end(), [](const Device& device) {
    return !device.members.empty();
  }));
}

double DeviceLoads::missed_share() const {
  double sum = 0;
  for (const Device& device : devices_)
    sum += device.cost.missed_share;
  return sum / std::max(1, devices_in_use());
}

}  // namespace regatta::mixing
