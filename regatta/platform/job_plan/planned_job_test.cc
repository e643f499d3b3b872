#include "regatta/platform/job_plan/planned_job.h"

#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/job.h"

namespace regatta::job_plan {
namespace {

// 16 servers of 8 H100 below leaves of 4, two leaves a group, uplinks four times too narrow.
topo::Cluster narrow_cluster() {
  topo::Cluster cluster;
  cluster.name = "narrow";
  cluster.server_types["dgx"] = *topo::find_server_preset("dgx-h100");
  cluster.server_types["dgx"].name = "dgx";
  for (int i = 0; i < 16; ++i)
    cluster.servers.push_back({"s" + std::to_string(i), "dgx", ""});
  topo::Fabric& fabric = cluster.fabric;
  const topo::ServerType& type = cluster.server_types["dgx"];
  fabric.tiers = 3;
  fabric.rails = type.nic_count;
  fabric.servers_per_leaf = 4;
  fabric.leaves_per_group = 2 * fabric.rails;
  fabric.spines = 2;
  fabric.uplink = type.nic_rate / 2;
  fabric.super_spines = 2;
  fabric.super_uplink = type.nic_rate;
  fabric.hop_latency = {1e-6};
  return cluster;
}

workload::Job gpt_job() {
  workload::Job job;
  job.name = "gpt";
  job.model.layers = 32;
  job.model.hidden = 4096;
  job.model.heads = 32;
  job.model.ffn_hidden = 16384;
  job.model.seq = 2048;
  job.model.vocab = 50304;
  job.global_batch = 512;
  job.precision = workload::Precision::kBf16;
  job.steps = 1000;
  return job;
}

class PlannedJobTest : public ::testing::Test {
 protected:
  topo::Cluster cluster_ = narrow_cluster();
  workload::Job job_ = gpt_job();
  const cost::SoftwareStack* stack_ = *plan::choose_software_stack("", job_, cluster_);
  plan::PlanningProblem problem_ = *plan::planning_problem(job_, cluster_, *stack_);
};

TEST_F(PlannedJobTest, SlowsDownByTheUplinksThatItCrosses) {
  const plan::PlanningProblem four = plan::on_servers(problem_, 4);
  const auto plan = plan::fastest_plan(four);
  ASSERT_TRUE(plan) << plan.error().message;
  const auto slowdown = step_slowdown(cluster_, four, *plan);
  EXPECT_EQ(slowdown[1], 1);
  EXPECT_GT(slowdown[2], 1);
  EXPECT_GE(slowdown[3], slowdown[2]);
  EXPECT_LT(slowdown[3], 10);
}

TEST_F(PlannedJobTest, BecomesAGangThatGrowsAlongThePlannersThroughput) {
  const auto sizes = plan::plan_cluster_sizes(problem_, {.steps = 1000});
  ASSERT_TRUE(sizes) << sizes.error().message;
  const auto request =
      planned_request({.name = "gpt", .cluster = cluster_, .problem = problem_, .sizes = *sizes});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(sched::check_job(*request));
  EXPECT_EQ(request->roles[0].devices, 8);
  EXPECT_EQ(request->roles[0].replicas_max, 16);
  EXPECT_EQ(request->throughput.size(), sizes->sizes.size());
  EXPECT_GT(sched::throughput_at(*request, 128), sched::throughput_at(*request, 64));
  EXPECT_GT(request->run_time.median.value, 0);
}

}  // namespace
}  // namespace regatta::job_plan
