#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

topo::Cluster two_servers(const char* first, const char* second) {
  topo::Cluster cluster{.name = "pair"};
  for (const char* type : {first, second}) {
    cluster.server_types[type] = *topo::find_server_preset(type);
    cluster.servers.push_back({.name = type, .type = type});
  }
  cluster.fabric = {.tiers = 1, .servers_per_leaf = 2};
  return cluster;
}

workload::Job gpt_job() {
  workload::Job job{.name = "gpt"};
  job.model = workload::find_model_preset("gpt3-6.7b")->model;
  job.global_batch = 64;
  job.precision = workload::Precision::kBf16;
  return job;
}

TEST(PlanningProblem, UsesAllDevicesOfEqualServers) {
  const workload::Job job = gpt_job();
  const topo::Cluster cluster = two_servers("dgx-h100", "dgx-h100");
  const auto stack = choose_software_stack("", job, cluster);
  ASSERT_TRUE(stack);
  const auto problem = planning_problem(job, cluster, **stack);
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->devices, 16);
  EXPECT_EQ(problem->global_batch, 64);
}

topo::Cluster racks(int servers) {
  topo::Cluster cluster{.name = "racks"};
  cluster.server_types["gb200-nvl72"] = *topo::find_server_preset("gb200-nvl72");
  for (int i = 0; i < servers; ++i)
    cluster.servers.push_back({.name = "s" + std::to_string(i), .type = "gb200-nvl72"});
  cluster.fabric = {.tiers = 1, .servers_per_leaf = servers};
  return cluster;
}

TEST(PlanningProblem, JoinsTheServersOfRacks) {
  workload::Job job = gpt_job();
  job.precision = workload::Precision::kMxfp8;
  const topo::Cluster cluster = racks(72);
  const auto stack = choose_software_stack("", job, cluster);
  ASSERT_TRUE(stack);
  const auto problem = planning_problem(job, cluster, **stack);
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->devices, 288);
  EXPECT_EQ(problem->machine.network.devices, 72);
  const PlanningProblem part = on_servers(*problem, 64);
  EXPECT_EQ(part.devices, 256);
  EXPECT_EQ(part.machine.network.devices, 64) << "the same part of each of four racks";
}

TEST(PlanningProblem, NamesThePrecisionThatTheDeviceLacks) {
  workload::Job job = gpt_job();
  job.precision = workload::Precision::kNvfp4;
  const topo::Cluster cluster = two_servers("dgx-h100", "dgx-h100");
  EXPECT_THAT(
      planning_problem(job, cluster, *cost::find_software_stack("nemo")).error().message,
      HasSubstr("precision: h100-sxm has no nvfp4; take one of fp32, tf32, fp16, bf16, fp8"));
}

TEST(PlanningProblem, KnowsServersOfSeveralTypesOneByOne) {
  const workload::Job job = gpt_job();
  const topo::Cluster mixed = two_servers("dgx-h100", "dgx-a100-80g");
  const cost::SoftwareStack& stack = **choose_software_stack("", job, mixed);
  const auto problem = planning_problem(job, mixed, stack);
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_TRUE(is_heterogeneous(*problem));
  EXPECT_EQ(server_count(*problem), 2);
  EXPECT_EQ(device_names(*problem), "h100-sxm and a100-sxm4-80g");
  EXPECT_NEAR(problem->machine.engines.products.peak.value / ((989.5e12 + 312e12) / 2), 1, 1e-9);
  const PlanningProblem second = on_servers(*problem, std::vector<ServerId>{ServerId{1}});
  EXPECT_EQ(second.devices, 8);
  EXPECT_EQ(device_names(second), "a100-sxm4-80g");
}

TEST(PlanningProblem, RejectsCpusBesideGpus) {
  const workload::Job job = gpt_job();
  topo::Cluster cluster = two_servers("dgx-h100", "dgx-a100-80g");
  cluster.server_types["dgx-a100-80g"].device.kind = topo::DeviceKind::kCpu;
  const cost::SoftwareStack& stack = **choose_software_stack("", job, cluster);
  EXPECT_THAT(planning_problem(job, cluster, stack).error().message,
              HasSubstr("beside the GPUs of others; plan for servers of either kind"));
}

TEST(PlanningProblem, TakesTypesThatDifferInTheirNamesForOne) {
  topo::Cluster cluster = two_servers("dgx-h100", "dgx-a100-80g");
  cluster.server_types["dgx-a100-80g"] = cluster.server_types.at("dgx-h100");
  cluster.server_types["dgx-a100-80g"].source = "another data sheet";
  EXPECT_FALSE(has_several_types(cluster));
  cluster.server_types["dgx-a100-80g"].nic_rate = BytesPerSecond{1e9};
  EXPECT_TRUE(has_several_types(cluster));
}

TEST(PlanningProblem, RejectsAFixedPlacementOnGpus) {
  workload::Job job = gpt_job();
  job.placement.resize(1);
  const topo::Cluster mixed = two_servers("dgx-h100", "dgx-a100-80g");
  const cost::SoftwareStack& stack = **choose_software_stack("", job, mixed);
  EXPECT_THAT(planning_problem(job, mixed, stack).error().message,
              HasSubstr("write placement: auto"));
}

TEST(PlanningProblem, RejectsServersThatNoNetworkJoins) {
  const workload::Job job = gpt_job();
  topo::Cluster cluster = two_servers("dgx-h100", "dgx-h100");
  cluster.server_types["dgx-h100"].nic_count = 0;
  const cost::SoftwareStack& stack = **choose_software_stack("", job, cluster);
  EXPECT_THAT(planning_problem(job, cluster, stack).error().message,
              HasSubstr("nothing carries data between its servers"));
}

TEST(PlanningProblem, NamesTheNearestSoftwareStack) {
  const auto stack =
      choose_software_stack("megatron-cor", gpt_job(), two_servers("dgx-h100", "dgx-h100"));
  ASSERT_FALSE(stack);
  EXPECT_THAT(stack.error().message, HasSubstr("write megatron-core, or choose one of"));
}

}  // namespace
}  // namespace regatta::plan
