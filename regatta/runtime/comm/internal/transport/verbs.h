// comm/internal/transport/verbs.h: RDMA between servers, as the rest of comm sees it: a device, and
// links. Without libibverbs-dev at build time, verbs_none.cc refuses both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"

namespace regatta::comm {

// The RDMA device of a rank, and the memory that is registered with it. Shared by its links.
class VerbsDevice;

// The device with an active RoCEv2 port that has this numeric address. kUnsupported: there is no
// such device, or no libibverbs. Other errors name a device that cannot be used.
Result<std::shared_ptr<VerbsDevice>> open_verbs(const std::string& address);

// At intervals, on the progress thread: releases memory that is not used any more.
void expire_memory(VerbsDevice& device);

// The link to a rank that opened its device as well.
struct VerbsLinkSetup {
  int peer = 0;
  os::UniqueFd control;  // connected and non-blocking
  std::shared_ptr<VerbsDevice> device;
  int queue_pairs = 1;  // the smaller number of the two ends counts
};
Result<std::unique_ptr<PeerLink>> make_verbs_link(VerbsLinkSetup setup, LinkSink& sink);

}  // namespace regatta::comm
