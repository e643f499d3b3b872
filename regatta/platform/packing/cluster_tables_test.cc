#include "regatta/platform/packing/cluster_tables.h"

#include <gtest/gtest.h>

namespace regatta::packing {
namespace {

constexpr const char* kNodes = "sn,cpu_milli,memory_mib,gpu,model\n";
constexpr const char* kPods = "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

std::string error_of_nodes(const std::string& text) {
  const auto nodes = read_nodes(text, "nodes.csv");
  return nodes ? "" : nodes.error().message;
}

std::string error_of_pods(const std::string& text) {
  const auto pods = read_pods(text, "pods.csv");
  return pods ? "" : pods.error().message;
}

TEST(ClusterTables, AllGpusOfANodeThatWasReadAreFree) {
  const auto nodes = read_nodes(
      std::string(kNodes) + "n0,64000,262144,2,P100\r\n\nn1,8000,32768,0,\n", "nodes.csv");
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 2U);
  const GpuNode& first = nodes->front();
  EXPECT_EQ(first.name, "n0");
  EXPECT_EQ(first.cpu_milli, 64000);
  EXPECT_EQ(first.memory_mib, 262144);
  EXPECT_EQ(first.gpus, 2);
  EXPECT_EQ(first.gpu_model, "P100");
  EXPECT_EQ(first.gpu_free_milli[1], kGpuMilli);
  EXPECT_EQ(first.gpu_free_milli[2], 0);
  EXPECT_EQ(nodes->back().gpus, 0);
}

TEST(ClusterTables, PodsNameTheModelsThatTheyAccept) {
  const auto pods =
      read_pods(std::string(kPods) + "6000,12288,1,460,A10|T4\n4000,1,0,0,\n", "pods.csv");
  ASSERT_TRUE(pods) << pods.error().message;
  EXPECT_EQ(pods->front().gpu_models, (std::vector<std::string>{"A10", "T4"}));
  EXPECT_EQ(pods->front().gpu_request_milli(), 460);
  EXPECT_EQ(pods->back().gpus, 0);
  EXPECT_TRUE(pods->back().gpu_models.empty());
}

TEST(ClusterTables, ColumnsMayStandInAnyOrderBesideOthers) {
  const auto pods =
      read_pods("name,gpu_milli,num_gpu,memory_mib,qos,cpu_milli\np,500,1,7,LS,3000", "p");
  ASSERT_TRUE(pods) << pods.error().message;
  EXPECT_EQ(pods->front().gpu_milli, 500);
  EXPECT_EQ(pods->front().cpu_milli, 3000);
}

TEST(ClusterTables, AMissingColumnIsNamedWithAllThatAreNeeded) {
  EXPECT_EQ(
      error_of_nodes("sn,cpu_milli,memory_mib,model\n"),
      "nodes.csv:1: no column 'gpu'; name the columns sn, cpu_milli, memory_mib, gpu, model in "
      "the first line");
  EXPECT_EQ(error_of_pods("cpu_milli,cpu_milli,memory_mib,num_gpu,gpu_milli\n"),
            "pods.csv:1: two columns are called 'cpu_milli'; rename one");
}

TEST(ClusterTables, AWrongValueIsNamedWithLineColumnAndRemedy) {
  EXPECT_EQ(error_of_nodes(std::string(kNodes) + "n0,64000,262144,2,P100\nn1,many,1,2,T4\n"),
            "nodes.csv:3: cpu_milli: 'many' is not a whole number from 0 to 1000000; correct it");
  EXPECT_EQ(error_of_nodes(std::string(kNodes) + "n0,1,1,17,T4\n"),
            "nodes.csv:2: gpu: '17' is not a whole number from 0 to 16; correct it");
  EXPECT_EQ(error_of_pods(std::string(kPods) + "1,1,1,0,\n"),
            "pods.csv:2: gpu_milli: '0' is not a whole number from 1 to 1000; correct it");
  EXPECT_EQ(error_of_pods(std::string(kPods) + "-1,1,1,500,\n"),
            "pods.csv:2: cpu_milli: '-1' is not a whole number from 0 to 1000000; correct it");
}

TEST(ClusterTables, ALineWithTooFewValuesIsNamed) {
  EXPECT_EQ(error_of_pods(std::string(kPods) + "1,1,1,500\n"),
            "pods.csv:2: 4 values where 5 columns are named; write one for each");
}

}  // namespace
}  // namespace regatta::packing
