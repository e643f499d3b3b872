// link_rates/internal/train_messages.h: the lines between the command that measures rates and the
// agents of the servers (docs/formats/rates.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/link_rates/internal/train.h"

namespace regatta::link_rates {

// To agents. Both ends of a train get the same line first, the receiver first.
struct TrainOrder {
  bool is_sender = false;
  std::uint64_t train = 0;
  fabric::FiveTuple flow;
  TrainShape shape;
};
// From then on an agent reports the bytes of these NICs.
struct LoadOrder {
  std::vector<std::uint32_t> addresses;
};
// Asks which routers the packets of a flow pass.
struct PathOrder {
  std::uint32_t number = 0;
  fabric::FiveTuple flow;
  int routers = 0;
};
using AgentOrder = std::variant<TrainOrder, LoadOrder, PathOrder>;

// From agents.
struct TrainAwaited {  // the receiver is ready
  std::uint64_t train = 0;
};
struct TrainSent {
  std::uint64_t train = 0;
  BytesPerSecond offered;  // what the processor could send
};
struct TrainReceived {
  std::uint64_t train = 0;
  int arrived = 0;
  BytesPerSecond rate;  // 0: too few have arrived
};
struct TrainFailed {
  std::uint64_t train = 0;
  std::string why;
};
struct NicBytes {
  std::uint32_t address = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};
struct LoadReport {
  std::vector<NicBytes> nics;
};
struct PathTraced {
  std::uint32_t number = 0;
  std::vector<std::uint32_t> routers;  // their addresses in order; 0: no answer
};
using AgentReport =
    std::variant<TrainAwaited, TrainSent, TrainReceived, TrainFailed, LoadReport, PathTraced>;

inline constexpr std::size_t kAgentLineBytesMost = 1000;
inline constexpr std::size_t kNicsMost = 16;  // of a server
inline constexpr std::size_t kTracedRoutersMost = 8;

// With the end of the line.
std::string order_line(const AgentOrder& order);
std::string report_line(const AgentReport& report);
// Without it. kInvalidInput for any other line.
Result<AgentOrder> parse_agent_order(std::string_view line);
Result<AgentReport> parse_agent_report(std::string_view line);

}  // namespace regatta::link_rates
