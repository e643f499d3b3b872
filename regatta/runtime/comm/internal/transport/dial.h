// comm/internal/transport/dial.h: one connection that this rank makes to another during the
// bootstrap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/hello.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/shelf.h"

namespace regatta::comm {

class Dial {
 public:
  // `source`: the own address in numbers; its port is a wish. hello.connections 0 means: through
  // shared memory. `shelf`: descriptor of the own shelf, or -1. `fd`: perhaps connected already.
  Dial(int peer, Endpoint to, TcpAddress source, const Hello& hello, int shelf,
       os::UniqueFd fd = {});

  enum class State {
    kGoesOn,
    kDone,            // admitted: take fd() and, of a shared one, segment and shelf
    kNoSharedMemory,  // with this peer: make TCP connections instead
  };
  // Goes on without blocking; a TCP connection that fails is tried again and again.
  State serve(Seconds now);

  int peer() const { return peer_; }
  std::uint32_t connection() const { return connection_; }
  bool is_shared() const { return is_shared_; }
  // -1 between two attempts.
  int poll_fd() const { return fd_.get(); }
  bool wants_to_write() const { return !is_connected_ || sent_ < out_.size(); }

  os::UniqueFd take_fd() { return std::move(fd_); }
  ShmSegment take_segment() { return std::move(*segment_); }
  Shelf take_shelf() { return std::move(shelf_); }

 private:
  State start(Seconds now);
  State fail(Seconds now);
  bool send_hello();

  int peer_;
  Endpoint to_;
  TcpAddress source_;
  std::uint32_t connection_;
  bool is_shared_;
  std::vector<std::byte> out_;

  os::UniqueFd fd_;
  Seconds retry_at_;
  bool is_connected_ = false;
  std::size_t sent_ = 0;
  std::vector<std::byte> in_;
  std::optional<ShmSegment> segment_;
  int own_shelf_;
  Shelf shelf_;  // the peer's
};

}  // namespace regatta::comm
