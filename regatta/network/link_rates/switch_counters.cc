#include "regatta/network/link_rates/switch_counters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kNameMost = 64;
constexpr double kRateMost = 1e16;  // bits per second

using Count = std::optional<std::uint64_t>;

// Adds how far a counter went; one that went back started anew.
void add_difference(Count& total, const Count& before, const Count& now) {
  if (!now) return;
  if (!total) total = 0;
  if (before) *total += *now >= *before ? *now - *before : *now;
}

bool waits(const SwitchPortCounters& reading) {
  return reading.queued.value_or(0) > 0;
}

}  // namespace

Result<SwitchPortCounters> parse_switch_counters(std::string_view line, const std::string& file,
                                                 int number) {
  const auto wrong = [&](const std::string& problem) {
    return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", file, number, problem)};
  };
  if (line.size() > kSwitchCountersLineMost)
    return wrong(fmt::format("the line is longer than {} letters", kSwitchCountersLineMost));
  const std::vector<std::string> fields = split(line, ',');
  constexpr std::size_t kFields = 14;
  if (fields.size() != kFields)
    return wrong(fmt::format("{} fields; write the {} of the heading", fields.size(), kFields));
  SwitchPortCounters reading{.device = fields[1], .port = fields[2]};
  const auto at = parse_number<double>(fields[0]);
  if (!at || !std::isfinite(*at)) return wrong("at_s is no number of seconds; write it like 12.5");
  reading.at.value = *at;
  for (const std::string& name : {reading.device, reading.port})
    if (name.empty() || name.size() > kNameMost)
      return wrong("the device or the port is empty or longer than 64 letters; name both");
  if (!fields[3].empty()) {
    const auto rate = parse_number<double>(fields[3]);
    if (!rate || !(*rate >= 0) || *rate > kRateMost)
      return wrong("rate_bps is no rate in bits per second; leave it empty where it is not known");
    reading.rate = BytesPerSecond{*rate / 8};
  }
  const std::array<Count*, 10> counts = {
      &reading.in.bytes,  &reading.in.packets,  &reading.in.drops,  &reading.in.errors,
      &reading.out.bytes, &reading.out.packets, &reading.out.drops, &reading.out.errors,
      &reading.queued,    &reading.rx_pauses};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string& field = fields[4 + i];
    if (field.empty()) continue;
    *counts[i] = parse_number<std::uint64_t>(field);
    if (!*counts[i])
      return wrong(
          fmt::format("field {} is no whole number from 0 on; leave it empty where it is "
                      "not known",
                      5 + i));
  }
  return reading;
}

SwitchCounterTotals::SwitchCounterTotals(const topo::Graph& graph)
    : graph_(graph), totals_(2 * graph.links.size()) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    nodes_.emplace(graph.nodes[i].name, NodeId{static_cast<int>(i)});
}

Result<SwitchCounterTotals::PortPlace> SwitchCounterTotals::place_of(
    const SwitchPortCounters& reading) const {
  const auto node = nodes_.find(reading.device);
  if (node == nodes_.end())
    return Error{Code::kInvalidInput,
                 fmt::format("device {}: is not in the cluster; name a switch or server of it, "
                             "like {}",
                             printable(reading.device, kNameMost), graph_.nodes.back().name)};
  const std::vector<LinkId>& links = graph_.links_of[node->second.index()];
  for (const LinkId link : links)
    if (graph_.links[link.index()].name == reading.port)
      return PortPlace{fabric::number_of({link, graph_.links[link.index()].a == node->second})};
  return Error{Code::kInvalidInput,
               fmt::format("port {}: {} has no such link; name the port by its link{}",
                           printable(reading.port, kNameMost), reading.device,
                           links.empty() ? "" : ", like " + graph_.links[links[0].index()].name)};
}

Status SwitchCounterTotals::add(const SwitchPortCounters& reading) {
  REGATTA_TRY(place, place_of(reading));
  const auto before = last_.find(place.out);
  if (before == last_.end()) {
    // The first reading says which counters there are.
    add_interval(place.out, reading, reading);
    last_.emplace(place.out, reading);
    return {};
  }
  if (reading.at <= before->second.at)
    return Error{Code::kInvalidInput,
                 fmt::format("port {} of {}: at_s does not increase; write the readings of a port "
                             "in the order of time",
                             reading.port, reading.device)};
  add_interval(place.out, before->second, reading);
  before->second = reading;
  return {};
}

void SwitchCounterTotals::add_interval(std::uint32_t out, const SwitchPortCounters& before,
                                       const SwitchPortCounters& now) {
  LinkCounterTotals& sent = totals_[out];
  LinkCounterTotals& received = totals_[out ^ 1U];
  if (now.rate && now.rate->value > 0)
    for (LinkCounterTotals* const one : {&sent, &received})
      one->port_rate = one->port_rate ? std::min(*one->port_rate, *now.rate) : *now.rate;
  add_difference(sent.packets, before.out.packets, now.out.packets);
  add_difference(sent.drops, before.out.drops, now.out.drops);
  add_difference(sent.errors, before.out.errors, now.out.errors);
  add_difference(received.errors, before.in.errors, now.in.errors);
  const Seconds time = now.at - before.at;
  if (time.value <= 0 || !now.out.bytes || !before.out.bytes) return;
  sent.time += time;
  const std::uint64_t bytes =
      *now.out.bytes >= *before.out.bytes ? *now.out.bytes - *before.out.bytes : *now.out.bytes;
  const BytesPerSecond rate{static_cast<double>(bytes) / time.value};
  sent.peak = std::max(sent.peak, rate);
  if (!waits(before) || !waits(now)) return;
  sent.waiting_peak = std::max(sent.waiting_peak, rate);
  ++sent.waiting_intervals;
  if (now.rx_pauses.value_or(0) > before.rx_pauses.value_or(0)) ++sent.paused_intervals;
}

}  // namespace regatta::link_rates
