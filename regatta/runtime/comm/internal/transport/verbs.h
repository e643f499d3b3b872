// comm/internal/transport/verbs.h: RDMA between servers, as the rest of coll sees it: a device, and
// links. Where the build has no libibverbs-dev, verbs_none.cc says so in its place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"

namespace regatta::comm {

// The RDMA device of a rank, and its memory that the device reaches. Shared by its links.
class VerbsDevice;

// The device with an active RoCEv2 port that has this numeric address. kUnsupported: there is no
// such device, or no libibverbs. Others name a device that is there and cannot be used.
Result<std::shared_ptr<VerbsDevice>> open_verbs(const std::string& address);

// Once in a while, on the progress thread: memory that is not used any more goes back.
void expire_memory(VerbsDevice& device);

// The way to a rank that opened its device as well.
struct VerbsLinkSetup {
  int peer = 0;
  os::UniqueFd control;  // connected and non-blocking
  std::shared_ptr<VerbsDevice> device;
  int queue_pairs = 1;  // the smaller of what the two ends give counts
};
Result<std::unique_ptr<PeerLink>> make_verbs_link(VerbsLinkSetup setup, LinkSink& sink);

}  // namespace regatta::comm
