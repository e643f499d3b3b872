// comm/internal/transport/connector.h: one connection that this rank makes to another during the
// bootstrap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/handshake.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

class Connector {
 public:
  // `source`: this rank's numeric address; another port is used where its port is taken.
  // handshake.connections 0: through shared memory. `shared_segment`: descriptor of this rank's
  // shared segment, or -1. `fd`: empty, or a connection that is open already.
  Connector(int peer, PeerEndpoint to, TcpAddress source, const RankHandshake& handshake,
            int shared_segment, os::UniqueFd fd = {});

  enum class State {
    kInProgress,
    kDone,            // accepted: take fd() and, of a shared one, ring segment and shared segment
    kNoSharedMemory,  // with this peer: make TCP connections instead
  };
  // Continues without blocking; it retries a TCP connection that fails.
  State serve(Seconds now);

  int peer() const { return peer_; }
  std::uint32_t connection() const { return connection_; }
  bool is_shared() const { return is_shared_; }
  // -1 between two attempts.
  int poll_fd() const { return fd_.get(); }
  bool wants_to_write() const { return !is_connected_ || sent_ < out_.size(); }

  os::UniqueFd take_fd() { return std::move(fd_); }
  RingSegment take_segment() { return std::move(*segment_); }
  SharedSegment take_shared_segment() { return std::move(shared_segment_); }

 private:
  State start(Seconds now);
  State fail(Seconds now);
  bool send_handshake();

  int peer_;
  PeerEndpoint to_;
  TcpAddress source_;
  std::uint32_t connection_;
  bool is_shared_;
  std::vector<std::byte> out_;

  os::UniqueFd fd_;
  Seconds retry_at_;
  bool is_connected_ = false;
  std::size_t sent_ = 0;
  std::vector<std::byte> in_;
  std::optional<RingSegment> segment_;
  int own_shared_segment_;
  SharedSegment shared_segment_;  // the peer's
};

}  // namespace regatta::comm
