#include "regatta/network/fabric/traffic.h"

#include <algorithm>

namespace regatta::fabric {

std::uint32_t Paths::add(std::span<const std::uint32_t> links) {
  links_.insert(links_.end(), links.begin(), links.end());
  if (has_amounts()) amounts_.resize(links_.size(), 1);
  first_.push_back(static_cast<std::uint32_t>(links_.size()));
  return static_cast<std::uint32_t>(size() - 1);
}

std::uint32_t Paths::add(std::span<const std::uint32_t> links, std::span<const double> amounts,
                         Seconds latency) {
  REGATTA_CHECK(links.size() == amounts.size() && latency.value >= 0 &&
                std::ranges::all_of(amounts, [](double amount) { return amount > 0; }));
  amounts_.resize(links_.size(), 1);
  amounts_.insert(amounts_.end(), amounts.begin(), amounts.end());
  const std::uint32_t path = add(links);
  latency_[path] = latency.value;
  return path;
}

double Paths::latency(std::uint32_t path, const Links& of) const {
  if (!latency_.empty()) {
    const auto found = latency_.find(path);
    if (found != latency_.end()) return found->second;
  }
  double sum = 0;
  for (const std::uint32_t link : links(path))
    sum += of.latency[link];
  return sum;
}

std::uint32_t FlowGraph::add(std::uint32_t path, Bytes bytes, Seconds delay) {
  REGATTA_CHECK(bytes.value >= 0 && delay.value >= 0 && flows_.size() < (1ULL << 31U));
  flows_.push_back({.bytes = static_cast<double>(bytes.value), .delay = delay.value, .path = path});
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void FlowGraph::depend(std::uint32_t flow, std::uint32_t before, After after) {
  REGATTA_CHECK(flow < flows_.size() && before < flows_.size());
  ++flows_[flow].pending_dependencies;
  dependencies_.push_back({before, 2 * flow + static_cast<std::uint32_t>(after)});
}

void FlowGraph::reserve(std::size_t flows, std::size_t waits) {
  flows_.reserve(flows);
  dependencies_.reserve(waits);
}

}  // namespace regatta::fabric
