#include "regatta/model/topo/cluster_yaml.h"

#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/model/topo/graph.h"

namespace regatta::topo {
namespace {

const char* const kSmall = R"(name: lab
server_types:
  cpu-2:
    devices: {count: 2, type: cpu, cpu_share: 15%}
    intra: {kind: shm}
    nics: {count: 1, rate: 200Mbps}
fabric:
  tiers: [leaf, spine]
  servers_per_leaf: 2
  spines: 2
  uplink: 100Mbps
servers: {count: 4, type: cpu-2}
)";

TEST(ParseCluster, ReadsTheExample) {
  const auto cluster = parse_cluster(kSmall, "cluster.yaml");
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  EXPECT_EQ(cluster->name, "lab");
  ASSERT_EQ(cluster->servers.size(), 4U);
  EXPECT_EQ(cluster->servers[3].name, "s3");
  const ServerType& type = cluster->type_of(ServerId{0});
  EXPECT_EQ(type.device_count, 2);
  EXPECT_EQ(type.device.kind, DeviceKind::kCpu);
  EXPECT_DOUBLE_EQ(type.device.cpu_share, 0.15);
  EXPECT_EQ(type.intra.kind, IntraKind::kShm);
  EXPECT_GT(type.intra.bandwidth.value, 0);
  EXPECT_DOUBLE_EQ(type.nic_rate.value, 25e6);
  EXPECT_EQ(cluster->fabric.tiers, 2);
  EXPECT_DOUBLE_EQ(cluster->fabric.uplink.value, 12.5e6);
  EXPECT_EQ(all_devices(*cluster).size(), 8U);
  EXPECT_EQ(to_string(*cluster, all_devices(*cluster)[5]), "s2/1");
}

TEST(ParseCluster, TakesWholeServersByName) {
  const auto cluster = parse_cluster(
      "name: big\n"
      "fabric: {tiers: [leaf, spine], rails: 8, servers_per_leaf: 16, spines: 16, uplink: "
      "400Gbps}\n"
      "servers: {count: 32, type: dgx-h100}\n",
      "cluster.yaml");
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  EXPECT_EQ(cluster->type_of(ServerId{31}).device.name, "h100-sxm");
  EXPECT_EQ(all_devices(*cluster).size(), 256U);
}

TEST(ParseCluster, LetsKeysOverrideAPreset) {
  const auto cluster = parse_cluster(
      "name: one\n"
      "server_types:\n"
      "  mine:\n"
      "    preset: a800-8\n"
      "    devices: {count: 4, memory: 40GiB}\n"
      "    nics: {count: 4}\n"
      "servers: {count: 1}\n",
      "cluster.yaml");
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  const ServerType& type = cluster->type_of(ServerId{0});
  EXPECT_EQ(type.device.name, "a800-sxm4-80g");
  EXPECT_EQ(type.device_count, 4);
  EXPECT_EQ(type.device.memory.value, 40LL << 30);
  EXPECT_EQ(type.nic_count, 4);
  EXPECT_DOUBLE_EQ(type.nic_rate.value, 25e9);
  EXPECT_DOUBLE_EQ(type.intra.bandwidth.value, 200e9);
  EXPECT_EQ(cluster->fabric.tiers, 0);
}

TEST(ParseCluster, ReadsAListOfRealServers) {
  const auto cluster = parse_cluster(
      "name: real\n"
      "fabric: {tiers: [leaf]}\n"
      "servers:\n"
      "  - {name: node-1, type: dgx-a100-80g, address: 10.0.0.1:7070}\n"
      "  - {name: node-2, type: dgx-a100-80g, address: 10.0.0.2:7070}\n",
      "cluster.yaml");
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  EXPECT_EQ(cluster->servers[1].address, "10.0.0.2:7070");
  EXPECT_EQ(cluster->fabric.servers_per_leaf, 2);
}

TEST(ParseCluster, TurnsInvalidWithOneMoreServerThanTheLeafHolds) {
  const std::string head =
      "name: x\nfabric: {tiers: [leaf], servers_per_leaf: 3}\nservers: {type: l20-8, count: ";
  EXPECT_TRUE(parse_cluster(head + "3}\n", "f").has_value());
  EXPECT_FALSE(parse_cluster(head + "4}\n", "f").has_value());
}

// A link is a cable: 100,096 from leaves to spines and so on, not as many as a server could have.
TEST(ParseCluster, TakesTwoHundredAndSixtyTwoThousandDevices) {
  const std::string head =
      "name: x\nfabric: {tiers: [leaf, spine, super-spine], rails: 8, servers_per_leaf: 32, "
      "leaves_per_group: 128, spines: 32, uplink: 400Gbps, super_spines: 1024}\n"
      "servers: {type: dgx-h100, count: ";
  const auto most = parse_cluster(head + "32768}\n", "f");
  ASSERT_TRUE(most.has_value()) << most.error().message;
  EXPECT_EQ(all_devices(*most).size(), 262'144U);
  const Graph graph = build_graph(*most);
  EXPECT_EQ(graph.links.size(), 262'144U + 8192 * 32 + 64 * 1024);
  EXPECT_EQ(*hop_count(graph, ServerId{0}, 0, ServerId{32767}, 7), 6);
  EXPECT_EQ(parse_cluster(head + "32769}\n", "f").error().code, Code::kInvalidInput);
}

TEST(CheckCanStart, RefusesWhatOnlyPlansTake) {
  Cluster cluster;
  cluster.name = "x";
  cluster.servers.resize(kMaxStartedServers);
  EXPECT_TRUE(check_can_start(cluster));
  cluster.servers.emplace_back();
  const Status status = check_can_start(cluster);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidInput);
  EXPECT_EQ(status.error().message,
            "cluster x: 8193 servers are more than the 8192 that can be started; plan for it, or "
            "name fewer servers");
}

TEST(ParseCluster, NamesFileLineKeyAndRemedyOfEveryBrokenFile) {
  const auto files = broken_files(REGATTA_TESTDATA);
  EXPECT_GE(files.size(), 10U);
  for (const BrokenFile& file : files) {
    const auto cluster = parse_cluster(file.text, file.name);
    ASSERT_FALSE(cluster.has_value()) << file.name;
    EXPECT_EQ(cluster.error().message, file.expected);
    EXPECT_EQ(cluster.error().code, Code::kInvalidInput);
  }
}

TEST(ParseCluster, AcceptsTheExamplesAndTheDocumentedFiles) {
  const auto texts = example_files(REGATTA_TESTDATA, "cluster");
  EXPECT_GE(texts.size(), 3U);
  for (const std::string& text : texts) {
    const auto read = parse_cluster(text, "file.yaml");
    EXPECT_TRUE(read.has_value()) << read.error().message << "\n" << text;
  }
}

// Cut anywhere, a file is either whole or refused with its name; never a crash.
TEST(ParseCluster, SurvivesEveryTruncation) {
  const std::string text = kSmall;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto cluster = parse_cluster(text.substr(0, length), "cut.yaml");
    if (!cluster) {
      EXPECT_EQ(cluster.error().message.rfind("cut.yaml:", 0), 0U) << cluster.error().message;
    } else {
      EXPECT_FALSE(build_graph(*cluster).nodes.empty());
    }
  }
}

}  // namespace
}  // namespace regatta::topo
