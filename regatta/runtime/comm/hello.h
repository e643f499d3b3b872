// comm/hello.h: the first bytes on a connection: who calls, and the proof that it may.
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

struct Hello {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t connection = 0;   // 0: for control, which the higher rank dials; else for data
  std::uint32_t connections = 0;  // how many the caller dials, one for control among them even when
                                  // the other side dials that; 0: shared memory, 1: RDMA
  std::uint64_t meeting = 0;      // which one of these ranks: all of them know it, nobody else does
  std::string token;
};

inline constexpr std::size_t kTokenBytesMax = 1024;
// Of the fixed part, which ends with the length of the token.
inline constexpr std::size_t kHelloBytes = 40;

std::vector<std::byte> encode_hello(const Hello& hello);
// Nothing while bytes are missing; kInvalidInput when they are no hello: magic, version, lengths.
Result<std::optional<Hello>> decode_hello(std::span<const std::byte> bytes);

// The answer of the side that was called.
enum class Welcome : std::uint32_t { kAccepted = 1, kNoSharedMemory = 2 };
struct Reply {
  Welcome welcome = Welcome::kAccepted;
  std::uint32_t rank = 0;  // of the side that answers
};
inline constexpr std::size_t kReplyBytes = 16;
std::vector<std::byte> encode_reply(const Reply& reply);
Result<std::optional<Reply>> decode_reply(std::span<const std::byte> bytes);

// Where a rank is reached: what the launcher's exchange carries.
struct Endpoint {
  std::string address;  // numeric IPv4 or IPv6
  std::uint16_t port = 0;
  std::string unix_name;     // abstract unix socket for the ranks of the same server
  BytesPerSecond link_rate;  // of its network link; 0: not known
  bool has_rdma = false;     // and would use it
  std::string server;
};
std::string format_endpoint(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(const std::string& text);

}  // namespace regatta::comm
