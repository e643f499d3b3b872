// fabric/ecmp.h: the next hop that a switch with Linux's routing takes for a connection, among
// equally good ones: by a hash of its 5-tuple and of the switch's seed.
//
// As the kernel computes it from 6.11 on with net.ipv4.fib_multipath_hash_seed (not 0), on
// little-endian machines, for routes with several next hops, with or without weights, and without
// resilient groups. Sources: RFC 2992 (ranges of the hash); Aumasson and Bernstein, "SipHash: a
// fast short-input PRF", 2012; Jenkins, lookup3, 2006; held against a running kernel.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "regatta/base/core/ids.h"

namespace regatta::fabric {

// Numbers as one writes them: 10.0.0.1 is 0x0a000001.
struct FiveTuple {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint8_t protocol = 17;  // UDP; 6: TCP

  friend auto operator<=>(const FiveTuple&, const FiveTuple&) = default;
};

// Values of net.ipv4.fib_multipath_hash_policy that look at the 5-tuple.
enum class HashPolicy : std::uint8_t {
  kLayer4 = 1,  // of what a machine itself sent or received, another hash may stand in the packet
  kFields = 3,  // with fib_multipath_hash_fields 0x37: never that one. The lab's switches.
};

// The same for both directions of a connection.
std::uint32_t ecmp_hash(const FiveTuple& flow, std::uint32_t seed, HashPolicy policy);

// Which of `hops` >= 1 next hops, in the order of the route, takes what has this hash.
std::size_t ecmp_choice(std::uint32_t hash, std::size_t hops);

// The same where next hop i has `weights[i]` >= 1: its range of the hash is as large as its share.
// A gateway that is named twice has two ranges.
std::size_t ecmp_choice(std::uint32_t hash, std::span<const int> weights);

// For Routes::path(): each switch by its own seed.
struct EcmpNextHop {
  FiveTuple flow;
  std::span<const std::uint32_t> seeds;  // by NodeId
  HashPolicy policy = HashPolicy::kFields;
  std::size_t operator()(NodeId node, std::size_t hops) const {
    return ecmp_choice(ecmp_hash(flow, seeds[node.index()], policy), hops);
  }
};

// SipHash-2-4 of whole 8-byte words.
std::uint64_t siphash(std::span<const std::uint64_t> words, std::uint64_t key0, std::uint64_t key1);

}  // namespace regatta::fabric
