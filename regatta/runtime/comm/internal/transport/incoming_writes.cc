#include "regatta/runtime/comm/internal/transport/incoming_writes.h"

#include <utility>

namespace regatta::comm {

std::uint32_t IncomingWrites::add(const PacketHeader& grant, std::byte* place,
                                  RegistrationCache::Lease memory) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(places_.size()));
    places_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  places_[number] = {.key = grant.key,
                     .data = place,
                     .bytes = grant.message_bytes,
                     .received = 0,
                     .call = grant.call,
                     .memory = std::move(memory)};
  return number;
}

std::optional<IncomingWrites::Part> IncomingWrites::receive(std::uint32_t number,
                                                            std::size_t bytes) {
  if (bytes == 0 || number >= places_.size() ||
      bytes > places_[number].bytes - places_[number].received)
    return std::nullopt;
  Place& place = places_[number];
  const Part part{.header = {.key = place.key,
                             .message_bytes = place.bytes,
                             .offset = place.received,
                             .payload_bytes = static_cast<std::uint32_t>(bytes),
                             .call = place.call},
                  .data = place.data + place.received};
  place.received += bytes;
  if (place.received == place.bytes) {
    place = {};
    free_.push_back(number);
  }
  return part;
}

void IncomingWrites::clear() {
  places_.clear();
  free_.clear();
}

}  // namespace regatta::comm
