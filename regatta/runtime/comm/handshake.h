// comm/handshake.h: the first bytes on a connection: the rank that connects, and its proof that it
// belongs to the job.
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
  std::uint32_t connection = 0;  // 0: for control, which the higher rank opens; else for data
  // How many the connecting rank opens, counting the one for control even when the other side opens
  // it; 0: shared memory, 1: RDMA.
  std::uint32_t connections = 0;
  std::uint64_t rendezvous_id = 0;  // known to the ranks of the rendezvous alone
  std::string token;
};

inline constexpr std::size_t kTokenBytesMax = 1024;
// The fixed part, which ends with the length of the token.
inline constexpr std::size_t kHandshakeBytes = 40;

std::vector<std::byte> encode_handshake(const RankHandshake& handshake);
// Nothing while bytes are missing; kInvalidInput for a wrong magic, version or length.
Result<std::optional<RankHandshake>> decode_handshake(std::span<const std::byte> bytes);

// The reply of the side that accepts.
enum class HandshakeStatus : std::uint32_t { kAccepted = 1, kNoSharedMemory = 2 };
struct HandshakeReply {
  HandshakeStatus status = HandshakeStatus::kAccepted;
  std::uint32_t rank = 0;  // of the side that replies
};
inline constexpr std::size_t kHandshakeReplyBytes = 16;
std::vector<std::byte> encode_handshake_reply(const HandshakeReply& reply);
Result<std::optional<HandshakeReply>> decode_handshake_reply(std::span<const std::byte> bytes);

// The addresses of a rank, as the launcher's exchange carries them.
struct PeerEndpoint {
  std::string address;  // numeric IPv4 or IPv6
  std::uint16_t port = 0;
  std::string unix_name;     // abstract unix socket for the ranks of the same server
  BytesPerSecond link_rate;  // of its network link; 0: unknown
  bool has_rdma = false;     // and may use it
  std::string domain;        // of its server; "": the server is alone in one
  std::string server;
};
std::string format_endpoint(const PeerEndpoint& endpoint);
Result<PeerEndpoint> parse_endpoint(const std::string& text);

}  // namespace regatta::comm
