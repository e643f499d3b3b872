#include "regatta/model/cost/gpu_network.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"

namespace regatta::cost {
namespace {

const ServerNetwork kServer{.devices = 8,
                            .link = BytesPerSecond{240e9},
                            .latency = Seconds{50e-6},
                            .reach = {ScopeBandwidth{1 << 20, BytesPerSecond{160e9}}}};
constexpr double kBytes = 1 << 30;

double time_of(const RankGroup& group, Collective collective) {
  return collective_time(kServer, group, collective, kBytes).value;
}

TEST(CollectiveTime, OfAnAllReduceIsThatOfItsTwoHalves) {
  for (const RankGroup group :
       {RankGroup{.ranks = 8, .inside = 8}, RankGroup{.ranks = 64, .inside = 1, .rings = 8}}) {
    const double halves =
        time_of(group, Collective::kReduceScatter) + time_of(group, Collective::kAllGather);
    const double latency = group.ranks == 8 ? 50e-6 : 50e-6 * 6;
    EXPECT_NEAR(time_of(group, Collective::kAllReduce), halves - latency, 1e-9);
  }
}

TEST(CollectiveTime, IsNeverBelowWhatTheSlowestLinkTakes) {
  const double bytes = 2 * kBytes * 63 / 64;
  EXPECT_GE(time_of({.ranks = 64, .inside = 8, .rings = 1}, Collective::kAllReduce), bytes / 160e9);
  // Eight groups share the network of a server.
  EXPECT_GE(time_of({.ranks = 64, .inside = 1, .rings = 8}, Collective::kAllReduce), bytes / 20e9);
  EXPECT_GE(time_of({.ranks = 8, .inside = 8}, Collective::kAllReduce), 2 * kBytes * 7 / 8 / 240e9);
}

TEST(CollectiveTime, OfOneRankIsNothing) {
  EXPECT_EQ(time_of({.ranks = 1}, Collective::kAllReduce), 0);
  EXPECT_EQ(hierarchical_all_reduce_time(kServer, 1, kBytes).value, 0);
}

TEST(CollectiveTime, OfAGroupOverServersIsThatInsideAndBetween) {
  const double inside = 2 * kBytes * 7 / 8 / 240e9;
  const double between = 2 * kBytes / 2 / 160e9;
  EXPECT_NEAR(hierarchical_all_reduce_time(kServer, 16, kBytes).value, inside + between + 100e-6,
              1e-9);
}

// A rack of 18 trays of four devices, of which a job on 64 of them fills 64 devices.
ServerNetwork rack_network(int servers, int racks = 1000) {
  ServerNetwork network =
      server_network(*topo::find_server_preset("gb200-nvl72"), *find_software_stack("nemo"));
  network.domains_most = racks;
  return network_of_job(network, servers);
}

TEST(NetworkOfJob, FillsTheSamePartOfEveryDomain) {
  const auto devices = [](int servers) { return rack_network(servers).devices; };
  EXPECT_EQ(devices(1), 4);
  EXPECT_EQ(devices(2), 8);
  EXPECT_EQ(devices(16), 64);
  EXPECT_EQ(devices(64), 64) << "four racks, of 72 devices each";
  EXPECT_EQ(devices(72), 72);
  // The NICs of a part are those of its servers.
  const double tray = rack_network(1).reach[0].rate.value;
  EXPECT_NEAR(rack_network(64).reach[0].rate.value / tray, 16, 1e-9);
  EXPECT_EQ(network_of_job(rack_network(64), 2).devices, 8) << "from any job's to any other's";
}

TEST(JobParts, AreEqualWhereThereAreDomainsEnough) {
  using Parts = topo::DomainParts;
  const topo::ScaleUp rack{.servers = 18};
  EXPECT_EQ(job_parts(rack, 64, 4), (Parts{.domains = 4, .servers = 16, .last = 16}));
  EXPECT_EQ(job_parts(rack, 70, 5), (Parts{.domains = 5, .servers = 14, .last = 14}));
  EXPECT_EQ(job_parts(rack, 70, 4), (Parts{.domains = 4, .servers = 18, .last = 16}));
  EXPECT_EQ(job_parts(rack, 71, 1000), (Parts{.domains = 4, .servers = 18, .last = 17}))
      << "one tray a rack is no use of racks";
  EXPECT_EQ(job_parts({}, 71, 71), (Parts{.domains = 71, .servers = 1, .last = 1}));
}

// 70 trays of four racks are 18 of each of three and 16 of the fourth.
TEST(NetworkOfJob, HasThePaceOfTheSmallestPart) {
  const ServerNetwork network = rack_network(70, 4);
  EXPECT_EQ(network.devices, 64);
  EXPECT_EQ(network.domains, 4);
  EXPECT_EQ(network.more_devices, 8);
  const double tray = rack_network(1).reach[0].rate.value;
  EXPECT_NEAR(network.reach[0].rate.value / tray, 16, 1e-9);
  EXPECT_EQ(network_of_job(network, 72).more_devices, 0);
}

// Compared with a count of the ranks of every group in every rack.
TEST(RanksInside, AreThoseOfTheSmallestPartWhereTheLastRackIsSmaller) {
  for (const int servers : {19, 53, 70, 71}) {
    const topo::DomainParts parts = topo::domain_parts({.servers = 18}, servers);
    const int racks = parts.domains;
    const int devices = 4 * servers;
    for (const int extent : {4, 8, 16, 24, 32, 64, 70, devices / 2, devices}) {
      if (devices % extent != 0) continue;
      int least = extent;
      for (int first = 0; first < devices; first += extent) {
        std::map<int, int> in;
        for (int device = first; device < first + extent; ++device)
          ++in[device / (4 * parts.servers)];
        for (const auto& [rack, count] : in)
          least = std::min(least, count);
      }
      EXPECT_EQ(ranks_inside(rack_network(servers, racks), extent, 1), least)
          << servers << " trays, groups of " << extent;
    }
  }
  EXPECT_EQ(ranks_inside(rack_network(71, 4), 284, 1), 68);
  EXPECT_EQ(ranks_inside(rack_network(71, 4), 71, 4), 17);
}

TEST(NetworkOfJob, OfServersThatNothingJoinsIsTheServer) {
  const ServerNetwork server =
      server_network(*topo::find_server_preset("dgx-h100"), *find_software_stack("nemo"));
  EXPECT_EQ(network_of_job(server, 64).devices, 8);
  EXPECT_EQ(network_of_job(server, 64).reach[0].rate, server.reach[0].rate);
}

TEST(RanksInside, AreThoseOfTheSmallestPartOfAGroup) {
  const ServerNetwork rack = rack_network(18);
  EXPECT_EQ(rack.devices, 72);
  EXPECT_EQ(ranks_inside(rack, 8, 1), 8);
  EXPECT_EQ(ranks_inside(rack, 64, 1), 8) << "the second group has 8 ranks in the first rack";
  EXPECT_EQ(ranks_inside(rack_network(16), 64, 1), 64);
  EXPECT_EQ(ranks_inside(rack_network(16), 128, 4), 16);
  EXPECT_EQ(ranks_inside(kServer, 16, 2), 4);
  EXPECT_EQ(ranks_inside(kServer, 4, 8), 1);
}

double all_reduce_in_rack(int ranks, double bytes) {
  return collective_time(rack_network(18), {.ranks = ranks, .inside = ranks},
                         Collective::kAllReduce, bytes)
      .value;
}

// NVIDIA/nccl-tests, issue 212: 275 of 370 GB/s; a ring of 72 would move 2 * 71 / 72 of the bytes.
TEST(CollectiveTime, OfAnAllReduceInARackIsThatOfTheSwitches) {
  ServerNetwork plain = rack_network(18);
  plain.in_network_reduction = false;
  const RankGroup rack{.ranks = 72, .inside = 72};
  const double switches = all_reduce_in_rack(72, kBytes);
  const double halves = collective_time(plain, rack, Collective::kAllReduce, kBytes).value;
  const double once = kBytes / plain.link.value;
  const double latency = plain.latency.value + 2 * plain.switch_latency.value;
  EXPECT_NEAR(switches, latency + once * 370 / 275, 1e-9);
  EXPECT_NEAR(halves, latency + once * 2 * 71 / 72, 1e-9);
  EXPECT_LT(hierarchical_all_reduce_time(rack_network(18), 72, kBytes),
            hierarchical_scatter_and_gather_time(rack_network(18), 72, kBytes))
      << "work between the halves keeps the switches from summing";
}

TEST(CollectiveTime, OfFewBytesInARackIsOnePass) {
  const ServerNetwork rack = rack_network(18);
  EXPECT_NEAR(all_reduce_in_rack(4, 8), (rack.latency + rack.switch_latency).value, 1e-9);
}

// Eight experts' ranks of every server; two copies of a token.
TEST(DispatchTime, SendsAServerOneCopyHoweverManyOfItsRanksWantIt) {
  const auto time = [](int ranks, int copies) {
    return dispatch_time(kServer, {.ranks = ranks, .copies = copies}, kBytes).value - 50e-6;
  };
  EXPECT_EQ(dispatch_time(kServer, {.ranks = 1, .copies = 2}, kBytes).value, 0);
  EXPECT_NEAR(time(8, 2), kBytes * 2 * 7 / 8 / 240e9, 1e-9);
  // A token's two copies reach 2 (1 - 1/4) of two servers, half of these the other server.
  EXPECT_NEAR(time(16, 2), kBytes * 0.75 / 20e9, 1e-9);
  EXPECT_LT(time(16, 8), 1.4 * time(16, 2));
}

// 8 ranks: two copies reach 8 (1 - (7/8)^2) of them; where only half may be chosen,
// 4 (1 - (3/4)^2).
TEST(DispatchTime, SendsARankOneCopyHoweverManyOfItsExpertsWantItWhereTheStackCan) {
  const auto sent = [](const TokenDispatch& dispatch) {
    return (dispatch_time(kServer, dispatch, kBytes).value - 50e-6) * 240e9 / kBytes;
  };
  EXPECT_NEAR(sent({.ranks = 8, .copies = 2, .is_once_a_rank = true}), 1.875 * 7 / 8, 1e-6);
  EXPECT_NEAR(sent({.ranks = 8, .copies = 2, .is_once_a_rank = true, .reach = 0.5}), 1.75 * 7 / 8,
              1e-6);
}

// 4 of 8 servers may be chosen: eight copies reach 4 (1 - (3/4)^8) of them.
TEST(DispatchTime, ReachesFewerServersWhereTokensGoToSomeGroupsOfExperts) {
  EXPECT_NEAR(copies_to_other_servers(8, 8, 0.5), 3.5995 * 7 / 8, 1e-3);
  EXPECT_LT(copies_to_other_servers(8, 8, 0.5), copies_to_other_servers(8, 8));
}

TEST(AllToAllTime, IsBoundByWhatLeavesTheServer) {
  EXPECT_NEAR(all_to_all_time(kServer, {.ranks = 16, .inside = 8}, kBytes).value,
              kBytes / 2 / 20e9 + 50e-6, 1e-9);
  EXPECT_EQ(all_to_all_time(kServer, {.ranks = 1}, kBytes).value, 0);
}

TEST(RingStepTime, SharesTheNetworkAmongTheRings) {
  EXPECT_NEAR(ring_step_time(kServer, {.ranks = 8, .inside = 8}, kBytes).value, kBytes / 240e9,
              1e-9);
  EXPECT_NEAR(ring_step_time(kServer, {.ranks = 16, .inside = 4, .rings = 2}, kBytes).value,
              kBytes / 80e9 + 50e-6, 1e-9);
}

// 32 servers of 8 devices with 8 NICs of 400 Gb/s: leaves of 4 servers on 8 rails, whose uplinks
// carry half of what their servers send.
TEST(ClusterNetwork, KnowsWhatTheUplinksOfALeafCarry) {
  topo::Cluster cluster;
  cluster.server_types["gpu"] = *topo::find_server_preset("dgx-h100");
  cluster.fabric = {
      .tiers = 2, .rails = 8, .servers_per_leaf = 4, .spines = 2, .uplink = BytesPerSecond{50e9}};
  for (int i = 0; i < 32; ++i)
    cluster.servers.push_back({.name = "s" + std::to_string(i), .type = "gpu"});
  SoftwareStack stack = *find_software_stack("megatron-core");
  stack.calibration.network_efficiency = 1;
  const ServerNetwork network = cluster_network(cluster, stack);
  EXPECT_DOUBLE_EQ(network.network(32).value, 400e9);
  EXPECT_DOUBLE_EQ(network.network(33).value, 200e9);
  EXPECT_DOUBLE_EQ(network.network(256).value, 200e9);
}

TEST(MessageTime, SharesTheNetworkOfTheServerAmongItsDevices) {
  EXPECT_NEAR(message_time(kServer, 8, 2, kBytes).value, kBytes / 20e9 + 50e-6, 1e-9);
  EXPECT_NEAR(message_time(kServer, 2, 4, kBytes).value, kBytes / 240e9 + 50e-6, 1e-9);
}

TEST(ClusterNetwork, TakesLatenciesThatAreLongerThanACollectives) {
  topo::Cluster cluster;
  cluster.server_types["gpu"] = *topo::find_server_preset("dgx-h100");
  cluster.fabric = {.tiers = 2, .servers_per_leaf = 4, .spines = 2, .uplink = BytesPerSecond{50e9}};
  cluster.servers.push_back({.name = "s", .type = "gpu"});
  const SoftwareStack& stack = *find_software_stack("megatron-core");
  const Seconds usual = cluster_network(cluster, stack).latency;
  EXPECT_EQ(cluster_network(cluster, stack).network_latency(), usual);
  cluster.fabric.hop_latency = Seconds{1.0};
  EXPECT_EQ(cluster_network(cluster, stack).network_latency(), Seconds{4.0});
  EXPECT_EQ(cluster_network(cluster, stack).latency, usual);
  cluster.server_types["gpu"].intra.latency = Seconds{2.0};
  EXPECT_EQ(cluster_network(cluster, stack).latency, Seconds{2.0});
}

TEST(MessageTime, IsThatOfTheBoundaryThatLeavesTheServer) {
  EXPECT_NEAR(message_time(kServer, 2, 8, kBytes).value, kBytes / 20e9 + 50e-6, 1e-9);
}

// Two leaves of 64 devices: of stages of 8 devices only the first and the last of a leaf send out
// of it, so that they share uplinks that all servers would need.
TEST(MessageTime, SharesUplinksAmongTheStagesAtTheEndsOfALeaf) {
  ServerNetwork network = kServer;
  const double fast = network.reach[0].rate.value;
  network.reach[0].devices = 64;
  network.reach[1].devices = network.reach[2].devices = 1 << 20;
  network.reach[1].rate = network.reach[2].rate = BytesPerSecond{fast / 16};
  const auto rate = [&](int stride, int stages) {
    return 8 * kBytes / (message_time(network, stride, stages, kBytes) - network.latency).value;
  };
  EXPECT_NEAR(rate(8, 8), fast, 1);            // one leaf
  EXPECT_NEAR(rate(8, 16), fast / 16 * 4, 1);  // 2 of 8 stages of a leaf
  EXPECT_NEAR(rate(32, 4), fast / 16, 1);      // both
  EXPECT_NEAR(rate(128, 2), fast / 16, 1);     // a stage fills two leaves
}

}  // namespace
}  // namespace regatta::cost
