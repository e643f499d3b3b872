#include "regatta/platform/mixing/device_division.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace regatta::mixing {
namespace {

constexpr double kEnough = 1e-6;       // of a device: less than this is not lacking
constexpr double kLeastWeight = 0.01;  // of a device

// divide_by_weight(), with memory that is kept.
void divide_into(std::span<const double> needs, std::span<const double> weights, double capacity,
                 std::vector<std::size_t>& hungry, std::vector<double>& got) {
  got.assign(needs.size(), 0);
  hungry.clear();
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (needs[i] > 0) hungry.push_back(i);
  double left = capacity;
  while (!hungry.empty() && left > 0) {
    double weight = 0;
    for (const std::size_t i : hungry)
      weight += weights[i];
    std::size_t still = 0;
    double given = 0;
    for (const std::size_t i : hungry) {
      if (needs[i] <= left * weights[i] / weight) {
        got[i] = needs[i];
        given += needs[i];
      } else {
        hungry[still++] = i;
      }
    }
    if (still == hungry.size()) {
      for (const std::size_t i : hungry)
        got[i] = left * weights[i] / weight;
      return;
    }
    left -= given;
    hungry.resize(still);
  }
}

}  // namespace

// Writes down the share of its demand that each got.
void DeviceDivider::book() {
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    if (needs_[i] - got_[i] <= kEnough) continue;
    division_.served[i] = got_[i] / needs_[i];
    division_.is_met[i] = false;
  }
}

void DeviceDivider::divide_together(std::span<const DeviceDemand> demands,
                                    const DivisionRule& rule) {
  double sum = 0;
  for (const DeviceDemand& demand : demands)
    sum += demand.share;
  sum = std::min(1.0, sum);
  for (const DeviceDemand& demand : demands) {
    const double others = std::max(0.0, sum - demand.share);
    needs_.push_back(demand.share * (1 + rule.interference * others));
    weights_.push_back(std::max(needs_.back(), kLeastWeight));
  }
  if (rule.mode == MixMode::kShared) {
    divide_into(needs_, weights_, 1, hungry_, got_);
    return;
  }
  part_ = needs_;
  for (std::size_t i = 0; i < demands.size(); ++i)
    if (!demands[i].has_target) part_[i] = 0;
  divide_into(part_, weights_, 1, hungry_, got_);
  for (std::size_t i = 0; i < demands.size(); ++i)
    part_[i] = demands[i].has_target ? 0 : needs_[i];
  const double left = std::max(0.0, 1 - std::accumulate(got_.begin(), got_.end(), 0.0));
  divide_into(part_, weights_, left, hungry_, rest_);
  for (std::size_t i = 0; i < demands.size(); ++i)
    got_[i] += rest_[i];
}

void DeviceDivider::divide_turns(std::span<const DeviceDemand> demands, const DivisionRule& rule,
                                 int& resident) {
  int active = 0;
  int last = -1;
  double need = 0;
  double swap_bytes = 0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    needs_.push_back(demands[i].share);
    if (demands[i].share <= 0) continue;
    ++active;
    last = static_cast<int>(i);
    need += demands[i].share;
    swap_bytes += 2 * static_cast<double>(demands[i].memory.value);
  }
  weights_.assign(demands.size(), 1);
  got_ = needs_;
  if (active == 0) return;
  const bool is_alone = active == 1;
  const bool has_swap = rule.is_swapped && !(is_alone && last == resident);
  const double turns =
      is_alone ? 1 : std::max(1.0, need * rule.interval.value / rule.lease.value / active);
  const double swap = has_swap ? turns * swap_bytes / rule.link.value / rule.interval.value : 0;
  resident = last;
  division_.swapped = std::min(1.0, swap);
  divide_into(needs_, weights_, 1 - division_.swapped, hungry_, got_);
  if (is_alone && !has_swap) return;
  for (std::size_t i = 0; i < demands.size(); ++i)
    if (demands[i].share > 0 && demands[i].has_target) division_.is_met[i] = false;
}

const DeviceDivision& DeviceDivider::divide(std::span<const DeviceDemand> demands,
                                            const DivisionRule& rule, int& resident) {
  division_.served.assign(demands.size(), 1);
  division_.is_met.assign(demands.size(), true);
  division_.swapped = 0;
  needs_.clear();
  weights_.clear();
  if (rule.mode == MixMode::kTimeSlice)
    divide_turns(demands, rule, resident);
  else
    divide_together(demands, rule);
  book();
  return division_;
}

std::vector<double> divide_by_weight(std::span<const double> needs, std::span<const double> weights,
                                     double capacity) {
  std::vector<double> got;
  std::vector<std::size_t> hungry;
  divide_into(needs, weights, capacity, hungry, got);
  return got;
}

}  // namespace regatta::mixing
