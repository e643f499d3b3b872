#include "regatta/platform/mixing/device_division.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "regatta/base/core/ids.h"

namespace regatta::mixing {
namespace {

constexpr double kEnough = 1e-6;       // of a device: less than this is not lacking
constexpr double kLeastWeight = 0.01;  // of a device

// Needs of the workloads that run, grown by what the others occupy.
std::vector<double> needs_of(std::span<const DeviceDemand> demands, double k) {
  double sum = 0;
  for (const DeviceDemand& demand : demands)
    sum += demand.share;
  sum = std::min(1.0, sum);
  std::vector<double> needs;
  needs.reserve(demands.size());
  for (const DeviceDemand& demand : demands)
    needs.push_back(demand.share * (1 + k * std::max(0.0, sum - demand.share)));
  return needs;
}

// Work with a target takes first where it is preferred.
std::vector<double> divide_together(std::span<const DeviceDemand> demands,
                                    const std::vector<double>& needs, bool prefers_targets) {
  std::vector<double> weights;
  weights.reserve(needs.size());
  for (const double need : needs)
    weights.push_back(std::max(need, kLeastWeight));
  if (!prefers_targets) return divide_by_weight(needs, weights, 1);
  std::vector<double> first = needs;
  std::vector<double> second = needs;
  for (std::size_t i = 0; i < needs.size(); ++i)
    (demands[i].has_target ? second : first)[i] = 0;
  std::vector<double> got = divide_by_weight(first, weights, 1);
  const double left = std::max(0.0, 1 - std::accumulate(got.begin(), got.end(), 0.0));
  const std::vector<double> rest = divide_by_weight(second, weights, left);
  for (std::size_t i = 0; i < needs.size(); ++i)
    got[i] += rest[i];
  return got;
}

// What each got of its need, as a share of its demand.
void book(std::span<const double> needs, std::span<const double> got, DeviceDivision& division) {
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (needs[i] - got[i] <= kEnough) continue;
    division.served[i] = got[i] / needs[i];
    division.is_met[i] = false;
  }
}

void divide_turns(std::span<const DeviceDemand> demands, const DivisionRule& rule, int& resident,
                  DeviceDivision& division) {
  std::vector<double> needs;
  std::vector<int> active;
  double need = 0;
  double swap_bytes = 0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    needs.push_back(demands[i].share);
    if (demands[i].share <= 0) continue;
    active.push_back(static_cast<int>(i));
    need += demands[i].share;
    swap_bytes += 2 * static_cast<double>(demands[i].memory.value);
  }
  if (active.empty()) return;
  const bool is_alone = active.size() == 1;
  const bool has_swap = rule.is_swapped && !(is_alone && active.front() == resident);
  const double turns = is_alone ? 1
                                : std::max(1.0, need * rule.interval.value / rule.lease.value /
                                                    static_cast<double>(active.size()));
  const double swap = has_swap ? turns * swap_bytes / rule.link.value / rule.interval.value : 0;
  resident = active.back();
  division.swapped = std::min(1.0, swap);
  const std::vector<double> weights(demands.size(), 1);
  book(needs, divide_by_weight(needs, weights, 1 - division.swapped), division);
  if (is_alone && !has_swap) return;
  for (const int i : active)
    if (at(demands, i).has_target) division.is_met[as_index(i)] = false;
}

}  // namespace

DeviceDivision divide_device(std::span<const DeviceDemand> demands, const DivisionRule& rule,
                             int& resident) {
  DeviceDivision division{std::vector<double>(demands.size(), 1),
                          std::vector<bool>(demands.size(), true), 0};
  if (rule.mode == MixMode::kTimeSlice) {
    divide_turns(demands, rule, resident, division);
    return division;
  }
  const std::vector<double> needs = needs_of(demands, rule.interference);
  book(needs, divide_together(demands, needs, rule.mode != MixMode::kShared), division);
  return division;
}

std::vector<double> divide_by_weight(std::span<const double> needs, std::span<const double> weights,
                                     double capacity) {
  std::vector<double> got(needs.size());
  std::vector<std::size_t> hungry;
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (needs[i] > 0) hungry.push_back(i);
  double left = capacity;
  while (!hungry.empty() && left > 0) {
    double weight = 0;
    for (const std::size_t i : hungry)
      weight += weights[i];
    std::vector<std::size_t> still;
    double given = 0;
    for (const std::size_t i : hungry) {
      const double share = left * weights[i] / weight;
      if (needs[i] <= share) {
        got[i] = needs[i];
        given += needs[i];
      } else {
        still.push_back(i);
      }
    }
    if (still.size() == hungry.size()) {
      for (const std::size_t i : hungry)
        got[i] = left * weights[i] / weight;
      return got;
    }
    left -= given;
    hungry = std::move(still);
  }
  return got;
}

}  // namespace regatta::mixing
