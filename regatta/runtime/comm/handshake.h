// comm/handshake.h: the first bytes on a connection: who calls, and the proof that it may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::comm {

struct RankHandshake {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t connection = 0;   // 0: for control, which the higher rank opens; else for data
  std::uint32_t connections = 0;  // how many the caller opens, one for control among them even when
                                  // the other side opens that; 0: shared memory, 1: RDMA
  std::uint64_t rendezvous_id =
      0;  // which one of these ranks: all of them know it, nobody else does
  std::string token;
};

inline constexpr std::size_t kTokenBytesMax = 1024;
// Of the fixed part, which ends with the length of the token.
inline constexpr std::size_t kHandshakeBytes = 40;

std::vector<std::byte> encode_handshake(const RankHandshake& handshake);
// Nothing while bytes are missing; kInvalidInput when they are no handshake: magic, version,
// lengths.
Result<std::optional<RankHandshake>> decode_handshake(std::span<const std::byte> bytes);

// The answer of the side that was called.
enum class HandshakeStatus : std::uint32_t { kAccepted = 1, kNoSharedMemory = 2 };
struct HandshakeReply {
  HandshakeStatus status = HandshakeStatus::kAccepted;
  std::uint32_t rank = 0;  // of the side that answers
};
inline constexpr std::size_t kHandshakeReplyBytes = 16;
std::vector<std::byte> encode_handshake_reply(const HandshakeReply& reply);
Result<std::optional<HandshakeReply>> decode_handshake_reply(std::span<const std::byte> bytes);

// Where a rank is reached: what the launcher's exchange carries.
struct PeerEndpoint {
  std::string address;  // numeric IPv4 or IPv6
  std::uint16_t port = 0;
  std::string unix_name;     // abstract unix socket for the ranks of the same server
  BytesPerSecond link_rate;  // of its network link; 0: not known
  bool has_rdma = false;     // and would use it
  std::string server;
};
std::string format_endpoint(const PeerEndpoint& endpoint);
Result<PeerEndpoint> parse_endpoint(const std::string& text);

}  // namespace regatta::comm
