#include "regatta/runtime/comm/handshake.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/text.h"

namespace regatta::comm {
namespace {

constexpr std::uint64_t kHandshakeMagic = 0x3141545441474552ULL;  // "REGATTA1"
constexpr std::uint64_t kReplyMagic = 0x4f4c4c4548544552ULL;      // "RETHELLO"
constexpr std::uint32_t kVersion = 3;
// A double holds every rate up to it.
constexpr std::uint64_t kRateMax = std::uint64_t{1} << 53;
constexpr std::string_view kEndpointMark = "regatta-coll-4";

template <typename T>
void append(std::vector<std::byte>& out, T value) {
  const auto at = out.size();
  out.resize(at + sizeof value);
  put(out.data() + at, value);
}

}  // namespace

std::vector<std::byte> encode_handshake(const RankHandshake& handshake) {
  std::vector<std::byte> out;
  append(out, kHandshakeMagic);
  append(out, kVersion);
  append(out, handshake.rank);
  append(out, handshake.world_size);
  append(out, handshake.connection);
  append(out, handshake.connections);
  append(out, handshake.rendezvous_id);
  append(out, static_cast<std::uint32_t>(handshake.token.size()));
  for (const char c : handshake.token)
    out.push_back(static_cast<std::byte>(c));
  return out;
}

Result<std::optional<RankHandshake>> decode_handshake(std::span<const std::byte> bytes) {
  // A stranger is known by its first bytes, before the rest is waited for.
  if (bytes.size() >= 8 && get<std::uint64_t>(bytes.data()) != kHandshakeMagic)
    return Error{Code::kInvalidInput, "it does not speak this protocol"};
  if (bytes.size() < kHandshakeBytes) return std::optional<RankHandshake>();
  if (get<std::uint32_t>(bytes.data() + 8) != kVersion)
    return Error{Code::kInvalidInput, "it speaks another version of this protocol"};
  const auto token_bytes = get<std::uint32_t>(bytes.data() + 36);
  if (token_bytes > kTokenBytesMax) return Error{Code::kInvalidInput, "its job token is too long"};
  if (bytes.size() < kHandshakeBytes + token_bytes) return std::optional<RankHandshake>();
  RankHandshake handshake{.rank = get<std::uint32_t>(bytes.data() + 12),
                          .world_size = get<std::uint32_t>(bytes.data() + 16),
                          .connection = get<std::uint32_t>(bytes.data() + 20),
                          .connections = get<std::uint32_t>(bytes.data() + 24),
                          .rendezvous_id = get<std::uint64_t>(bytes.data() + 28),
                          .token = {}};
  const auto token = bytes.subspan(kHandshakeBytes, token_bytes);
  handshake.token.assign(reinterpret_cast<const char*>(token.data()), token.size());
  return std::optional<RankHandshake>(std::move(handshake));
}

std::vector<std::byte> encode_handshake_reply(const HandshakeReply& reply) {
  std::vector<std::byte> out;
  append(out, kReplyMagic);
  append(out, static_cast<std::uint32_t>(reply.status));
  append(out, reply.rank);
  return out;
}

Result<std::optional<HandshakeReply>> decode_handshake_reply(std::span<const std::byte> bytes) {
  if (bytes.size() < kHandshakeReplyBytes) return std::optional<HandshakeReply>();
  const auto status = get<std::uint32_t>(bytes.data() + 8);
  if (get<std::uint64_t>(bytes.data()) != kReplyMagic || status < 1 || status > 2)
    return Error{Code::kInvalidInput, "it does not speak this protocol"};
  return std::optional<HandshakeReply>(
      HandshakeReply{static_cast<HandshakeStatus>(status), get<std::uint32_t>(bytes.data() + 12)});
}

// The server comes last: it may hold any text.
std::string format_endpoint(const PeerEndpoint& endpoint) {
  const auto rate = static_cast<std::uint64_t>(endpoint.link_rate.value);
  return std::string(kEndpointMark) + "\t" + endpoint.address + "\t" +
         std::to_string(endpoint.port) + "\t" + endpoint.unix_name + "\t" + std::to_string(rate) +
         "\t" + (endpoint.has_rdma ? "rdma" : "tcp") + "\t" + endpoint.domain + "\t" +
         endpoint.server;
}

Result<PeerEndpoint> parse_endpoint(const std::string& text) {
  const Error bad{Code::kInvalidInput, "not the endpoint of a regatta rank: '" + text + "'"};
  std::vector<std::string> parts = split(text, '\t');
  if (parts.size() < 8 || parts[0] != kEndpointMark) return bad;
  PeerEndpoint endpoint{.address = parts[1],
                        .port = 0,
                        .unix_name = parts[3],
                        .link_rate = {},
                        .has_rdma = parts[5] == "rdma",
                        .domain = parts[6],
                        .server = {}};
  const auto port = parse_number<decltype(endpoint.port)>(parts[2]);
  const auto rate = parse_number<std::uint64_t>(parts[4]);
  if (!port || !rate) return bad;
  if (!endpoint.has_rdma && parts[5] != "tcp") return bad;
  if (*rate > kRateMax) return bad;
  endpoint.port = *port;
  endpoint.link_rate.value = static_cast<double>(*rate);
  endpoint.server = join({parts.begin() + 7, parts.end()}, "\t");
  return endpoint;
}

}  // namespace regatta::comm
