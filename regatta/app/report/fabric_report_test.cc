#include "regatta/app/report/fabric_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/sample_clusters.h"
#include "regatta/app/report/pages.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::report {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const char* const kLab =
    "server_types: {cpu-2: {devices: {count: 2, type: cpu, cpu_share: 15%}, intra: {kind: shm}, "
    "nics: {count: 1, rate: 200Mbps}}}\n"
    "fabric: {tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 100Mbps}\n"
    "servers: {count: 4}\n";

TEST(ClusterText, ShowsTheShareOfACoreInEveryFigure) {
  const topo::Cluster cluster = cluster_of(kLab);
  const std::string text = cluster_text(cluster);
  EXPECT_THAT(text, StartsWith("cluster sample: 4 servers, 8 devices\n\nserver type cpu-2\n"));
  EXPECT_THAT(text, HasSubstr("cpu with 15.0 % of a core, fp32 peak 14.4 GFLOPS"));
  EXPECT_THAT(text, HasSubstr("fabric: 1 rail, 2 leaves, 2 spines, 0 super-spines\n"));
  const auto device = cluster_json(cluster)["server_types"][0]["device"];
  EXPECT_DOUBLE_EQ(device["fp32_peak_flops"].get<double>(), 14.4e9);
}

FabricCheckResult checked(const topo::Graph& graph, const fabric::Routes& routes) {
  return {.now = fabric::check_deadlock(graph, routes),
          .loop = {},
          .after = {{1, fabric::check_failures(graph)}},
          .routes_after = {}};
}

TEST(FabricCheckText, BeginsWithTheVerdict) {
  const topo::Graph graph = topo::build_graph(cluster_of(kLab));
  const fabric::Routes routes(graph);
  const std::string text = fabric_check_text(graph, routes, checked(graph, routes));
  EXPECT_THAT(text, StartsWith("no deadlock: 8 directed links (4 cables), "));
  EXPECT_THAT(text, HasSubstr(" between them, no cycle\nproof: 2 layers of 4, 4 directed links; "));
  EXPECT_THAT(text, HasSubstr("\n1 failure at once: all 8 checked; "));
  EXPECT_THAT(text, EndsWith("no deadlock: no cycle after any of them\n"));
}

TEST(ClusterText, ShowsThePeakOfADeviceThatItsDrawingShows) {
  EXPECT_THAT(fabric_svg(cluster_of(kLab)), HasSubstr("bf16 peak 14.4 GFLOPS"));
  EXPECT_THAT(cluster_text(cluster_of(kLab)), HasSubstr("14.4 GFLOPS"));
}

TEST(ClusterJson, KeepsTheOldNameOfTheBottleneck) {
  const auto distance = cluster_json(cluster_of(kLab))["fabric"]["distances"][0];
  EXPECT_EQ(distance["bottleneck_Bps"], 25e6);
  EXPECT_EQ(distance["narrowest_Bps"], distance["bottleneck_Bps"]);
}

TEST(FabricCheckJson, KeepsTheOldNamesOfItsKeys) {
  const topo::Graph graph = topo::build_graph(cluster_of(kLab));
  const fabric::Routes routes(graph);
  const auto all = fabric_check_json(graph, routes, checked(graph, routes));
  EXPECT_EQ(all["cables"], 4);
  EXPECT_EQ(all["directed_links"], all["links"]);
  EXPECT_EQ(all["has_cycle"], all["has_circle"]);
  EXPECT_EQ(all["failures"][0]["disconnected"], all["failures"][0]["cut_off"]);
}

TEST(FabricCheckText, SaysThatNoCableCanFail) {
  const topo::Graph graph = topo::build_graph(
      cluster_of("fabric: {tiers: [leaf]}\nservers: {count: 2, type: dgx-a100-80g}\n"));
  const fabric::Routes routes(graph);
  EXPECT_EQ(fabric_check_text(graph, routes, checked(graph, routes)),
            "no deadlock: no cable joins two switches\n"
            "no failure to check: no cable joins two switches\n");
}

TEST(DeadlockProofText, SaysHowManyMessagesNeverArrive) {
  const topo::Graph graph = topo::build_graph(cluster_of(kLab));
  const fabric::DeadlockWitness witness{.deadlock = {0},
                                        .quiescent_at = Seconds{0.002},
                                        .messages = 8,
                                        .arrived = 5,
                                        .bytes = Bytes{1 << 20}};
  EXPECT_THAT(deadlock_proof_text(graph, witness),
              StartsWith("reproduced packet by packet: 3 of 8 messages of 1 MiB over the cycle "
                         "never arrive; after 2 ms nothing moves"));
  EXPECT_EQ(deadlock_proof_text(graph, Error{Code::kNotFound, "no traffic"}),
            "not reproduced: no traffic\n");
  EXPECT_EQ(deadlock_proof_text(graph, std::nullopt), "nothing to prove: there is no cycle\n");
  EXPECT_EQ(deadlock_proof_json(graph, Error{Code::kNotFound, "x"})["deadlocks"], false);
}

TEST(StormAlarmText, SaysWhichSidePauses) {
  fabric::PortStormAlarm alarm{.device = "leaf0", .port = "p1", .priority = 3, .is_held = true};
  alarm.alarm.is_storm = true;
  alarm.alarm.since = Seconds{1};
  alarm.alarm.at = Seconds{1.2};
  EXPECT_EQ(storm_alarm_text(nullptr, alarm),
            "1.200 s  leaf0 p1, priority 3: pause storm since 1.000 s: its peer pauses it, and it "
            "sends nothing\n");
  alarm.alarm.is_storm = false;
  EXPECT_THAT(storm_alarm_text(nullptr, alarm), EndsWith("the storm is over\n"));
  EXPECT_EQ(storm_alarm_json(nullptr, alarm)["event"], "over");
}

TEST(WatchedDeviceText, SaysWhyADeviceIsLostAndThatItIsBack) {
  WatchedDeviceChange change{.device = "eth0", .reason = "eth0: no such device", .at = {1.5}};
  EXPECT_EQ(watched_device_text(change),
            "1.500 s  eth0: no such device; it is watched again once it can be read\n");
  EXPECT_EQ(watched_device_json(change).dump(),
            R"({"at_s":1.5,"event":"lost","port":"eth0","reason":"eth0: no such device"})");
  change.reason.clear();
  EXPECT_EQ(watched_device_text(change), "1.500 s  eth0: its counters are read again\n");
  EXPECT_EQ(watched_device_json(change).dump(), R"({"at_s":1.5,"event":"back","port":"eth0"})");
}

TEST(StormWatchText, CountsPortsQueuesAndStorms) {
  const StormWatchSummary summary{.ports = 2, .queues = 8, .storms = 1};
  EXPECT_EQ(storm_watch_text(summary),
            "ports watched: 2; priorities and directions: 8; pause storms: 1\n");
  EXPECT_EQ(storm_watch_json(summary).dump(), R"({"event":"end","ports":2,"queues":8,"storms":1})");
}

TEST(MessageCsv, HasALineBelowTheHeadingAndQuotesNames) {
  const simulate::SimulatedNetwork network(cluster_of(kLab));
  simulate::Scenario scenario;
  scenario.traffic.resize(2);
  scenario.traffic[0].name = "plain";
  scenario.traffic[1].name = "a \"b\", c";
  EXPECT_EQ(message_csv_heading(), "item,from,to,bytes,start_s,arrived_s\n");
  EXPECT_EQ(message_csv_line(scenario, network, {0, 0, 3, 1048576, 0.25, 0.5}),
            "plain,s0/0,s1/1,1048576,0.25,0.5\n");
  EXPECT_EQ(message_csv_line(scenario, network, {1, 0, 3, 1, 0, 1e-6}),
            "\"a \"\"b\"\", c\",s0/0,s1/1,1,0,1e-06\n");
}

TEST(JobStepText, HasTheNumbersThatAreSimulated) {
  const simulate::SimulatedStep step{.forward = {0.002},
                                     .backward = {0.004},
                                     .activations = {1 << 20},
                                     .gradients = {3 << 20},
                                     .optimizer = {}};
  EXPECT_EQ(job_step_text({.name = "train", .job = "gpt", .strategy = "tp2 pp4", .step = step}),
            "item train: tp2 pp4 of job gpt: forward 2 ms, backward 4 ms, 1 MiB to the next stage, "
            "3 MiB of gradients\n");
}

}  // namespace
}  // namespace regatta::report
