// comm/internal/transport/incoming_writes.h: the places that an RDMA link has granted to the other
// end: messages that it writes straight into this rank's memory. Every write carries the number of
// its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/runtime/comm/internal/transport/registration_cache.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

class IncomingWrites {
 public:
  // A place for the message that `grant` names; returns its number. `memory`: its registration.
  std::uint32_t add(const PacketHeader& grant, std::byte* place, RegistrationCache::Lease memory);

  // A part of a message that has arrived in its place.
  struct Part {
    PacketHeader header;
    std::byte* data = nullptr;
  };
  // `bytes` were written to the place `number`; nothing when it was not granted so many. Writes
  // arrive in any order, so the parts count bytes only; the place ends with the last part.
  std::optional<Part> receive(std::uint32_t number, std::size_t bytes);

  void clear();

 private:
  struct Place {
    MessageKey key;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t received = 0;
    std::uint32_t call = 0;  // PacketHeader::call
    RegistrationCache::Lease memory;
  };

  std::vector<Place> places_;  // by number
  std::vector<std::uint32_t> free_;
};

}  // namespace regatta::comm
