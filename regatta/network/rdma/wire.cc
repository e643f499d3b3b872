#include "regatta/network/rdma/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "regatta/base/core/text.h"

namespace regatta::rdma {
namespace {

constexpr std::uint32_t kCardMagic = 0x50514752;  // "RGQP"
constexpr std::size_t kCardHeadBytes = 32;
constexpr std::uint16_t kFirstPort = 0xC000;
constexpr std::uint32_t kPorts = 0x4000;

}  // namespace

Result<Gid> gid_of(const std::string& address) {
  Gid gid{};
  if (inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
  gid[10] = gid[11] = 0xff;
  if (inet_pton(AF_INET, address.c_str(), gid.data() + 12) == 1) return gid;
  return Error{Code::kInvalidInput, "'" + address + "' is no IP address in numbers"};
}

std::vector<std::byte> encode_card(const QueueCard& card) {
  std::vector<std::byte> out(kCardHeadBytes + card.numbers.size() * 4);
  put(out.data(), kCardMagic);
  put(out.data() + 4, card.mtu);
  put(out.data() + 8, card.slots);
  put(out.data() + 12, static_cast<std::uint32_t>(card.numbers.size()));
  put(out.data() + 16, card.gid);
  for (std::size_t i = 0; i < card.numbers.size(); ++i)
    put(out.data() + kCardHeadBytes + i * 4, card.numbers[i]);
  return out;
}

Result<QueueCard> decode_card(std::span<const std::byte> bytes) {
  const Error bad{Code::kInvalidInput, "its queue pairs are not told as this version tells them"};
  if (bytes.size() < kCardHeadBytes || get<std::uint32_t>(bytes.data()) != kCardMagic) return bad;
  const auto count = get<std::uint32_t>(bytes.data() + 12);
  QueueCard card{.gid = get<Gid>(bytes.data() + 16),
                 .mtu = get<std::uint32_t>(bytes.data() + 4),
                 .slots = get<std::uint32_t>(bytes.data() + 8),
                 .numbers = {}};
  if (count < 1 || count > kQueuePairsMax ||
      bytes.size() != kCardHeadBytes + std::size_t{count} * 4)
    return bad;
  if (card.mtu < 256 || card.mtu > 4096 || card.slots < 4) return bad;
  for (std::size_t i = 0; i < count; ++i)
    card.numbers.push_back(get<std::uint32_t>(bytes.data() + kCardHeadBytes + i * 4));
  return card;
}

std::array<std::byte, kPlaceBytes> encode_place(const RemotePlace& place) {
  std::array<std::byte, kPlaceBytes> out{};
  put(out.data(), place.address);
  put(out.data() + 8, place.key);
  put(out.data() + 12, place.landing);
  return out;
}

RemotePlace decode_place(std::span<const std::byte, kPlaceBytes> bytes) {
  return {.address = get<std::uint64_t>(bytes.data()),
          .key = get<std::uint32_t>(bytes.data() + 8),
          .landing = get<std::uint32_t>(bytes.data() + 12)};
}

std::uint32_t flow_label_of(std::uint16_t udp_source_port) {
  return udp_source_port & (kPorts - 1);
}

std::uint16_t udp_source_port_of(std::uint32_t flow_label) {
  const std::uint32_t folded = (flow_label & (kPorts - 1)) ^ ((flow_label >> 14) & 0x3f);
  return static_cast<std::uint16_t>(kFirstPort | folded);
}

std::uint16_t udp_port_of_queue(std::uint32_t number) {
  constexpr std::uint32_t kGolden = 0x61C88647;  // hash_32() of the kernel
  return static_cast<std::uint16_t>(kFirstPort + (number * kGolden >> 18U));
}

std::vector<std::uint16_t> choose_source_ports(std::size_t count, std::uint32_t seed) {
  // Hashes of switches often keep low bits: a step that is odd and far from a power of two changes
  // them all. Every port but the first is usable, so the range has kPorts - 1.
  constexpr std::uint32_t kStep = 10127;
  std::vector<std::uint16_t> ports(std::min<std::size_t>(count, kPorts - 1));
  for (std::size_t i = 0; i < ports.size(); ++i)
    ports[i] = static_cast<std::uint16_t>(kFirstPort + 1 +
                                          (seed + i * std::uint64_t{kStep}) % (kPorts - 1));
  return ports;
}

}  // namespace regatta::rdma
