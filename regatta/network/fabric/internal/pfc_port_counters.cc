#include "regatta/network/fabric/internal/pfc_port_counters.h"

#include <map>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/network/port_counters/port_counter_line.h"

namespace regatta::fabric {
namespace {

constexpr int kPriorities = 8;

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

Result<PfcPortCounters> parse_pfc_port_counters(std::string_view text, const std::string& file,
                                                int number) {
  constexpr std::size_t kFields = 12;
  REGATTA_TRY(line, port_counters::PortCounterLine::parse(text, file, number, {kFields, kFields}));
  PfcPortCounters port{.at = line.at(), .device = line.device(), .port = line.port()};
  const std::string& priority = line.field(3);
  port.priority =
      priority == "link" ? kAllPriorities : parse_number<int>(priority).value_or(kAllPriorities);
  if (priority != "link" && (port.priority < 0 || port.priority >= kPriorities))
    return line.error("the priority is not 0 to 7, or 'link' for pauses of all of them");
  const std::string& up = line.field(4);
  if (up != "0" && up != "1") return line.error("up is neither 0 nor 1");
  port.is_up = up == "1";
  std::optional<std::uint64_t>* const counts[] = {
      &port.queued,        &port.held.packets, &port.held.pauses,    &port.held.paused_us,
      &port.holds.packets, &port.holds.pauses, &port.holds.paused_us};
  for (std::size_t i = 0; i < std::size(counts); ++i)
    REGATTA_TRY_DO(line.read(5 + i, *counts[i]));
  return port;
}

}  // namespace regatta::fabric
