#include "regatta/runtime/comm/hello.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/bytes.h"
#include "regatta/base/core/number_text.h"
#include "regatta/base/core/text.h"

namespace regatta::comm {
namespace {

constexpr std::uint64_t kHelloMagic = 0x3141545441474552ULL;  // "REGATTA1"
constexpr std::uint64_t kReplyMagic = 0x4f4c4c4548544552ULL;  // "RETHELLO"
constexpr std::uint32_t kVersion = 3;
// A double holds every rate up to it.
constexpr std::uint64_t kRateMax = std::uint64_t{1} << 53;
constexpr std::string_view kEndpointMark = "regatta-coll-3";

template <typename T>
void append(std::vector<std::byte>& out, T value) {
  const auto at = out.size();
  out.resize(at + sizeof value);
  put(out.data() + at, value);
}

}  // namespace

std::vector<std::byte> encode_hello(const Hello& hello) {
  std::vector<std::byte> out;
  append(out, kHelloMagic);
  append(out, kVersion);
  append(out, hello.rank);
  append(out, hello.world_size);
  append(out, hello.connection);
  append(out, hello.connections);
  append(out, hello.meeting);
  append(out, static_cast<std::uint32_t>(hello.token.size()));
  for (const char c : hello.token)
    out.push_back(static_cast<std::byte>(c));
  return out;
}

Result<std::optional<Hello>> decode_hello(std::span<const std::byte> bytes) {
  // A stranger is known by its first bytes, before the rest is waited for.
  if (bytes.size() >= 8 && get<std::uint64_t>(bytes.data()) != kHelloMagic)
    return Error{Code::kInvalidInput, "it does not speak this protocol"};
  if (bytes.size() < kHelloBytes) return std::optional<Hello>();
  if (get<std::uint32_t>(bytes.data() + 8) != kVersion)
    return Error{Code::kInvalidInput, "it speaks another version of this protocol"};
  const auto token_bytes = get<std::uint32_t>(bytes.data() + 36);
  if (token_bytes > kTokenBytesMax) return Error{Code::kInvalidInput, "its job token is too long"};
  if (bytes.size() < kHelloBytes + token_bytes) return std::optional<Hello>();
  Hello hello{.rank = get<std::uint32_t>(bytes.data() + 12),
              .world_size = get<std::uint32_t>(bytes.data() + 16),
              .connection = get<std::uint32_t>(bytes.data() + 20),
              .connections = get<std::uint32_t>(bytes.data() + 24),
              .meeting = get<std::uint64_t>(bytes.data() + 28),
              .token = {}};
  const auto token = bytes.subspan(kHelloBytes, token_bytes);
  hello.token.assign(reinterpret_cast<const char*>(token.data()), token.size());
  return std::optional<Hello>(std::move(hello));
}

std::vector<std::byte> encode_reply(const Reply& reply) {
  std::vector<std::byte> out;
  append(out, kReplyMagic);
  append(out, static_cast<std::uint32_t>(reply.welcome));
  append(out, reply.rank);
  return out;
}

Result<std::optional<Reply>> decode_reply(std::span<const std::byte> bytes) {
  if (bytes.size() < kReplyBytes) return std::optional<Reply>();
  const auto welcome = get<std::uint32_t>(bytes.data() + 8);
  if (get<std::uint64_t>(bytes.data()) != kReplyMagic || welcome < 1 || welcome > 2)
    return Error{Code::kInvalidInput, "it does not speak this protocol"};
  return std::optional<Reply>(
      Reply{static_cast<Welcome>(welcome), get<std::uint32_t>(bytes.data() + 12)});
}

// The server comes last: it may hold any text.
std::string format_endpoint(const Endpoint& endpoint) {
  const auto rate = static_cast<std::uint64_t>(endpoint.link_rate.value);
  return std::string(kEndpointMark) + "\t" + endpoint.address + "\t" +
         std::to_string(endpoint.port) + "\t" + endpoint.unix_name + "\t" + std::to_string(rate) +
         "\t" + (endpoint.has_rdma ? "rdma" : "tcp") + "\t" + endpoint.server;
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  const Error bad{Code::kInvalidInput, "not the endpoint of a regatta rank: '" + text + "'"};
  std::vector<std::string> parts = split(text, '\t');
  if (parts.size() < 7 || parts[0] != kEndpointMark) return bad;
  Endpoint endpoint{.address = parts[1],
                    .port = 0,
                    .unix_name = parts[3],
                    .link_rate = {},
                    .has_rdma = parts[5] == "rdma",
                    .server = {}};
  const auto port = parse_number<decltype(endpoint.port)>(parts[2]);
  const auto rate = parse_number<std::uint64_t>(parts[4]);
  if (!port || !rate) return bad;
  if (!endpoint.has_rdma && parts[5] != "tcp") return bad;
  if (*rate > kRateMax) return bad;
  endpoint.port = *port;
  endpoint.link_rate.value = static_cast<double>(*rate);
  endpoint.server = join({parts.begin() + 6, parts.end()}, "\t");
  return endpoint;
}

}  // namespace regatta::comm
