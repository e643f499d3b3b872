// probe/internal/rdma_port.h: the packets of a prober over the RDMA devices of its server: each as
// an unreliable datagram that leaves from its own UDP source port. Where the build has no
// libibverbs-dev, rdma_port_none.cc says so in its place.
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

// Packet::local says which device. The kernel does not stamp what comes: Packet::arrived_ns stays
// 0.
class RdmaPort {
 public:
  // The devices that have these addresses, for packets that leave from these ports; kUnsupported
  // names the address that no device has. Queue pairs have numbers that nobody knows beforehand:
  // servers ask each other for them on kCardPort.
  static Result<std::unique_ptr<RdmaPort>> open(const std::set<std::uint32_t>& addresses,
                                                const std::set<std::uint16_t>& ports);
  virtual ~RdmaPort() = default;

  // Leaves out packets without a known path. Never waits.
  virtual void send(std::span<const Packet> packets, std::int64_t now_ns) = 0;
  // Appends what has come. Never waits.
  virtual void receive(std::vector<Packet>& packets) = 0;
};

}  // namespace regatta::probe
