// probe/internal/packet_variant.h: when a probe sends a packet of which variant
// (diag::PacketVariant), and of which size and type of service. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "regatta/base/core/units.h"
#include "regatta/network/diag/observation.h"

namespace regatta::probe {

// Whether probe `probe` sends a packet of this variant in this round, once in each cycle of
// `rounds` (an even number). The probes of a server share the rounds evenly.
bool is_due(diag::PacketVariant variant, std::uint32_t probe, std::int64_t round, int rounds);

// Payload of such a packet of this probe, in bytes, where `mtu` is that of the sender's NIC. Users'
// packets of one probe are all of one size: what depends on the size takes all packets of a flow.
std::size_t payload_bytes(diag::PacketVariant variant, std::uint32_t probe, int mtu);

// The type of service that the packet and its answer carry.
std::uint8_t type_of_service(diag::PacketVariant variant);

// Magic numbers of the packet and of its answer, and the variant that has this one.
std::uint32_t probe_magic(diag::PacketVariant variant);
std::uint32_t answer_magic(diag::PacketVariant variant);
std::optional<diag::PacketVariant> variant_of(std::uint32_t magic);

}  // namespace regatta::probe
