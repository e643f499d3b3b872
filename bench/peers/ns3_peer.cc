// A ring all-reduce, packet by packet, simulated by regatta's fabric and by ns-3:
// regatta-peer-ns3-ring RANKS [ours|ns3|ns3-in-nanoseconds].
// Prints what each says that it takes, and what the simulation itself took.
//
// 64 MiB on each rank, one NIC of 400 Gbit/s, 1 us for each link, as many spines as servers to a
// leaf. ns-3: point-to-point devices, UDP of 4,096 bytes that a rank sends as fast as its NIC can,
// the ways by static routes; in picoseconds, for its own nanoseconds round the time of a packet on
// the wire (82.52 ns); the third choice leaves it that.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/peers/child_process.h"
#include "bench/peers/ns3_ring.h"
#include "regatta/network/fabric/internal/packet/test_packet_setup.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/traffic.h"

namespace {

using regatta::peers::Ns3RingOptions;

double simulate_ours(const Ns3RingOptions& one, bool is_mixed) {
  using namespace regatta::fabric;
  TestPacketSetup setup(static_cast<int>(one.ranks), static_cast<int>(one.per_leaf), {one.rate});
  add_ring_all_reduce(setup.traffic, one.ranks, {one.bytes},
                      [&](std::uint32_t from, std::uint32_t to) { return setup.pair(from, to); });
  const PacketOptions options{.mtu = {one.packet}, .header = {one.headers}};
  const auto end = [](const auto& report) {
    if (report) return report->end.value;
    std::fprintf(stderr, "%s\n", report.error().message.c_str());
    std::exit(1);
  };
  return is_mixed ? end(simulate_mixed(setup.setup(), setup.traffic, options))
                  : end(simulate_packets(setup.setup(), setup.traffic, options));
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::string who = argc > 2 ? argv[2] : "";
  if (ranks < 4 || ranks > 1024 || (ranks & (ranks - 1)) != 0 ||
      (!who.empty() && who != "ours" && who != "ns3" && who != "ns3-in-nanoseconds")) {
    std::fprintf(stderr,
                 "usage: %s RANKS [ours|ns3|ns3-in-nanoseconds]; a power of two from 4 to 1024\n",
                 argv[0]);
    return 2;
  }
  Ns3RingOptions one{.ranks = static_cast<unsigned>(ranks)};
  one.per_leaf = static_cast<unsigned>(std::lround(std::sqrt(one.ranks)));
  while (one.ranks % one.per_leaf != 0)
    --one.per_leaf;
  std::printf("ring, %u ranks, %u to a leaf, packet by packet\n", one.ranks, one.per_leaf);
  using regatta::peers::run_and_report;
  bool is_well = true;
  if (who.empty() || who == "ours")
    is_well = run_and_report("regatta", [&] { return simulate_ours(one, false); }) &&
              run_and_report("regatta mixed", [&] { return simulate_ours(one, true); });
  if (who.empty() || who == "ns3")
    is_well =
        run_and_report("ns-3", [&] { return regatta::peers::ns3_ring_all_reduce(one); }) && is_well;
  one.is_in_picoseconds = false;
  if (who == "ns3-in-nanoseconds")
    is_well =
        run_and_report("ns-3 in ns", [&] { return regatta::peers::ns3_ring_all_reduce(one); }) &&
        is_well;
  return is_well ? 0 : 1;
}
