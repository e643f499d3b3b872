// experimental/remote/internal/rdma_packet_port.h: a packet port that is a queue pair. In a build
// without libibverbs-dev, rdma_packet_port_none.cc returns errors in its place.
#pragma once

#include <memory>
#include <string>

#include "experimental/remote/internal/packet_port.h"
#include "regatta/base/core/result.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::remote {

// Sends packets once it is connected.
class RdmaPacketPort : public PacketPort {
 public:
  virtual std::string device() const = 0;  // "mlx5_0 port 1"
  virtual rdma::QueueCard card() const = 0;
  virtual Status connect(const rdma::QueueCard& theirs) = 0;
};

// The device with this numeric address and an active port; it stays open until another replaces it
// and its last port is closed. kUnsupported: there is no such device, or no libibverbs. Other
// errors name a device that cannot be used.
Status find_rdma(const std::string& address);

// A port of that device.
Result<std::unique_ptr<RdmaPacketPort>> open_rdma(const std::string& address);

// In a child of fork(): leaves the devices to the parent, the replaced ones, too. No thread of the
// parent may be in one of the two functions above at that time.
void leave_rdma();

}  // namespace regatta::remote
