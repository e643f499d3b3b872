// bench/peers/ns3_ring.h: a ring all-reduce in ns-3, whose headers are not C++20.
#pragma once

namespace regatta::peers {

struct Ns3RingOptions {
  unsigned ranks = 0;
  unsigned per_leaf = 0;          // as many spines
  long long bytes = 64LL << 20;   // on each rank
  unsigned packet = 4096;         // bytes without headers
  unsigned headers = 30;          // UDP 8, IP 20, PPP 2
  double rate = 50e9;             // of each link, bytes per second
  bool is_in_picoseconds = true;  // otherwise in nanoseconds
};

// Returns the time of the all-reduce in seconds; each link has a latency of 1 us.
double ns3_ring_all_reduce(const Ns3RingOptions& ring);

}  // namespace regatta::peers
