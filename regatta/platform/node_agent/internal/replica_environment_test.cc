#include "regatta/platform/node_agent/internal/replica_environment.h"

#include <gmock/gmock.h>

namespace regatta::node_agent {
namespace {

using testing::Contains;
using testing::Not;
using testing::Pair;

TEST(ReplicaEnvironment, GivesTheGangsVariablesAndTheDevices) {
  control::ReplicaOrder order;
  order.key = {.job = 7, .attempt = 2, .replica = 1};
  order.environment = {{"A", "1"}, {"PATH", "/opt"}, {"WORLD_SIZE", "9"}, {"RANK", "3"}};
  order.devices = 0b1001;
  order.ranks = 2;
  order.world_size = 4;
  order.head_address = "n1";
  const auto variables = replica_environment(order, {.device_type = "h100", .run = "/r"});
  EXPECT_THAT(variables, Contains(Pair("PATH", "/opt")));
  EXPECT_THAT(variables, Contains(Pair("WORLD_SIZE", "4")));
  EXPECT_THAT(variables, Contains(Pair("LOCAL_WORLD_SIZE", "2")));
  EXPECT_THAT(variables, Contains(Pair("MASTER_ADDR", "n1")));
  EXPECT_THAT(variables, Contains(Pair("CUDA_VISIBLE_DEVICES", "0,3")));
  EXPECT_THAT(variables, Contains(Pair("REGATTA_RUN", "/r")));
  EXPECT_THAT(variables, Not(Contains(Pair("RANK", "3"))));
  EXPECT_THAT(replica_environment(order, {.device_type = "cpu"}),
              Not(Contains(Pair("CUDA_VISIBLE_DEVICES", "0,3"))));
}

TEST(ReplicaEnvironment, SaysWhereTheGangIsAndHowItIsReached) {
  control::ReplicaOrder order;
  order.key = {.job = 7, .attempt = 2, .replica = 1};
  order.replicas = 2;
  order.hosts = {{"n1", 8}, {"n2", 4}};
  order.environment = {{"NCCL_SOCKET_IFNAME", "bond0"}};
  EXPECT_EQ(host_list(order), "n1 slots=8\nn2 slots=4\n");
  const auto variables = replica_environment(
      order, {.address = "10.0.0.2", .interface = "eth0", .leaf = 3, .host_file = "/r/hosts"});
  EXPECT_THAT(variables, Contains(Pair("NODE_RANK", "1")));
  EXPECT_THAT(variables, Contains(Pair("REGATTA_REPLICAS", "2")));
  EXPECT_THAT(variables, Contains(Pair("REGATTA_ADDRESS", "10.0.0.2")));
  EXPECT_THAT(variables, Contains(Pair("REGATTA_LEAF", "3")));
  EXPECT_THAT(variables, Contains(Pair("REGATTA_HOSTFILE", "/r/hosts")));
  EXPECT_THAT(variables, Contains(Pair("GLOO_SOCKET_IFNAME", "eth0")));
  EXPECT_THAT(variables, Contains(Pair("NCCL_SOCKET_IFNAME", "bond0"))) << "the job's own";
}

}  // namespace
}  // namespace regatta::node_agent
