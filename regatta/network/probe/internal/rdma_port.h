// probe/internal/rdma_port.h: the packets of a prober over the RDMA devices of its server: each as
// an unreliable datagram from its own UDP source port. rdma_port_none.cc replaces it in builds
// without libibverbs-dev, and reports that.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/probe/internal/batch.h"

namespace regatta::probe {

inline constexpr std::uint16_t kCardPort = 27898;  // UDP

// Packet::local selects the device. The kernel does not stamp arrivals: Packet::arrived_ns stays 0.
class RdmaPort {
 public:
  // The devices that have these addresses, for packets that leave from these ports; kUnsupported
  // names the address that no device has. Servers query each other's queue pair numbers on
  // kCardPort.
  static Result<std::unique_ptr<RdmaPort>> open(const std::set<std::uint32_t>& addresses,
                                                const std::set<std::uint16_t>& ports);
  virtual ~RdmaPort() = default;

  // Leaves out packets without a known path. Never waits.
  virtual void send(std::span<const Packet> packets, std::int64_t now_ns) = 0;
  // Appends the packets that have arrived. Never waits.
  virtual void receive(std::vector<Packet>& packets) = 0;
};

}  // namespace regatta::probe
