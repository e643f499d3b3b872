#include "regatta/network/fabric/internal/pfc_port_counters.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::fabric {
namespace {

constexpr int kPriorities = 8;
constexpr std::size_t kMostText = 64;

// How a driver calls a counter; {} stands for the priority.
struct Name {
  const char* pattern;
  std::optional<std::uint64_t> PfcCounters::*count;
  bool is_held;  // else: holds
};

using C = PfcCounters;

constexpr Name kNames[] = {
    // mlx5
    {"rx_prio{}_pause", &C::pauses, true},
    {"rx_prio{}_pause_duration", &C::paused_us, true},
    {"tx_prio{}_packets", &C::packets, true},
    {"tx_prio{}_pause", &C::pauses, false},
    {"tx_prio{}_pause_duration", &C::paused_us, false},
    {"rx_prio{}_packets", &C::packets, false},
    // bnxt
    {"rx_pfc_ena_frames_pri{}", &C::pauses, true},
    {"pfc_pri{}_rx_duration_us", &C::paused_us, true},
    {"tx_packets_pri{}", &C::packets, true},
    {"tx_pfc_ena_frames_pri{}", &C::pauses, false},
    {"pfc_pri{}_tx_duration_us", &C::paused_us, false},
    {"rx_packets_pri{}", &C::packets, false},
    // ice, i40e
    {"rx_priority_{}_xoff.nic", &C::pauses, true},
    {"tx_priority_{}_xoff.nic", &C::pauses, false},
    {"port.rx_priority_{}_xoff", &C::pauses, true},
    {"port.tx_priority_{}_xoff", &C::pauses, false},
};

// The same of all priorities.
constexpr Name kLinkNames[] = {
    {"rx_global_pause", &C::pauses, true},   {"rx_global_pause_duration", &C::paused_us, true},
    {"tx_global_pause", &C::pauses, false},  {"tx_global_pause_duration", &C::paused_us, false},
    {"rx_pause_ctrl_phy", &C::pauses, true}, {"tx_pause_ctrl_phy", &C::pauses, false},
    {"rx_pause_frames", &C::pauses, true},   {"tx_pause_frames", &C::pauses, false},
    {"link_xoff_rx.nic", &C::pauses, true},  {"link_xoff_tx.nic", &C::pauses, false},
    {"port.link_xoff_rx", &C::pauses, true}, {"port.link_xoff_tx", &C::pauses, false},
};

// Counters of the whole port, where a driver does not count by priority.
constexpr Name kPortNames[] = {
    {"tx_packets_phy", &C::packets, true},  {"rx_packets_phy", &C::packets, false},
    {"tx_unicast.nic", &C::packets, true},  {"rx_unicast.nic", &C::packets, false},
    {"port.tx_unicast", &C::packets, true}, {"port.rx_unicast", &C::packets, false},
    {"tx_good_frames", &C::packets, true},  {"rx_good_frames", &C::packets, false},
};

using Counters = std::map<std::string, std::uint64_t>;

void read(const Counters& counters, const std::string& name, const Name& of,
          PfcPortCounters& port) {
  const auto found = counters.find(name);
  PfcCounters& counts = of.is_held ? port.held : port.holds;
  std::optional<std::uint64_t>& count = counts.*of.count;
  if (found != counters.end() && !count) count = found->second;
}

bool says_something(const PfcCounters& counts) {
  return counts.pauses || counts.paused_us;
}

}  // namespace

std::vector<PfcPortCounters> pfc_port_counters(std::span<const NamedCount> counters) {
  Counters by_name;
  for (const NamedCount& one : counters)
    by_name[one.name] = one.count;
  std::vector<PfcPortCounters> ports;
  for (int priority = kAllPriorities; priority < kPriorities; ++priority) {
    PfcPortCounters port{.priority = priority};
    if (priority == kAllPriorities)
      for (const Name& name : kLinkNames)
        read(by_name, name.pattern, name, port);
    else
      for (const Name& name : kNames)
        read(by_name, fmt::format(fmt::runtime(name.pattern), priority), name, port);
    if (!says_something(port.held) && !says_something(port.holds)) continue;
    for (const Name& name : kPortNames)
      read(by_name, name.pattern, name, port);
    ports.push_back(std::move(port));
  }
  return ports;
}

Result<PfcPortCounters> parse_pfc_port_counters(std::string_view line, const std::string& file,
                                                int number) {
  const auto wrong = [&](std::string_view what) {
    return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", file, number, what)};
  };
  const std::vector<std::string> fields = split(line, ',');
  constexpr std::size_t kFields = 12;
  if (fields.size() != kFields)
    return wrong(fmt::format("{} fields; write the {} of the heading", fields.size(), kFields));
  PfcPortCounters port{.device = fields[1], .port = fields[2]};
  const auto at = parse_number<double>(fields[0]);
  if (!at || !std::isfinite(*at)) return wrong("at_s is no number of seconds; write it like 12.5");
  port.at.value = *at;
  for (const std::string& name : {port.device, port.port})
    if (name.empty() || name.size() > kMostText)
      return wrong("the device or the port is empty or longer than 64 letters; name both");
  const auto priority =
      fields[3] == "link" ? kAllPriorities : parse_number<int>(fields[3]).value_or(-1);
  if (fields[3] != "link" && (priority < 0 || priority >= kPriorities))
    return wrong("the priority is not 0 to 7, or 'link' for pauses of all of them");
  port.priority = priority;
  if (fields[4] != "0" && fields[4] != "1") return wrong("up is neither 0 nor 1");
  port.is_up = fields[4] == "1";
  std::optional<std::uint64_t>* const counts[] = {
      &port.queued,        &port.held.packets, &port.held.pauses,    &port.held.paused_us,
      &port.holds.packets, &port.holds.pauses, &port.holds.paused_us};
  for (std::size_t i = 0; i < std::size(counts); ++i) {
    if (fields[5 + i].empty()) continue;  // not known
    *counts[i] = parse_number<std::uint64_t>(fields[5 + i]);
    if (!*counts[i])
      return wrong(
          fmt::format("field {} is no whole number from 0 on; leave it empty where it is "
                      "not known",
                      6 + i));
  }
  return port;
}

}  // namespace regatta::fabric
