// topo/addresses.h: the IPv4 addresses and hash seeds of an emulated or simulated fabric. They are
// the same in the lab and in the simulator, so that connections take the same paths in both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::topo {

// Cables with two addresses each in 10.64.0.0/10.
inline constexpr std::size_t kMaxAddressedLinks = 1U << 21U;

// The address of an end of a link as a number: 10.0.0.1 is 0x0a000001. The two ends share a /31; a
// NIC is the end a of its link. Requires link < kMaxAddressedLinks.
std::uint32_t address_of(LinkId link, bool is_end_b = false);

// The link that has this address at one end; nothing when no link can have it.
std::optional<LinkId> link_of(std::uint32_t address);

// "10.64.0.0".
std::string address_text(std::uint32_t address);

// The type of service (RFC 1349: low delay) of packets that probe a fabric. A healer that changes
// routes leaves theirs as designed, so that they detect when a broken path works again.
inline constexpr std::uint8_t kProbeTos = 0x10;

// The seed, not 0, that a switch mixes into its hash of connections. It is a hash of the names of
// cluster and node, so the same in every run, and almost always different between two nodes.
std::uint32_t hash_seed(std::string_view cluster, std::string_view node);
std::vector<std::uint32_t> hash_seeds(const Cluster& cluster, const Graph& graph);

}  // namespace regatta::topo
