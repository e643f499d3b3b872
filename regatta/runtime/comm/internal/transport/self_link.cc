#include "regatta/runtime/comm/internal/transport/self_link.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace regatta::comm {

bool SelfLink::progress() {
  bool moved = false;
  while (!controls_.empty()) {
    const PacketHeader header = controls_.front();
    controls_.pop_front();
    sink_.arrived(self_, header, nullptr);
    moved = true;
  }
  while (!messages_.empty()) {
    OutMessage& message = *messages_.front();
    messages_.pop_front();
    deliver(message);
    moved = true;
  }
  return moved;
}

void SelfLink::deliver(OutMessage& message) {
  do {
    const std::size_t bytes = std::min(message.bytes - message.cut, kFragmentBytesMax);
    const std::byte* const from = message.data + message.cut;
    const PacketHeader header{.key = message.key,
                              .message_bytes = message.bytes,
                              .offset = message.cut,
                              .payload_bytes = static_cast<std::uint32_t>(bytes),
                              .call = message.call};
    message.cut += bytes;
    message.written = message.cut;
    sink_.arrived(self_, header, from);
    const bool is_last = message.cut == message.bytes;
    sink_.sent(self_, message, bytes);
    if (is_last) return;
  } while (true);
}

}  // namespace regatta::comm
