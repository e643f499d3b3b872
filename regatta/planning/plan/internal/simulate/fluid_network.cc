#include "regatta/planning/plan/internal/simulate/fluid_network.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace regatta::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A transfer with less than this left has ended: below a byte, above rounding.
constexpr double kBytesOver = 1e-3;

std::size_t index_of(const ResourceLoad& load) {
  return static_cast<std::size_t>(load.resource);
}

}  // namespace

double isolated_time(const FluidTransfer& transfer, const std::vector<double>& capacities) {
  double time = 0;
  for (const ResourceLoad& load : transfer.loads)
    time = std::max(time, load.weight * transfer.bytes_per_flow / capacities[index_of(load)]);
  return time;
}

FluidNetwork::FluidNetwork(std::vector<double> capacities)
    : capacities_(std::move(capacities)),
      remaining_(capacities_.size()),
      weight_(capacities_.size()) {}

void FluidNetwork::start(const FluidTransfer* transfer, int tag) {
  const double bytes = transfer->loads.empty() ? 0 : transfer->bytes_per_flow;
  active_.push_back({transfer, tag, bytes, 0});
  stale_ = true;
}

// Progressive filling: the resource that gives each of its flows least fixes the rate of the
// transfers that cross it; what they leave is shared among the others.
void FluidNetwork::share() {
  stale_ = false;
  std::vector<int> touched;
  for (Active& one : active_) {
    one.rate = 0;
    for (const ResourceLoad& load : one.transfer->loads) {
      if (weight_[index_of(load)] == 0) {
        touched.push_back(load.resource);
        remaining_[index_of(load)] = capacities_[index_of(load)];
      }
      weight_[index_of(load)] += load.weight;
    }
  }
  const auto worst_rate = [&](const Active& one) {
    double rate = kInfinity;
    for (const ResourceLoad& load : one.transfer->loads)
      rate = std::min(rate, remaining_[index_of(load)] / weight_[index_of(load)]);
    return rate;
  };
  std::vector<Active*> open;
  for (Active& one : active_) {
    if (!one.transfer->loads.empty()) open.push_back(&one);
  }
  while (!open.empty()) {
    double level = kInfinity;
    for (const Active* one : open)
      level = std::min(level, worst_rate(*one));
    std::vector<Active*> fixed;
    std::vector<Active*> rest;
    for (Active* one : open)
      (worst_rate(*one) <= level * (1 + 1e-12) ? fixed : rest).push_back(one);
    for (Active* one : fixed) {
      one->rate = level;
      for (const ResourceLoad& load : one->transfer->loads) {
        remaining_[index_of(load)] =
            std::max(0.0, remaining_[index_of(load)] - level * load.weight);
        weight_[index_of(load)] -= load.weight;
      }
    }
    open = std::move(rest);
  }
  for (const int resource : touched)
    weight_[static_cast<std::size_t>(resource)] = 0;
}

double FluidNetwork::next_end() {
  if (stale_) share();
  double next = kInfinity;
  for (const Active& one : active_)
    next = std::min(next, one.left <= kBytesOver ? 0.0 : one.left / one.rate);
  return next;
}

std::vector<int> FluidNetwork::advance(double seconds) {
  if (stale_) share();
  std::vector<int> ended;
  for (Active& one : active_) {
    one.left -= one.rate * seconds;
    if (one.left <= kBytesOver) ended.push_back(one.tag);
  }
  if (!ended.empty()) {
    std::erase_if(active_, [](const Active& one) { return one.left <= kBytesOver; });
    stale_ = true;
  }
  return ended;
}

}  // namespace regatta::plan
