// lab/internal/neighbor_frames.h: where cables are plugged in: each port sends its number to the
// port at the other end of its cable, as switches do by LLDP. The frames pass by the queues of a
// port, so load does not delay them.
// Source: IEEE 802.1AB; packet(7).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::lab {

// An LLDP frame of port `port` of `node`, as it is on the wire, and the port of such a frame.
std::string neighbor_frame(std::string_view node, std::uint32_t port);
std::optional<std::uint32_t> parse_neighbor_frame(std::string_view frame);

// The frames of the ports of one node.
class NeighborFrames {
 public:
  // In the network namespace of the calling thread, where the socket stays.
  static Result<NeighborFrames> open();

  // An interface that is off sends nothing.
  void send(int interface_index, const std::string& frame) const;
  // Calls `heard(interface index, port)` for each frame that has arrived since the last call.
  void receive(const std::function<void(int, std::uint32_t)>& heard) const;

 private:
  explicit NeighborFrames(os::UniqueFd socket) : socket_(std::move(socket)) {}
  os::UniqueFd socket_;
};

}  // namespace regatta::lab
