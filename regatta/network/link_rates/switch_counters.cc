#include "regatta/network/link_rates/switch_counters.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/port_counters/port_counter_line.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kShownMost = 64;  // letters of an unknown name, in messages
constexpr double kRateMost = 1e16;      // bits per second
constexpr std::string_view kNeighborWord = "neighbor,";

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

Result<SwitchPortCounters> parse_switch_counters(std::string_view text, const std::string& file,
                                                 int number) {
  constexpr std::size_t kFields = 14;
  REGATTA_TRY(line,
              port_counters::PortCounterLine::parse(text, file, number, {kFields, kFields + 1}));
  SwitchPortCounters reading{.at = line.at(), .device = line.device(), .port = line.port()};
  if (!line.field(3).empty()) {
    const auto rate = parse_number<double>(line.field(3));
    if (!rate || !(*rate >= 0) || *rate > kRateMost)
      return line.error(
          "rate_bps is no rate in bits per second; leave it empty where it is not "
          "known");
    reading.rate = BytesPerSecond{*rate / 8};
  }
  const std::array<Count*, 10> counts = {
      &reading.in.bytes,  &reading.in.packets,  &reading.in.drops,  &reading.in.errors,
      &reading.out.bytes, &reading.out.packets, &reading.out.drops, &reading.out.errors,
      &reading.queued,    &reading.rx_pauses};
  for (std::size_t i = 0; i < counts.size(); ++i)
    REGATTA_TRY_DO(line.read(4 + i, *counts[i]));
  const std::string& up = line.field(kFields);
  if (!up.empty() && up != "0" && up != "1")
    return line.error("up is neither 0 nor 1; leave it empty where it is not known");
  if (!up.empty()) reading.is_up = up == "1";
  return reading;
}

Result<SwitchNeighbor> parse_switch_neighbor(std::string_view text, const std::string& file,
                                             int number) {
  text.remove_prefix(kNeighborWord.size());
  constexpr std::size_t kFields = 5;
  if (std::ranges::count(text, ',') != kFields - 1)
    return Error{Code::kInvalidInput,
                 fmt::format("{}:{}: a line of a neighbor has 6 fields; write "
                             "neighbor,at_s,device,port,neighbor,neighbor_port",
                             file, number)};
  REGATTA_TRY(line, port_counters::PortCounterLine::parse(text, file, number, {kFields, kFields}));
  SwitchNeighbor neighbor{.at = line.at(),
                          .device = line.device(),
                          .port = line.port(),
                          .neighbor = line.field(3),
                          .neighbor_port = line.field(4)};
  REGATTA_TRY_DO(
      line.check_names("the neighbor or its port", neighbor.neighbor, neighbor.neighbor_port));
  return neighbor;
}

}  // namespace

bool is_switch_counters_heading(std::string_view line) {
  return line == kSwitchCountersHeading || line == kSwitchCountersShortHeading;
}

Result<SwitchLine> parse_switch_line(std::string_view line, const std::string& file, int number) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > kSwitchCountersLineMost)
    return Error{Code::kInvalidInput, fmt::format("{}:{}: the line is longer than {} letters", file,
                                                  number, kSwitchCountersLineMost)};
  if (line.empty() || line.starts_with('#') || is_switch_counters_heading(line))
    return SwitchLine(std::monostate());
  if (line.starts_with(kNeighborWord)) {
    REGATTA_TRY(neighbor, parse_switch_neighbor(line, file, number));
    return SwitchLine(std::move(neighbor));
  }
  REGATTA_TRY(reading, parse_switch_counters(line, file, number));
  return SwitchLine(std::move(reading));
}

PortNames::PortNames(const topo::Graph& graph) : graph_(graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    nodes_.emplace(graph.nodes[i].name, NodeId{static_cast<int>(i)});
}

Result<std::uint32_t> PortNames::find(const std::string& device, const std::string& port) const {
  const auto node = nodes_.find(device);
  if (node == nodes_.end())
    return Error{Code::kInvalidInput,
                 fmt::format("device {}: is not in the cluster; name a switch or server of it, "
                             "like {}",
                             printable(device, kShownMost), graph_.nodes.back().name)};
  const std::vector<LinkId>& links = graph_.links_of[node->second.index()];
  for (const LinkId link : links)
    if (graph_.links[link.index()].name == port)
      return fabric::number_of({link, graph_.links[link.index()].a == node->second});
  return Error{Code::kInvalidInput,
               fmt::format("port {}: {} has no such link; name the port by its link{}",
                           printable(port, kShownMost), device,
                           links.empty() ? "" : ", like " + graph_.links[links[0].index()].name)};
}

SwitchCounterTotals::SwitchCounterTotals(const topo::Graph& graph)
    : names_(graph), totals_(2 * graph.links.size()) {}

Status SwitchCounterTotals::add(const SwitchPortCounters& reading) {
  REGATTA_TRY(out, names_.find(reading.device, reading.port));
  const auto before = last_.find(out);
  if (before == last_.end()) {
    // The first reading says which counters there are.
    add_interval(out, reading, reading);
    last_.emplace(out, reading);
    return {};
  }
  if (reading.at <= before->second.at)
    return Error{Code::kInvalidInput,
                 fmt::format("port {} of {}: at_s does not increase; write the readings of a port "
                             "in the order of time",
                             reading.port, reading.device)};
  add_interval(out, before->second, reading);
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
