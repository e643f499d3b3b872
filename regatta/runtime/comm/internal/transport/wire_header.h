// comm/internal/transport/wire_header.h: the header of every packet on TCP, in shared memory and by
// RDMA. Little-endian, 48 bytes: magic u16, version u8, kind u8, payload u32, group u64,
// operation u32, step u32, message u64, offset u64, call u32, checksum u32 of the 44 bytes before
// it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::comm {

// Names one message between two ranks and one direction; never used twice.
struct MessageKey {
  std::uint64_t group = 0;      // communicator
  std::uint32_t operation = 0;  // number of the call in it
  std::uint32_t step = 0;       // tag within the schedule

  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

// The operation numbers of sends and receives have this bit: they count for themselves, per pair.
inline constexpr std::uint32_t kPointToPoint = 0x80000000U;
inline bool is_point_to_point(const MessageKey& key) {
  return (key.operation & kPointToPoint) != 0;
}

enum class PacketKind : std::uint8_t {
  kData = 1,  // `payload` bytes of a message, from `offset` on
  kRequest,   // the sender holds a message and has no grant for it
  kGrant,     // the receiver has a place for the message; payload: none, or the place (rdma/wire.h)
  kCredit,    // `message` eager bytes were consumed
  kAbort,     // payload: code byte and text of the first error
  kGoodbye,   // nothing follows
  kHeartbeat,  // a sign of life
  kQuery,      // requests the progress of operation (group, operation) at the peer
  kReply,      // payload: that progress
  kConnect,    // payload: the sender's queue pairs (rdma/wire.h)
  kStatement,  // payload: a rank's view of the remaining ranks
               // (internal/engine/membership_consensus.h)
};

struct PacketHeader {
  PacketKind kind = PacketKind::kData;
  MessageKey key{};
  std::uint64_t message_bytes = 0;  // of the whole message; kCredit: bytes consumed
  std::uint64_t offset = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t call = 0;  // kData, kRequest, kGrant of a collective: fingerprint() of the call
};

inline constexpr std::size_t kHeaderBytes = 48;
inline constexpr std::size_t kFragmentBytesMax = std::size_t{64} << 10;  // payload of kData
// A fragment shorter than this is not worth its header, except at the end of a message.
inline constexpr std::size_t kFragmentBytesMin = std::size_t{8} << 10;
inline constexpr std::size_t kTextBytesMax = 2048;  // of packets with text
using rdma::kPlaceBytes;                            // of kGrant, when it has a place

using HeaderBytes = std::span<std::byte, kHeaderBytes>;
using ConstHeaderBytes = std::span<const std::byte, kHeaderBytes>;

void encode_header(const PacketHeader& header, HeaderBytes out);

// kInvalidInput for a wrong magic, version, kind or checksum, sizes out of bounds, and a payload
// that passes the end of its message.
Result<PacketHeader> decode_header(ConstHeaderBytes in);

}  // namespace regatta::comm

template <>
struct std::hash<regatta::comm::MessageKey> {
  std::size_t operator()(const regatta::comm::MessageKey& key) const {
    std::uint64_t x = key.group ^ (std::uint64_t{key.operation} << 32 | key.step);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<std::size_t>(x ^ (x >> 31));
  }
};
