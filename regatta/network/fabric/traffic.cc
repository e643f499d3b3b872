#include "regatta/network/fabric/traffic.h"

#include <algorithm>
#include <cmath>

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

void Paths::set_send_ahead(std::uint32_t path, const SendAhead& ahead) {
  REGATTA_CHECK(path < size() && ahead.rest < size() && ahead.bytes > 0 && !links(path).empty());
  if (send_aheads_.size() <= path) send_aheads_.resize(path + 1);
  send_aheads_[path] = ahead;
}

// Each packet of the last `again_after` seconds is lost, and lost again, by chance: the worst of n
// is lost k times or more with probability 1 - (1 - share^k)^n. On average the last ones were sent
// half of that time ago, and what is sent again meanwhile is among the amounts.
double Paths::loss_delay(std::uint32_t path, double bytes, double rate, double now) const {
  const auto found = losses_.find(path);
  if (found == losses_.end() || now >= found->second.until) return 0;
  const PacketLoss& loss = found->second;
  const double packets = std::min(bytes, rate * loss.again_after) / loss.packet / (1 - loss.share);
  double losses = 0;
  double worst = 1;
  for (double chance = loss.share; worst > 1e-6; chance *= loss.share) {
    worst = -std::expm1(std::max(packets, 1.0) * std::log1p(-chance));
    losses += worst;
  }
  const double rounds = std::max(losses - 0.5 - loss.share / (1 - loss.share), losses / 2);
  return std::min(rounds, 1 + (loss.until - now) / loss.again_after) * loss.again_after;
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
