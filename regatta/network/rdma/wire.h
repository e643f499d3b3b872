// rdma/wire.h: the data that two ends exchange before they can move data by RDMA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::rdma {

// Address of a port of an RDMA device, as in an InfiniBand global route header; for RoCEv2 it holds
// an IPv6 address, or an IPv4 one in its last four bytes (::ffff:a.b.c.d).
using Gid = std::array<std::uint8_t, 16>;

// The Gid of this IPv4 or IPv6 address; kInvalidInput for an address that is not numeric.
Result<Gid> gid_of(const std::string& address);

// The queue pairs of an end towards one other. Little-endian: magic u32, mtu u32, slots u32, count
// u32, gid, then the count numbers u32.
struct QueueCard {
  Gid gid{};
  std::uint32_t mtu = 0;               // largest packet of its port, in bytes
  std::uint32_t slots = 0;             // receives that it posted
  std::vector<std::uint32_t> numbers;  // of the queue pairs; those of equal index belong together
};
inline constexpr std::size_t kQueuePairsMax = 256;
inline constexpr std::uint8_t kHopLimit = 64;
std::vector<std::byte> encode_card(const QueueCard& card);
Result<QueueCard> decode_card(std::span<const std::byte> bytes);

// Memory that the other end may write to. Little-endian: address u64, key u32, landing u32.
inline constexpr std::size_t kPlaceBytes = 16;
struct RemotePlace {
  std::uint64_t address = 0;
  std::uint32_t key = 0;      // of the registered memory
  std::uint32_t landing = 0;  // the receiver's number for it: the immediate value of every write
};
std::array<std::byte, kPlaceBytes> encode_place(const RemotePlace& place);
RemotePlace decode_place(std::span<const std::byte, kPlaceBytes> bytes);

// RoCEv2 packets carry the flow label of their address as UDP source port, in [0xC001, 0xFFFF], and
// switches choose equal-cost links by it. Returns the label of this port: Linux folds the upper six
// of its 20 bits into the lower fourteen (rdma_flow_label_to_udp_sport), so only these are used; 0
// would leave the choice to the device.
std::uint32_t flow_label_of(std::uint16_t udp_source_port);
std::uint16_t udp_source_port_of(std::uint32_t flow_label);

// Source port of the packets of a soft-RoCE queue pair, whatever their flow label: as in rdma_rxe
// of Linux 5.x and 6.x.
std::uint16_t udp_port_of_queue(std::uint32_t number);

// `count` distinct source ports, spread over the whole range; another `seed` gives others.
std::vector<std::uint16_t> choose_source_ports(std::size_t count, std::uint32_t seed);

}  // namespace regatta::rdma
