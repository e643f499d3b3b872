#include "regatta/network/simulate/run_scenario.h"

#include <cmath>

#include <gmock/gmock.h>

#include "regatta/network/simulate/test_cluster.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

using testing::HasSubstr;

SimulationResult run(const SimulatedNetwork& network, const std::string& text,
                     const SimulateOptions& options = {}) {
  const auto outcome = run_scenario(parse(text), network, options);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? *outcome : SimulationResult{};
}

std::string error_of(const SimulatedNetwork& network, const std::string& text) {
  const auto outcome = run_scenario(parse(text), network);
  return outcome ? "it ran" : outcome.error().message;
}

const std::string kMessage = "traffic: [{pattern: message, from: s0/0, to: s2/0, bytes: 50MB}]\n";

// One item of several.
std::string send(const std::string& from, const std::string& to, const std::string& more = "") {
  return "  - {pattern: message, from: " + from + ", to: " + to + ", bytes: 50MB" + more + "}\n";
}

const std::string kAllToAll = "traffic: [{pattern: all_to_all, bytes: 64MB}]\n";
const std::string kRing = "traffic: [{pattern: ring_all_reduce, bytes: 64MiB, ranks: all}]\n";
const std::string kIncast = "traffic: [{pattern: incast, to: s0/0, bytes: 4MiB, ranks: all}]\n";

TEST(RunScenario, AMessageTakesItsBytesOverTheRateAndTheLatencyOfItsLinks) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const SimulationResult outcome = run(network, kMessage);
  EXPECT_NEAR(outcome.end, 1e-3 + 4e-6, 1e-12);
  ASSERT_EQ(outcome.operations.size(), 1U);
  EXPECT_NEAR(outcome.operations[0].bound, 1e-3, 1e-12);
  EXPECT_DOUBLE_EQ(outcome.operations[0].network_bytes, 50e6);
  EXPECT_EQ(outcome.messages, 1U);
  ASSERT_EQ(outcome.slowest.size(), 1U);
  EXPECT_NEAR(outcome.slowest[0].alone, 1e-3, 1e-12);
}

TEST(RunScenario, InsideAServerAMessageTakesItsLinkAndNoNic) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const SimulationResult outcome =
      run(network, "traffic: [{pattern: message, from: s0/0, to: s0/1, bytes: 50MB}]\n");
  EXPECT_NEAR(outcome.end, 250e-6 + 1e-6, 1e-12);
  EXPECT_DOUBLE_EQ(outcome.operations[0].network_bytes, 0);
}

// Two servers a domain, whose links carry 400 GB/s in 2 us: no NIC.
topo::Cluster joined_cluster(int servers, int devices) {
  topo::Cluster cluster = test_cluster(servers, devices);
  cluster.server_types["one"].scale_up = {
      .servers = 2, .bandwidth = {400e9}, .latency = {2e-6}, .in_network_reduction = false};
  return cluster;
}

TEST(RunScenario, InsideADomainAMessageTakesItsLinkAndNoNic) {
  const SimulatedNetwork network(joined_cluster(4, 2));
  for (const std::string level : {"level: flow\n", "level: packet\n"}) {
    const SimulationResult joined =
        run(network, level + "traffic: [{pattern: message, from: s0/0, to: s1/1, bytes: 50MB}]\n");
    EXPECT_NEAR(joined.end, 125e-6 + 2e-6, 2e-6) << level;
    EXPECT_DOUBLE_EQ(joined.operations[0].network_bytes, 0) << level;
  }
  const SimulationResult apart = run(network, kMessage);
  EXPECT_NEAR(apart.end, 1e-3 + 4e-6, 1e-12);
}

// Half of what a rank sends stays in its domain of four ranks, folded or one by one.
TEST(RunScenario, AnAllToAllLeavesDomainsOnly) {
  const SimulatedNetwork network(joined_cluster(4, 2));
  const std::string all = "{pattern: all_to_all, bytes: 64MB";
  const double folded = run(network, "routing: {policy: spray}\ntraffic: [" + all + "}]\n").end;
  const SimulationResult single =
      run(network, "routing: {policy: spray}\ntraffic: [" + all + ", aggregate: false}]\n");
  EXPECT_NEAR(folded / single.end, 1, 0.01);
  EXPECT_DOUBLE_EQ(single.operations[0].network_bytes, 8 * 64e6 * 4 / 8);
}

// Two rows of two servers: each rank sends half the vector to its peer in the other domain.
TEST(RunScenario, AHierarchicalAllReduceTakesADomainForAServer) {
  const std::string all =
      "traffic: [{pattern: hierarchical_all_reduce, bytes: 64MB, ranks: all}]\n";
  const SimulationResult joined = run(SimulatedNetwork(joined_cluster(4, 1)), all);
  EXPECT_DOUBLE_EQ(joined.operations[0].network_bytes, 4 * 64e6 / 2);
  EXPECT_THAT(error_of(SimulatedNetwork(test_cluster(4, 1)), all),
              HasSubstr("these ranks are no equal rows over several servers"));
}

TEST(RunScenario, ItemsStartWhenTheyShallAndAfterWhatTheyWaitFor) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const SimulationResult outcome =
      run(network, "traffic:\n" + send("s0/0", "s2/0", ", name: one, start: 1ms") +
                       send("s0/0", "s2/0", ", after: one, start: 2ms") +
                       send("s1/1", "s3/1", ", repeat: 3"));
  EXPECT_NEAR(outcome.operations[0].start, 1e-3, 1e-12);
  EXPECT_NEAR(outcome.operations[1].start, 4e-3 + 4e-6, 1e-9);
  EXPECT_NEAR(outcome.operations[2].end, 3 * (1e-3 + 4e-6), 1e-9);
  EXPECT_EQ(outcome.operations[2].messages, 3U);
}

TEST(RunScenario, TellsBusbwAsNcclTestsDo) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const SimulationResult outcome = run(network,
                                       "routing: {policy: destination}\n"
                                       "traffic: [{pattern: ring_all_reduce, bytes: 400MB}]\n");
  const OperationStats& ring = outcome.operations[0];
  EXPECT_NEAR(ring.algbw, 400e6 / ring.time(), 1);
  EXPECT_NEAR(ring.busbw, 50e9, 0.01 * 50e9);
}

// Hashing sends two flows of a leaf with two uplinks over the same uplink half of the time; planned
// ports never do, and sprayed packets use both.
TEST(RunScenario, PortsThatArePlannedOrSpraysKeepFlowsApartThatChanceLeadsTogether) {
  const SimulatedNetwork network(test_cluster(4, 1));
  int collisions = 0;
  for (int seed = 0; seed < 16; ++seed) {
    const std::string traffic = "seed: " + std::to_string(seed) + "\ntraffic:\n" +
                                send("s0/0", "s2/0") + send("s1/0", "s3/0");
    EXPECT_NEAR(run(network, "routing: {ports: planned}\n" + traffic).end, 1.004e-3, 1e-9);
    EXPECT_NEAR(run(network, "routing: {policy: spray}\n" + traffic).end, 1.004e-3, 1e-9);
  }
  for (int server = 0; server < 2; ++server) {
    for (const int device : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const SimulatedNetwork rails(test_cluster(4, 8));
      const std::string at = "/" + std::to_string(device);
      const std::string to = std::to_string(2 + server);
      const std::string other = std::to_string(3 - server);
      const double end = run(rails, "traffic:\n" + send("s0" + at, "s" + to + at) +
                                        send("s1" + at, "s" + other + at))
                             .end;
      collisions += end > 1.9e-3 ? 1 : 0;
    }
  }
  EXPECT_GT(collisions, 2);
  EXPECT_LT(collisions, 14);
}

// Pieces of one connection follow each other at both levels, so trees are pipelined at both. They
// shared its rate at the flow level before, which took 2.0 to 2.7 times as long.
TEST(RunScenario, FlowsOfAllReducesEndWhenPacketsDo) {
  for (const int servers : {4, 8, 16}) {
    const SimulatedNetwork network(test_cluster(servers, 1));
    for (const char* const pattern :
         {"ring_all_reduce", "tree_all_reduce", "halving_doubling_all_reduce"}) {
      const std::string text = std::string("routing: {ports: planned}\ntraffic: [{pattern: ") +
                               pattern + ", bytes: 64MiB}]\n";
      const double flows = run(network, text).end;
      const double packets = run(network, text + "level: packet\n").end;
      // Packets of 16 ranks that halve and double also wait for each other in switches.
      EXPECT_NEAR(flows / packets, 1, servers < 16 ? 0.05 : 0.08) << pattern << " of " << servers;
    }
  }
}

// The seed had no effect on ports, so that all seeds gave the same collisions.
TEST(RunScenario, TheSeedDrawsThePortsOfChance) {
  const SimulatedNetwork network(test_cluster(4, 1));
  for (const std::string level : {"level: flow\n", "level: packet\n"}) {
    const auto end = [&](const std::string& seed) {
      return run(network, level + seed + "traffic:\n" + send("s0/0", "s2/0") + send("s1/0", "s3/0"))
          .end;
    };
    int collisions = 0;
    for (int seed = 0; seed < 16; ++seed)
      collisions += end("seed: " + std::to_string(seed) + "\n") > 1.9e-3 ? 1 : 0;
    EXPECT_GT(collisions, 2) << level;
    EXPECT_LT(collisions, 14) << level;
    EXPECT_EQ(end("seed: 5\n"), end("seed: 5\n")) << level;
    EXPECT_EQ(end("seed: 1\n"), end("")) << level;
  }
}

// 64 servers, four groups of four leaves, four spines a group, each with two super-spines above.
topo::Cluster three_tiers() {
  topo::Cluster cluster = test_cluster(64, 1);
  cluster.fabric.tiers = 3;
  cluster.fabric.servers_per_leaf = 4;
  cluster.fabric.spines = 4;
  cluster.fabric.leaves_per_group = 4;
  cluster.fabric.super_spines = 8;
  cluster.fabric.super_uplink = {50e9};
  return cluster;
}

TEST(RunScenario, WhatTakesMoreMemoryThanThereIsIsRefusedWithTheLine) {
  const SimulatedNetwork network(three_tiers());
  const Scenario scenario = parse(
      "traffic:\n"
      "  - {pattern: message, from: s0/0, to: s1/0, bytes: 1MB}\n"
      "  - {pattern: all_to_all, bytes: 64MB}\n");
  // 4,032 messages, each between ranks of its own.
  EXPECT_TRUE(run_scenario(scenario, network, {.memory = {2'000'000}}));
  const auto refused = run_scenario(scenario, network, {.memory = {1'000'000}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidInput);
  EXPECT_THAT(refused.error().message, HasSubstr("scenario.yaml:3: 4033 messages take some 1.4"));
  EXPECT_THAT(refused.error().message, HasSubstr("or policy: spray"));
  Scenario sprayed = scenario;
  sprayed.routing.policy = RoutePolicy::kSpray;
  sprayed.traffic.erase(sprayed.traffic.begin());
  EXPECT_TRUE(run_scenario(sprayed, network, {.memory = {1'000'000}}));
}

TEST(RunScenario, SwitchesThatShareASeedAreFoundByTheLinksTheyLeaveEmpty) {
  const SimulatedNetwork network(three_tiers());
  const SimulationResult shared = run(network, "routing: {hash_seeds: shared}\n" + kAllToAll);
  ASSERT_EQ(shared.polarisation.size(), 1U);
  EXPECT_THAT(diag::to_string(network.graph, shared.polarisation[0]),
              HasSubstr("spines hash as leaves do: "));
  for (const std::uint32_t link : shared.polarisation[0].empty)
    EXPECT_EQ(shared.links[link].bytes, 0) << network.link_name(link);
  EXPECT_THAT(run(network, kAllToAll).polarisation, testing::IsEmpty());
  EXPECT_THAT(run(network, "routing: {policy: spray}\n" + kAllToAll).polarisation,
              testing::IsEmpty());
}

// A link that has failed is empty for another reason.
TEST(RunScenario, LinksThatFailAreNotTakenForHashesAlike) {
  const SimulatedNetwork network(three_tiers());
  std::string text = kAllToAll + "failures:\n";
  for (const char* spine : {"spine0", "spine1", "spine2", "spine3"})
    text += std::string("  - {at: 0s, switch: ") + spine + ", local: 0s, converged: 0s}\n";
  EXPECT_THAT(run(network, text).polarisation, testing::IsEmpty());
}

TEST(RunScenario, SeveralConnectionsCarryAMessageInParts) {
  const SimulatedNetwork network(test_cluster(4, 1));
  std::size_t told = 0;
  const SimulationResult outcome =
      run(network,
          "routing: {connections: 8}\ntraffic:\n" + send("s0/0", "s2/0", ", name: one") +
              send("s2/0", "s0/0", ", after: one"),
          {.on_message = [&](const MessageRecord& message) {
            EXPECT_DOUBLE_EQ(message.bytes, 50e6);
            ++told;
          }});
  EXPECT_EQ(told, 2U);
  EXPECT_EQ(outcome.messages, 2U);
  EXPECT_NEAR(outcome.end, 2 * 1.004e-3, 1e-8);
}

TEST(RunScenario, AFailureStopsFlowsUntilSwitchesLeadThemAroundIt) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const auto with = [&](const std::string& failures) {
    return run(network, "routing: {policy: destination}\n" + kMessage + "failures:\n" + failures);
  };
  const double alone = 1.004e-3;
  // The path of the message, by destination: s2 is the first below its leaf, so spine0.
  EXPECT_NEAR(with("  - {at: 200us, link: leaf0-spine0, local: 50us, converged: 10ms}\n").end,
              alone + 50e-6, 1e-9);
  EXPECT_NEAR(with("  - {at: 200us, link: leaf1-spine0, local: 50us, converged: 10ms}\n").end,
              alone + 10e-3, 1e-9);
  EXPECT_NEAR(with("  - {at: 200us, switch: spine0, local: 50us, converged: 10ms}\n").end,
              alone + 50e-6, 1e-9);
  EXPECT_NEAR(with("  - {at: 200us, link: leaf1-spine0, until: 700us}\n").end, alone + 500e-6,
              1e-9);
  EXPECT_NEAR(with("  - {at: 200us, link: leaf0-spine1}\n").end, alone, 1e-9);
}

// Half or a quarter of what is sprayed is lost on the dead link and sent again, and the last
// packets wait several times until they are known to be lost: packets took up to 1.55 times as long
// as the flow level said.
TEST(RunScenario, SprayedFlowsGoOnWhileALinkIsDeadAsPacketsDo) {
  for (const int spines : {2, 4}) {
    topo::Cluster cluster = test_cluster(4, 1);
    cluster.fabric.spines = spines;
    const SimulatedNetwork network(cluster);
    for (const char* const link : {"leaf0-spine0", "leaf1-spine1"})
      for (const char* const times :
           {"local: 20ms, converged: 40ms", "local: 1ms, converged: 2ms"}) {
        const std::string text = "routing: {policy: spray}\n" + kMessage +
                                 "failures: [{at: 200us, link: " + link + ", " + times + "}]\n";
        const double flows = run(network, text).end;
        const double packets = run(network, text + "level: packet\n").end;
        EXPECT_NEAR(flows / packets, 1, 0.1) << spines << " " << link << " " << times;
      }
  }
}

TEST(RunScenario, TellsWhatNeverEnds) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const SimulationResult outcome =
      run(network, kMessage + "failures: [{at: 200us, link: s2.nic0-leaf1}]\n");
  EXPECT_EQ(outcome.unfinished, 1U);
  EXPECT_TRUE(std::isinf(outcome.operations[0].end));
}

TEST(RunScenario, KeepsHowBusyEachLinkWas) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const SimulationResult outcome = run(network, kMessage);
  const LinkStats& nic = outcome.links[0];
  EXPECT_EQ(network.link_name(nic.link), "s0.nic0-leaf0 up");
  EXPECT_DOUBLE_EQ(nic.bytes, 50e6);
  EXPECT_NEAR(nic.mean, 1 / 1.004, 1e-6);
  EXPECT_NEAR(nic.peak, 1, 1e-6);
}

TEST(RunScenario, KeepsHowBusyEachLinkOfPacketsWas) {
  const SimulatedNetwork network(test_cluster(4, 1));
  for (const std::string level : {"level: packet\n", "level: mixed\n"}) {
    const SimulationResult outcome = run(network, level + kMessage);
    EXPECT_DOUBLE_EQ(outcome.links[0].bytes, 50e6);
    EXPECT_NEAR(outcome.links[0].mean, 4096.0 / 4126 / 1.004, 1e-3);
    EXPECT_NEAR(outcome.links[0].peak, 4096.0 / 4126, 1e-3);
    EXPECT_GT(outcome.history.used(), 120U);
  }
}

TEST(RunScenario, TellsOfMessagesOfPacketsInTheOrderInWhichTheyArrive) {
  const SimulatedNetwork network(test_cluster(8, 1));
  for (const std::string level : {"level: packet\n", "level: mixed\n"}) {
    double last = 0;
    std::size_t told = 0;
    const SimulationResult outcome =
        run(network, level + kRing, {.on_message = [&](const MessageRecord& message) {
              EXPECT_GE(message.arrived, last);
              last = message.arrived;
              ++told;
            }});
    EXPECT_EQ(told, outcome.messages);
    EXPECT_EQ(last, outcome.end);
  }
}

constexpr const char* kStep =
    "traffic:\n"
    "  - {pattern: step, tp: 2, pp: 2, dp: 2, micro_batches: 4, forward: 10ms, backward: 20ms,\n"
    "     activations: 50MB, gradients: 500MB";

// 1F1B of 2 stages and 4 micro-batches: (4 + 1) of forward and backward, two messages in flight in
// and out, and the rings of the replicas.
TEST(RunScenario, AStepTakesItsPipelineAndThenTheSumOfGradients) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const SimulationResult outcome = run(network, std::string(kStep) + "}\n");
  const double pipeline = 5 * 30e-3;
  const double sum = 2 * 0.5 * 500e6 / 50e9;
  EXPECT_GT(outcome.end, pipeline + sum);
  EXPECT_LT(outcome.end, pipeline + sum + 8 * 2.1e-3);
}

TEST(RunScenario, RingsOfAStepThatAreFoldedEndWithinTwoPercentOfAllTheirMessages) {
  const SimulatedNetwork network(test_cluster(32, 2));
  const std::string step =
      "traffic:\n"
      "  - {pattern: step, tp: 2, pp: 2, dp: 16, micro_batches: 2, forward: 1ms, backward: 2ms,\n"
      "     activations: 1MB, gradients: 500MB, aggregate: ";
  const double folded = run(network, step + "true}\n").end;
  const double whole = run(network, step + "false}\n").end;
  EXPECT_NEAR(folded, whole, 0.02 * whole);
}

TEST(RunScenario, NamesTheLineOfWhatTheClusterDoesNotHave) {
  const SimulatedNetwork network(test_cluster(4, 2));
  EXPECT_EQ(
      error_of(network, "traffic:\n  - {pattern: message, from: s9/0, to: s1/0, bytes: 1MB}\n"),
      "scenario.yaml:2: no server is called 's9'; did you mean 's0'?");
  EXPECT_EQ(
      error_of(network, "traffic:\n  - {pattern: message, from: s0/2, to: s1/0, bytes: 1MB}\n"),
      "scenario.yaml:2: 's0/2' is no device; those of s0 are s0/0 to s0/1");
  EXPECT_THAT(error_of(network, kMessage + "failures:\n  - {at: 1ms, link: leaf0-spine7}\n"),
              HasSubstr("scenario.yaml:3: no link is called 'leaf0-spine7'; did you mean"));
  EXPECT_THAT(error_of(network, "traffic:\n  - {pattern: step, tp: 4, dp: 4, gradients: 1MB}\n"),
              HasSubstr("are 16 ranks; the cluster has 8 devices"));
  EXPECT_THAT(error_of(network, "routing: {policy: adaptive}\n" + kMessage),
              HasSubstr("need --level packet"));
}

// A packet of 4126 bytes waits at each of four links until all of it is there.
TEST(RunScenario, PacketsTakeTheTimeOfTheirHeadersAndOfEachSwitchBesides) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const double wire = 4126 / 50e9;
  const SimulationResult outcome = run(
      network, "level: packet\ntraffic: [{pattern: message, from: s0/0, to: s2/0, bytes: 4MiB}]\n");
  EXPECT_NEAR(outcome.end, (1024 + 3) * wire + 4e-6, 1e-9);
  ASSERT_TRUE(outcome.packets);
  EXPECT_EQ(outcome.packets->packets, 1024U);
  EXPECT_EQ(outcome.operations[0].messages, 1U);
}

TEST(RunScenario, AllLevelsAgreeOnARingUpToHeadersAndSwitches) {
  const SimulatedNetwork network(test_cluster(8, 1));
  const std::string ring = "packet: {header: 1B}\n" + kRing;
  const double flow = run(network, ring).end;
  const double packet = run(network, "level: packet\n" + ring).end;
  const SimulationResult mixed = run(network, "level: mixed\n" + ring);
  EXPECT_NEAR(packet, flow, 0.01 * flow);
  EXPECT_NEAR(mixed.end, packet, mixed.packets->bound + 1e-9);
}

// Messages take equally long at all levels, up to headers and the time of a packet.
TEST(RunScenario, AllLevelsAgreeOnLinksInsideServers) {
  const SimulatedNetwork network(test_cluster(4, 8));
  for (const std::string traffic :
       {"{pattern: message, from: s0/0, to: s0/1, bytes: 50MB}",
        "{pattern: incast, to: s0/0, bytes: 4MiB, ranks: [s0/1, s0/2, s0/3]}",
        "{pattern: all_to_all, bytes: 16MiB, ranks: [s0/0, s0/1, s0/2, s0/3]}",
        "{pattern: step, tp: 4, pp: 2, dp: 4, micro_batches: 4, forward: 1ms, backward: 2ms,"
        " activations: 10MB, gradients: 40MB, aggregate: false}"}) {
    SCOPED_TRACE(traffic);
    const std::string text =
        "routing: {ports: planned}\npacket: {header: 1B}\ntraffic: [" + traffic + "]\n";
    const double flow = run(network, text).end;
    const SimulationResult packet = run(network, "level: packet\n" + text);
    const SimulationResult mixed = run(network, "level: mixed\n" + text);
    EXPECT_EQ(packet.unfinished, 0U);
    EXPECT_EQ(packet.packets->lost, 0U);
    EXPECT_NEAR(packet.end, flow, 0.02 * flow);
    EXPECT_NEAR(mixed.end, packet.end, mixed.packets->bound + 1e-9);
  }
}

// Packets gather what goes over a rail message by message, so that the rail begins earlier than
// with flows that all share the links inside.
TEST(RunScenario, ARailAllToAllOfPacketsIsAsFastAsThatOfFlowsOrFaster) {
  const SimulatedNetwork network(test_cluster(4, 8));
  const std::string text =
      "packet: {header: 1B}\ntraffic: [{pattern: rail_all_to_all, bytes: 16MiB, ranks: all}]\n";
  const double flow = run(network, text).end;
  const double packet = run(network, "level: packet\n" + text).end;
  EXPECT_LT(packet, 1.02 * flow);
  EXPECT_GT(packet, 0.75 * (16 << 20) / 50e9);
}

TEST(RunScenario, LinksInsideServersNeitherPauseNorDropPackets) {
  const SimulatedNetwork network(test_cluster(4, 8));
  for (const std::string kind : {"lossless: true", "lossless: false, buffer: 100KB"}) {
    const SimulationResult outcome =
        run(network, "level: packet\npacket: {" + kind +
                         "}\ntraffic: [{pattern: incast, to: s0/0, bytes: 4MiB,"
                         " ranks: [s0/1, s0/2, s0/3, s0/4]}]\n");
    EXPECT_EQ(outcome.packets->pauses, 0U);
    EXPECT_EQ(outcome.packets->lost, 0U);
    const LinkStats& into = outcome.links[network.link_into(0)];
    EXPECT_DOUBLE_EQ(into.bytes, 4.0 * (4 << 20));
    EXPECT_GT(into.queue, 8e6);
  }
}

TEST(RunScenario, AnIncastOfPacketsPausesTheSendersAndLosesNothing) {
  const SimulatedNetwork network(test_cluster(8, 1));
  const std::string incast = "level: packet\n" + kIncast;
  const SimulationResult lossless = run(network, incast);
  EXPECT_GT(lossless.packets->pauses, 0U);
  EXPECT_EQ(lossless.packets->lost, 0U);
  const SimulationResult lossy =
      run(network, "packet: {lossless: false, buffer: 100KB}\n" + incast);
  EXPECT_GT(lossy.packets->lost, 0U);
  EXPECT_EQ(lossy.unfinished, 0U);
}

TEST(RunScenario, AStuckNicIsFoundToHoldItsSendersByPauses) {
  const SimulatedNetwork network(test_cluster(8, 1));
  const std::string text = "packet: {storm_after: 1ms}\n" + kIncast +
                           "failures: [{at: 100us, pausing_nic: s0.nic0-leaf0, until: 5ms}]\n";
  const SimulationResult outcome = run(network, "level: packet\n" + text);
  EXPECT_EQ(outcome.unfinished, 0U);
  ASSERT_EQ(outcome.packets->storms.size(), 1U);
  const fabric::PfcStorm& storm = outcome.packets->storms[0];
  EXPECT_EQ(storm.tree.root, 0U);
  EXPECT_EQ(network.link_name(storm.tree.links.front()), "s0.nic0-leaf0 down");
  EXPECT_LE(storm.at.value, 1.1e-3);
  EXPECT_GT(outcome.end, 5e-3);
  EXPECT_THAT(error_of(network, text), HasSubstr("take --level packet"));
  EXPECT_THAT(error_of(network, "level: packet\npacket: {lossless: false}\n" + kMessage +
                                    "failures: [{at: 1us, pausing_nic: s0.nic0-leaf0}]\n"),
              HasSubstr("write lossless: true"));
  EXPECT_THAT(error_of(network, "level: packet\n" + kMessage +
                                    "failures: [{at: 1us, pausing_nic: leaf0-spine0}]\n"),
              HasSubstr("no link of a NIC is called 'leaf0-spine0'"));
}

// Packets lost on a dead link are sent again 100 us later, so up to 100 us after flows go on; and
// packets in flight by then are sent twice.
constexpr double kAgain = 100e-6 + 20e-6;

TEST(RunScenario, AllLevelsAgreeOnWhatAFailureCosts) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const std::string traffic =
      "packet: {header: 1B}\n"
      "traffic:\n" +
      send("s0/0", "s2/0") + send("s1/1", "s3/1") + "failures:\n";
  int later = 0;
  for (const std::string failures : {
           "  - {at: 200us, link: leaf0-spine0, local: 50us, converged: 3ms}\n",
           "  - {at: 200us, link: leaf0-spine1, local: 50us, converged: 3ms}\n",
           "  - {at: 200us, link: leaf1-spine0, local: 50us, converged: 3ms}\n",
           "  - {at: 200us, link: leaf2-spine0, local: 50us, converged: 3ms}\n",
           "  - {at: 200us, link: leaf2-spine1, local: 50us, converged: 3ms}\n",
           "  - {at: 200us, link: leaf2-spine1, local: 50us, converged: 3ms, until: 700us}\n",
           "  - {at: 200us, link: leaf0-spine0, until: 700us}\n"
           "  - {at: 300us, link: leaf0-spine1, until: 900us}\n",
           "  - {at: 200us, switch: spine0, local: 50us, converged: 3ms}\n",
           "  - {at: 200us, switch: spine1, local: 50us, converged: 3ms, until: 10ms}\n",
           "  - {at: 200us, switch: leaf2, until: 5ms}\n",
           "  - {at: 200us, link: s2.nic0-leaf2, until: 5ms}\n",
           "  - {at: 200us, link: s1.nic1-leaf1, until: 5ms}\n",
       }) {
    SCOPED_TRACE(failures);
    const SimulationResult flow = run(network, traffic + failures);
    const SimulationResult packet = run(network, "level: packet\n" + traffic + failures);
    const SimulationResult mixed = run(network, "level: mixed\n" + traffic + failures);
    EXPECT_EQ(packet.unfinished, 0U);
    for (std::size_t i = 0; i < 2; ++i) {
      const double end = flow.operations[i].end;
      EXPECT_GE(packet.operations[i].end, end - 1e-6);
      EXPECT_LE(packet.operations[i].end, end + 0.001 * end + kAgain);
      EXPECT_NEAR(mixed.operations[i].end, packet.operations[i].end, mixed.packets->bound + 1e-9);
      later += end > 1.1e-3 ? 1 : 0;
    }
  }
  EXPECT_GE(later, 5);
}

TEST(RunScenario, PacketsToANicThatIsGoneNeverArrive) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const std::string text = kMessage + "failures: [{at: 500us, link: s2.nic0-leaf1}]\n";
  for (const std::string level : {"level: packet\n", "level: mixed\n"}) {
    const SimulationResult outcome = run(network, level + text);
    EXPECT_EQ(outcome.unfinished, 1U);
    EXPECT_TRUE(std::isinf(outcome.operations[0].end));
    EXPECT_NEAR(outcome.links[0].bytes, 25e6, 0.02 * 25e6);
  }
}

// Until all switches know, what takes that path is lost and sent again; then all arrive.
TEST(RunScenario, PacketsAreLostWhereALinkFailsUntilAllSwitchesKnow) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const SimulationResult outcome =
      run(network, "level: packet\nrouting: {policy: spray}\npacket: {lossless: false}\n" +
                       kMessage + "failures: [{at: 200us, link: leaf1-spine0, converged: 1ms}]\n");
  EXPECT_GT(outcome.packets->lost, 0U);
  EXPECT_EQ(outcome.unfinished, 0U);
  EXPECT_GT(outcome.end, 1.1e-3);
}

TEST(RunScenario, TwoItemsMayWaitForTheSameOne) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const SimulationResult outcome =
      run(network, "traffic:\n" + send("s0/0", "s2/0", ", name: one") +
                       send("s0/0", "s2/0", ", after: one") + send("s1/1", "s3/1", ", after: one"));
  EXPECT_NEAR(outcome.operations[1].start, 1.004e-3, 1e-9);
  EXPECT_NEAR(outcome.operations[2].start, 1.004e-3, 1e-9);
}

TEST(RunScenario, AStepThatStartsLaterTakesAsLong) {
  const SimulatedNetwork network(test_cluster(4, 2));
  const OperationStats now = run(network, std::string(kStep) + "}\n").operations[0];
  const OperationStats later = run(network, std::string(kStep) + ", start: 1s}\n").operations[0];
  EXPECT_NEAR(now.start, 0, 1e-12);
  EXPECT_NEAR(later.start, 1, 1e-9);
  EXPECT_NEAR(later.time(), now.time(), 1e-9);
}

TEST(RunScenario, CountsWhatCrossedLinksBeforeAFlowStuck) {
  const SimulatedNetwork network(test_cluster(4, 1));
  const SimulationResult outcome =
      run(network, kMessage + "failures: [{at: 500us, link: s2.nic0-leaf1}]\n");
  EXPECT_NEAR(outcome.links[0].bytes, 25e6, 1);
}

}  // namespace
}  // namespace regatta::simulate
