// fabric/pairs.h: who sends to whom: pairs of NICs, each joined by some connections, whose ports
// say which paths they take through switches that hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/base/core/check.h"
#include "regatta/base/core/ids.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/ecmp.h"

namespace regatta::fabric {

inline constexpr std::uint16_t kRoceV2Port = 4791;
inline constexpr std::uint16_t kFirstFreePort = 49152;  // of those that the IANA leaves to programs
inline constexpr std::uint32_t kFreePorts = 16384;

// NICs by their links (topo::nic_link()). The same one twice: inside a server, without a cable.
struct NicPair {
  LinkId from;
  LinkId to;
};

// What a flow of Traffic names as its path, where a level of simulation chooses the paths itself.
struct NicPairs {
  std::vector<NicPair> pairs;
  std::uint32_t connections = 1;     // of each pair; a message is divided evenly among them
  std::vector<std::uint16_t> ports;  // source ports: pair * connections + connection

  // With ports that differ among pairs and connections as those that a kernel hands out. Its
  // number.
  std::uint32_t add(LinkId from, LinkId to) {
    const auto number = static_cast<std::uint32_t>(pairs.size());
    pairs.push_back({from, to});
    for (std::uint32_t i = 0; i < connections; ++i) {
      const std::uint32_t at = (number * connections + i) * 2654435761U >> 18U;  // golden ratio
      ports.push_back(static_cast<std::uint16_t>(kFirstFreePort + at % kFreePorts));
    }
    return number;
  }

  FiveTuple tuple(std::uint32_t pair, std::uint32_t connection) const {
    REGATTA_CHECK(connection < connections);
    return {.from = topo::address_of(pairs[pair].from),
            .to = topo::address_of(pairs[pair].to),
            .from_port = ports[std::size_t{pair} * connections + connection],
            .to_port = kRoceV2Port,
            .protocol = 17};
  }
};

}  // namespace regatta::fabric
