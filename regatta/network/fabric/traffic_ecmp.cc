#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

// The state of SipHash.
struct Sip {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

// As they lie in a packet, read as the kernel does on a little-endian machine.
std::uint32_t in_packet(std::uint32_t number) {
  return (number >> 24U) | ((number >> 8U) & 0xff00U) | ((number << 8U) & 0xff0000U) |
         (number << 24U);
}
std::uint16_t in_packet(std::uint16_t number) {
  return static_cast<std::uint16_t>((number >> 8U) | (number << 8U));
}

// Jenkins' hash of two words, the second one 0: the kernel's mix of a packet's outer hash with that
// of a packet inside it, where there is none.
std::uint32_t mixed_with_none(std::uint32_t outer) {
  constexpr std::uint32_t kStart = 0xdeadbeef + 2 * 4;
  std::uint32_t a = outer + kStart;
  std::uint32_t b = kStart;
  std::uint32_t c = kStart;
  const auto mix = [](std::uint32_t& into, std::uint32_t from, int turn) {
    into = (into ^ from) - std::rotl(from, turn);
  };
  mix(c, b, 14);
  mix(a, c, 11);
  mix(b, a, 25);
  mix(c, b, 16);
  mix(a, c, 4);
  mix(b, a, 14);
  mix(c, b, 24);
  return c;
}

}  // namespace

std::uint64_t siphash(std::span<const std::uint64_t> words, std::uint64_t key0,
                      std::uint64_t key1) {
  Sip sip{key0 ^ 0x736f6d6570736575U, key1 ^ 0x646f72616e646f6dU, key0 ^ 0x6c7967656e657261U,
          key1 ^ 0x7465646279746573U};
  for (const std::uint64_t word : words)
    sip.take(word);
  sip.take(static_cast<std::uint64_t>(8 * words.size()) << 56U);
  sip.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i)
    sip.round();
  return sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3;
}

std::uint32_t ecmp_hash(const FiveTuple& flow, std::uint32_t seed, HashPolicy policy) {
  std::uint32_t from = in_packet(flow.from);
  std::uint32_t to = in_packet(flow.to);
  std::uint16_t from_port = in_packet(flow.from_port);
  std::uint16_t to_port = in_packet(flow.to_port);
  // Both directions alike; addresses and ports each by themselves.
  if (to < from) std::swap(from, to);
  if (to_port < from_port) std::swap(from_port, to_port);
  // The kernel's struct flow_keys from its member `basic` on: 0 where the hash policy leaves a
  // field out, and 4 bytes at the end that only align it.
  const std::uint64_t ports = from_port | static_cast<std::uint64_t>(to_port) << 16U;
  const std::array<std::uint64_t, 6> words = {
      static_cast<std::uint64_t>(flow.protocol) << 16U,  // protocol; label of the flow
      0,                                                 // VLAN
      0,                                                 // VLAN of the customer
      ports << 32U,                                      // key of a tunnel; ports
      static_cast<std::uint64_t>(from) << 32U,           // ICMP; address
      to,                                                // address
  };
  const std::uint64_t key = static_cast<std::uint64_t>(seed) << 32U | seed;
  const auto hash =
      std::max(static_cast<std::uint32_t>(siphash(words, key, key)), std::uint32_t{1});
  return policy == HashPolicy::kFields ? mixed_with_none(hash) : hash;
}

std::size_t ecmp_choice(std::uint32_t hash, std::size_t hops) {
  REGATTA_CHECK(hops >= 1);
  // Hop i ends at (i + 1) 2^31 / hops, rounded to the nearest, less 1.
  const std::uint64_t half = hash >> 1U;
  std::size_t hop = half * hops >> 31U;  // up to rounding
  const auto end_of = [hops](std::size_t i) {
    return ((static_cast<std::uint64_t>(i + 1) << 31U) + hops / 2) / hops;
  };
  while (hop > 0 && half < end_of(hop - 1))
    --hop;
  while (half >= end_of(hop))
    ++hop;
  return hop;
}

std::size_t ecmp_choice(std::uint32_t hash, std::span<const int> weights) {
  REGATTA_CHECK(!weights.empty());
  std::uint64_t total = 0;
  for (const int weight : weights) {
    REGATTA_CHECK(weight >= 1);
    total += static_cast<std::uint64_t>(weight);
  }
  const std::uint64_t half = hash >> 1U;
  std::uint64_t sum = 0;
  for (std::size_t hop = 0; hop + 1 < weights.size(); ++hop) {
    sum += static_cast<std::uint64_t>(weights[hop]);
    if (half < ((sum << 31U) + total / 2) / total) return hop;
  }
  return weights.size() - 1;
}

}  // namespace regatta::fabric
