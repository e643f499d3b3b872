#include "regatta/platform/cluster_replay/generated_load.h"

#include <gtest/gtest.h>

#include "regatta/platform/cluster_replay/trace_tables.h"

namespace regatta::cluster_replay {
namespace {

constexpr Seconds kMonth{30 * 86400.0};

std::vector<sched::ClusterNode> servers(int count) {
  std::vector<sched::ClusterNode> nodes;
  add_servers(nodes, {.device_type = "h100", .servers = count, .devices = 8});
  return nodes;
}

TEST(GeneratedJobs, AskForTheLoadInTheMean) {
  double device_seconds = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto jobs = generate_jobs(servers(64), {.load = 0.8, .duration = kMonth, .seed = seed});
    ASSERT_TRUE(jobs) << jobs.error().message;
    for (const TracedJob& job : *jobs) {
      const sched::Role& role = job.request.roles[0];
      device_seconds += role.replicas_min * role.devices * job.run_time.value;
    }
  }
  EXPECT_NEAR(device_seconds / 20 / (64 * 8 * kMonth.value), 0.8, 0.06);
}

TEST(GeneratedJobs, RefuseAClusterWithoutDevices) {
  const auto jobs = generate_jobs({}, {.duration = kMonth});
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().message, "no node has a device; give a cluster with some");
}

}  // namespace
}  // namespace regatta::cluster_replay
