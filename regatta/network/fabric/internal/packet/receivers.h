// fabric/internal/packet/receivers.h: the receiving ends of all connections, and how far out of
// order packets reach them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/reorder_buffer.h"

namespace regatta::fabric::packet {

class Receivers {
 public:
  explicit Receivers(std::size_t connections) : buffers_(connections) {}

  void receive(const Packet& packet) {
    ReorderBuffer& buffer = buffers_[packet.connection];
    if (buffer.take(packet.sequence)) ++reordered_;
    buffer_peak_ = std::max(buffer_peak_, buffer.held());
  }
  // Packets that arrived after one sent later on their connection.
  std::uint64_t reordered() const { return reordered_; }
  // The most packets that one of the buffers held.
  std::uint32_t buffer_peak() const { return buffer_peak_; }

 private:
  std::vector<ReorderBuffer> buffers_;  // per connection
  std::uint64_t reordered_ = 0;
  std::uint32_t buffer_peak_ = 0;
};

}  // namespace regatta::fabric::packet
