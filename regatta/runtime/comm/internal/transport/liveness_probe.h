// comm/internal/transport/liveness_probe.h: whether a rank that does not connect has ended: its
// listener, which was open before any rank knew its endpoint, is closed.
#pragma once

#include <optional>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/handshake.h"

namespace regatta::comm {

class LivenessProbe {
 public:
  // `from`: this rank's numeric address. `is_local`: the rank is on the same server.
  LivenessProbe(int peer, PeerEndpoint to, std::string from, bool is_local);

  int peer() const { return peer_; }
  // Probes at intervals, without blocking; true after several refusals in a row.
  bool finds_peer_gone(Seconds now);

 private:
  bool is_refused();

  int peer_;
  PeerEndpoint to_;
  std::string from_;
  bool is_local_;
  os::UniqueFd fd_;
  std::optional<Seconds> probe_at_;
  int refusals_ = 0;
};

}  // namespace regatta::comm
