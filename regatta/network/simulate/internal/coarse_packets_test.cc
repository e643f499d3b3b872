#include "regatta/network/simulate/internal/coarse_packets.h"

#include <string>

#include <gtest/gtest.h>

#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/test_cluster.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

class CoarsePackets : public testing::Test {
 protected:
  std::optional<CoarsePacketPlan> plan(const std::string& text) {
    const Scenario scenario = parse(text);
    const auto workload = build_workload(scenario, network_);
    EXPECT_TRUE(workload) << workload.error().message;
    return plan_coarse_packets(scenario, *workload);
  }
  SimulationResult run(const std::string& text) {
    auto outcome = run_scenario(parse(text), network_);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return *std::move(outcome);
  }

  const SimulatedNetwork network_{test_cluster(8, 1)};
};

TEST_F(CoarsePackets, AreForExchangesWhoseSwitchesPause) {
  const std::string pairwise = "traffic: [{pattern: pairwise_all_to_all, bytes: 64MiB}]\n";
  EXPECT_TRUE(plan(pairwise));
  EXPECT_TRUE(plan("traffic: [{pattern: halving_doubling_all_reduce, bytes: 64MiB}]\n"));
  EXPECT_TRUE(plan(pairwise + "failures: [{link: leaf0-spine0, at: 1ms}]\n"));
  EXPECT_FALSE(plan("traffic: [{pattern: ring_all_reduce, bytes: 64MiB}]\n"));
  EXPECT_FALSE(plan(pairwise + "routing: {policy: spray}\n"));
  EXPECT_FALSE(plan(pairwise + "packet: {lossless: false}\n"));
  EXPECT_FALSE(plan(pairwise + "failures: [{pausing_nic: s2.nic0-leaf1, at: 1ms}]\n"));
}

TEST_F(CoarsePackets, GrowWithTheBytesUntilBytesAreScaled) {
  const auto of = [&](const std::string& bytes) {
    const auto found = plan("traffic: [{pattern: pairwise_all_to_all, bytes: " + bytes + "}]\n");
    return found.value_or(CoarsePacketPlan{});
  };
  EXPECT_EQ(of("64MiB").most.value, 16 << 10);
  EXPECT_EQ(of("64MiB").least.value, 4096);
  EXPECT_EQ(of("1GiB").most.value, 32 << 10);
  EXPECT_EQ(of("1GiB").scale, 1);
  EXPECT_NEAR(of("64GiB").scale, 28, 1);
  EXPECT_NEAR(static_cast<double>(of("64GiB").least.value), 4096.0 / 28, 5);
}

// Latencies and times to fill buffers are a smaller part of a longer exchange.
TEST_F(CoarsePackets, OfScaledBytesTakeTimeInProportionToThem) {
  const std::string text = "traffic: [{pattern: pairwise_all_to_all, bytes: ";
  const SimulationResult small = run(text + "1GiB}]\n");
  const SimulationResult large = run(text + "64GiB}]\n");
  EXPECT_NEAR(large.end / small.end, 64, 0.08 * 64);
  for (std::size_t link = 0; link < 2 * network_.graph.links.size(); ++link) {
    EXPECT_NEAR(large.links[link].bytes, 64 * small.links[link].bytes,
                1e-4 * large.links[link].bytes);
    double in_bins = 0;
    for (std::size_t bin = 0; bin < large.history.used(); ++bin)
      in_bins += large.history.bytes(static_cast<std::uint32_t>(link), bin);
    EXPECT_NEAR(in_bins, large.links[link].bytes, 1e-3 * in_bins);
  }
}

// Messages over a link that fails are as late as packets.
TEST_F(CoarsePackets, GoOnBesideALinkThatFails) {
  const std::string text =
      "traffic: [{pattern: pairwise_all_to_all, bytes: 64MiB}]\n"
      "failures: [{link: leaf0-spine0, at: 300us}]\n";
  const SimulationResult coarse = run(text);
  const SimulationResult packets = run(text + "level: packet\n");
  EXPECT_EQ(coarse.unfinished, 0U);
  EXPECT_FALSE(coarse.packets);
  EXPECT_NEAR(coarse.end, packets.end, 0.08 * packets.end);
}

// Beyond 64 ranks max-min rates know nothing of what switches hold: 1.54 times as long as packets.
TEST(CoarsePacketTimes, OfMoreThan64RanksAreNearThoseOfPackets) {
  topo::Cluster cluster = test_cluster(128, 1);
  cluster.fabric.servers_per_leaf = 8;
  cluster.fabric.spines = 8;
  const SimulatedNetwork network(cluster);
  const auto end = [&](const std::string& level) {
    const auto outcome = run_scenario(
        parse("traffic: [{pattern: pairwise_all_to_all, bytes: 16MiB}]\nlevel: " + level + "\n"),
        network, {.keeps_history = false});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->end : 0;
  };
  EXPECT_NEAR(end("flow") / end("packet"), 1, 0.1);
}

}  // namespace
}  // namespace regatta::simulate
