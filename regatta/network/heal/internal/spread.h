// heal/internal/spread.h: a route over several next hops as parts of the hash of connections, and
// how to take hops out of it, or back, without moving any connection that a healthy hop has.
//
// Linux gives hop i of a route the i-th range of the hash (fabric/traffic.h), so that a route which
// merely lacks a hop moves most of what the others had (RFC 2992, section 3). Here the ranges stay
// where they are: that of the broken hop is divided among the others in place, by naming gateways
// several times, with weights. A3 B3 C3 D3 without B: A3 (A1 C1 D1) C3 D3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace regatta::heal {

// Largest weight of one mention of a gateway in a route.
inline constexpr int kMaxWeight = 256;

// The next hop, a directed link by number, of the next `weight` of a route's ranges. 1 to
// kMaxWeight.
struct Part {
  std::uint32_t hop = 0;
  int weight = 1;

  friend bool operator==(const Part&, const Part&) = default;
};

// The route with all of these hops, equal.
std::vector<Part> even_parts(std::span<const std::uint32_t> hops);

// Turns `installed` into a route over `left` only, some (>= 1) of `all`, the hops of the route when
// all is well. Each hop left gets back its part of the hash in even_parts(all); of the rest, it
// keeps its current part; the remainder is divided among the hops left, those with the least first,
// as evenly as 1 / (n (n - 1)) of the hash for n hops allows. Equal to even_parts(all) when all are
// left. Where a hop comes back while others are still missing, hops with more than their even
// share give of what is not their own. Parts of an `installed` that does not fit into such a
// division, or names other hops, count as nobody's.
std::vector<Part> respread(std::span<const Part> installed, std::span<const std::uint32_t> all,
                           std::span<const std::uint32_t> left);

// The share of the hash, 0 to 1, that takes another path in `after` than in `before`, although its
// next hop before is one of `healthy`.
double moved_share(std::span<const Part> before, std::span<const Part> after,
                   std::span<const std::uint32_t> healthy);

}  // namespace regatta::heal
