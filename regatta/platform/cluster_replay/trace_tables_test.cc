#include "regatta/platform/cluster_replay/trace_tables.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"

namespace regatta::cluster_replay {
namespace {

const std::filesystem::path kTraces =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster")
        .lexically_normal();

constexpr const char* kPhilly = "submit_s,duration_s,num_gpus,vc\n";
constexpr const char* kDlrm =
    "role,app_name,cpu_request,gpu_request,memory_request,creation_time,deletion_time\n";

std::string error_of_philly(const std::string& lines) {
  const auto jobs = read_philly_jobs(kPhilly + lines, "philly.csv");
  return jobs ? "" : jobs.error().message;
}

TEST(TraceTables, AJobOfUpToEightGpusIsOneReplicaAndALargerOneFillsServers) {
  const auto jobs =
      read_philly_jobs(std::string(kPhilly) + "0,60,4,a\n5,7,12,b\n9,1,32,a\n", "philly.csv");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 3U);
  EXPECT_EQ((*jobs)[0].request.roles[0].replicas_min, 1);
  EXPECT_EQ((*jobs)[0].request.roles[0].devices, 4);
  EXPECT_EQ((*jobs)[0].run_time, Seconds{60});
  EXPECT_EQ((*jobs)[1].request.roles[0].replicas_min, 2);
  EXPECT_EQ((*jobs)[1].request.roles[0].devices, 6);
  EXPECT_EQ((*jobs)[1].request.queue, "b");
  EXPECT_EQ((*jobs)[2].request.roles[0].replicas_max, 4);
  EXPECT_EQ((*jobs)[2].request.submitted, Seconds{9});
}

TEST(TraceTables, JobsAreSortedByTheirSubmission) {
  const auto jobs = read_philly_jobs(std::string(kPhilly) + "9,60,4,a\n5,7,1,b\n", "philly.csv");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->front().request.name, "philly-1");
}

TEST(TraceTables, WrongValuesAreNamedWithLineColumnAndRemedy) {
  EXPECT_EQ(error_of_philly("0,60,4,a\n1,0,4,a\n"),
            "philly.csv:3: duration_s: '0' is not a number from 1 to 1000000000; correct it");
  EXPECT_EQ(error_of_philly("0,60,0,a\n"),
            "philly.csv:2: num_gpus: '0' is not a whole number from 1 to 4096; correct it");
  EXPECT_EQ(error_of_philly("nan,60,1,a\n"),
            "philly.csv:2: submit_s: 'nan' is not a number from 0 to 1000000000; correct it");
  const auto spot = read_spot_nodes("gpu_model,cpu_num,node_name\n", "nodes.csv");
  ASSERT_FALSE(spot);
  EXPECT_EQ(spot.error().message,
            "nodes.csv:1: no column 'gpu_capacity_num'; name the columns gpu_model, "
            "gpu_capacity_num, cpu_num, node_name in the first line");
}

TEST(TraceTables, AnInstanceWithoutTimesRunsFromTheStartToTheEndOfTheTable) {
  const auto jobs = read_dlrm_instances(
      std::string(kDlrm) + "HN,7,8,1,40,100,400.5\nHN,7,8,1,40,,\nCN,7,64,0,320,50,50\n", "d.csv");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 3U);
  EXPECT_EQ((*jobs)[0].request.name, "dlrm-1");
  EXPECT_EQ((*jobs)[0].request.submitted, Seconds{0});
  EXPECT_EQ((*jobs)[0].run_time, Seconds{400.5});
  EXPECT_EQ((*jobs)[1].run_time, Seconds{1}) << "a run time of 0 is one of less than a second";
  EXPECT_EQ((*jobs)[1].request.roles[0].cpu_milli, 64000);
  EXPECT_EQ((*jobs)[2].run_time, Seconds{300.5});
  EXPECT_FALSE((*jobs)[2].request.is_preemptible);
}

TEST(TraceTables, PodsOfOpenbKeepTheirShareAndTheirTypes) {
  const auto jobs = read_openb_jobs(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time\n"
      "p,4000,8192,1,460,A10|T4,LS,5,105\n",
      "openb.csv");
  ASSERT_TRUE(jobs) << jobs.error().message;
  const sched::JobRequest& request = jobs->front().request;
  EXPECT_EQ(request.roles[0].device_milli, 460);
  EXPECT_EQ(request.device_types, (std::vector<std::string>{"A10", "T4"}));
  EXPECT_EQ(request.queue, "LS");
  EXPECT_EQ(jobs->front().run_time, Seconds{100});
}

TEST(TraceTables, ServersOfAGroupShareLeavesAndBeginANewOne) {
  std::vector<sched::ClusterNode> nodes;
  add_servers(nodes, {"P40", 3, 8, 2});
  add_servers(nodes, {"P100", 1, 2, 2});
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes[1].leaf, 0);
  EXPECT_EQ(nodes[2].leaf, 1);
  EXPECT_EQ(nodes[3].leaf, 2);
  EXPECT_EQ(nodes[3].devices, 2);
}

TEST(TraceTables, ThePublicTracesAreRead) {
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << kTraces << " is not here";
  const auto philly =
      read_philly_jobs(read_test_file(kTraces / "philly/philly_jobs.csv"), "philly");
  ASSERT_TRUE(philly) << philly.error().message;
  EXPECT_EQ(philly->size(), 82247U);
  const auto dlrm =
      read_dlrm_instances(read_test_file(kTraces / "dlrm/dlrm_instances_2025.csv"), "dlrm");
  ASSERT_TRUE(dlrm) << dlrm.error().message;
  EXPECT_EQ(dlrm->size(), 23871U);
  const auto spot =
      read_spot_nodes(read_test_file(kTraces / "spot/spot_gpu_nodes_2026.csv"), "spot");
  ASSERT_TRUE(spot) << spot.error().message;
  EXPECT_EQ(spot->size(), 4278U);
  const auto openb =
      read_openb_jobs(read_test_file(kTraces / "openb/openb_pod_list_default.csv"), "openb");
  ASSERT_TRUE(openb) << openb.error().message;
  EXPECT_EQ(openb->size(), 8152U);
}

}  // namespace
}  // namespace regatta::cluster_replay
