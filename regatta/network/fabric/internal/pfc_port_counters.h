// fabric/internal/pfc_port_counters.h: a port's pause counters by priority: as NIC drivers name
// them, and as lines of text (docs/formats/pauses.md). Names: the kernel's mlx5 (en_stats.c), bnxt
// (bnxt_ethtool.c), ice (ice_ethtool.c) and i40e drivers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::fabric {

// One direction of a port; none: unknown. All count from any beginning.
struct PfcCounters {
  std::optional<std::uint64_t> pauses;     // frames
  std::optional<std::uint64_t> paused_us;  // how long
  std::optional<std::uint64_t> packets;    // that went in this direction
};

inline constexpr int kAllPriorities = -1;  // of all priorities: IEEE 802.3x, not 802.1Qbb

struct PfcPortCounters {
  Seconds at;
  std::string device;  // a switch or server
  std::string port;
  int priority = 0;  // or kAllPriorities
  bool is_up = true;
  std::optional<std::uint64_t> queued;  // bytes that wait to be sent
  PfcCounters held;                     // received pauses, and what the port sends
  PfcCounters holds;                    // pauses that it sends, and what it receives
};

struct NamedCount {
  std::string name;
  std::uint64_t count = 0;
};

// The counts of each priority that has any; empty: none has.
std::vector<PfcPortCounters> pfc_port_counters(std::span<const NamedCount> counters);

inline constexpr std::string_view kPfcPortCountersHeading =
    "at_s,device,port,priority,up,queued_bytes,sent_packets,rx_pauses,rx_paused_us,"
    "received_packets,tx_pauses,tx_paused_us";

// A line below that heading; `file` and `number` are for messages.
Result<PfcPortCounters> parse_pfc_port_counters(std::string_view text, const std::string& file,
                                                int number);

}  // namespace regatta::fabric
