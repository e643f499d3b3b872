// link_rates/switch_counters.h: counters of switch ports, as collectors of gNMI or sFlow write them
// (docs/formats/switch_counters.md), and what they sum up to for each link. Pure.
// Source: RFC 2863 (the interfaces group), sFlow version 5 (generic interface counters), the
// OpenConfig models of interfaces and of LLDP, IEEE 802.1AB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"

namespace regatta::link_rates {

// One direction of a port, since any time; what is not known is empty.
struct PortCounts {
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> packets;
  std::optional<std::uint64_t> drops;
  std::optional<std::uint64_t> errors;
};

struct SwitchPortCounters {
  Seconds at;
  std::string device;
  std::string port;                    // the name of its link
  std::optional<BytesPerSecond> rate;  // that the port has negotiated
  PortCounts in;
  PortCounts out;
  std::optional<std::uint64_t> queued;     // bytes that wait to be sent now
  std::optional<std::uint64_t> rx_pauses;  // pause frames that it received
  std::optional<bool> is_up;               // whether it is in operation
};

// The port that a port hears at the other end of its cable, by LLDP.
struct SwitchNeighbor {
  Seconds at;
  std::string device;
  std::string port;
  std::string neighbor;  // a device of the cluster, if the cable is where it should be
  std::string neighbor_port;
};

inline constexpr std::string_view kSwitchCountersHeading =
    "at_s,device,port,rate_bps,in_bytes,in_packets,in_drops,in_errors,"
    "out_bytes,out_packets,out_drops,out_errors,queued_bytes,rx_pauses,up";
// Without the last field, which a line may lack under any heading.
inline constexpr std::string_view kSwitchCountersShortHeading = kSwitchCountersHeading.substr(
    0, kSwitchCountersHeading.size() - std::string_view(",up").size());
inline constexpr std::size_t kSwitchCountersLineMost = 1024;  // bytes

// A line of the format: nothing in a heading, a comment and an empty line.
using SwitchLine = std::variant<std::monostate, SwitchPortCounters, SwitchNeighbor>;

bool is_switch_counters_heading(std::string_view line);
// `file` and `number` are for messages.
Result<SwitchLine> parse_switch_line(std::string_view line, const std::string& file, int number);

// The ports of a graph by name.
class PortNames {
 public:
  // `graph` must outlive this.
  explicit PortNames(const topo::Graph& graph);

  // The directed link that leaves the port, which is also its diag::PortNumber. kInvalidInput for a
  // device or port that the graph lacks.
  Result<std::uint32_t> find(const std::string& device, const std::string& port) const;

 private:
  const topo::Graph& graph_;
  std::map<std::string, NodeId, std::less<>> nodes_;
};

// The counters of one direction of a link, from the ports at both of its ends.
struct LinkCounterTotals {
  Seconds time;                             // between the first and last reading of its sender
  std::optional<BytesPerSecond> port_rate;  // the lower one of the two ports
  BytesPerSecond peak;                      // the fastest interval
  // The fastest interval at whose both ends packets waited; 0: there was none.
  BytesPerSecond waiting_peak;
  // Intervals in which packets waited at both ends, and those of them with received pauses.
  int waiting_intervals = 0;
  int paused_intervals = 0;
  // None: no port counts it.
  std::optional<std::uint64_t> packets;  // sent
  std::optional<std::uint64_t> drops;    // by the sender before the link
  std::optional<std::uint64_t> errors;   // of both ends in this direction
};

// Sums up readings of all ports of a graph. Holds one reading of each port.
class SwitchCounterTotals {
 public:
  // `graph` must outlive this.
  explicit SwitchCounterTotals(const topo::Graph& graph);

  // A reading, after those before of this port. Counters that decrease start anew. kInvalidInput
  // for a device or port that the graph lacks, and for a time that goes back.
  Status add(const SwitchPortCounters& reading);
  // By directed link.
  const LinkCounterTotals& of(std::uint32_t link) const { return totals_[link]; }
  std::size_t ports() const { return last_.size(); }  // that were read

 private:
  void add_interval(std::uint32_t out, const SwitchPortCounters& before,
                    const SwitchPortCounters& now);

  PortNames names_;
  std::map<std::uint32_t, SwitchPortCounters> last_;  // by the directed link that leaves the port
  std::vector<LinkCounterTotals> totals_;
};

}  // namespace regatta::link_rates
