// experimental/remote/internal/rdma_packet_port.h: a queue pair as the way of a connection's
// packets. Where the build has no libibverbs-dev, rdma_packet_port_none.cc says so in its place.
#pragma once

#include <memory>
#include <string>

#include "experimental/remote/internal/packet_port.h"
#include "regatta/base/core/result.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::remote {

// Carries packets once it is connected.
class RdmaPacketPort : public PacketPort {
 public:
  virtual std::string device() const = 0;  // "mlx5_0 port 1"
  virtual rdma::QueueCard card() const = 0;
  virtual Status connect(const rdma::QueueCard& theirs) = 0;
};

// The device that has this numeric address, with its port up; it stays open until another takes its
// place, and then until its last port has gone. kUnsupported: there is no such device, or no
// libibverbs. Others name a device that cannot be used.
Status find_rdma(const std::string& address);

// A port of that device.
Result<std::unique_ptr<RdmaPacketPort>> open_rdma(const std::string& address);

// In a child of fork(): the devices are the parent's, the replaced ones, too. No thread of the
// parent may have been in one of the two above meanwhile.
void leave_rdma();

}  // namespace regatta::remote
