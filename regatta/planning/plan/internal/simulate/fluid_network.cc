#include "regatta/planning/plan/internal/simulate/fluid_network.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"

namespace regatta::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A transfer with less than this left has ended: below a byte, above rounding.
constexpr double kBytesOver = 1e-3;

std::size_t index_of(const ResourceLoad& load) {
  return static_cast<std::size_t>(load.resource);
}

}  // namespace

FluidNetwork::FluidNetwork(std::vector<double> capacities)
    : capacities_(std::move(capacities)), link_of_(capacities_.size(), -1) {}

void FluidNetwork::start(const FluidTransfer* transfer, int tag) {
  const double bytes = transfer->loads.empty() ? 0 : transfer->bytes_per_flow;
  active_.push_back({transfer, tag, bytes, 0});
  stale_ = true;
}

// The rate of each flow of a transfer is a max-min fair one; resources count as links, by the order
// in which the present transfers first cross them.
void FluidNetwork::share() {
  stale_ = false;
  fabric::MaxMinProblem problem;
  for (const Active& one : active_) {
    for (const ResourceLoad& load : one.transfer->loads) {
      int& link = link_of_[index_of(load)];
      if (link < 0) link = static_cast<int>(problem.add_link(capacities_[index_of(load)]));
      problem.links.push_back(static_cast<std::uint32_t>(link));
      problem.amounts.push_back(load.weight);
    }
    problem.first.push_back(static_cast<std::uint32_t>(problem.links.size()));
  }
  const std::vector<double> rates = fabric::max_min_rates(problem);
  for (std::size_t i = 0; i < active_.size(); ++i) {
    // One that crosses nothing has ended already.
    active_[i].rate = active_[i].transfer->loads.empty() ? 0 : rates[i];
    for (const ResourceLoad& load : active_[i].transfer->loads)
      link_of_[index_of(load)] = -1;
  }
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
