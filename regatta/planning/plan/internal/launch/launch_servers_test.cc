// Where a script says that the ranks go, and what it does where that is not known: run by a shell
// with programs of the test in place of the frameworks.
#include "regatta/planning/plan/internal/launch/launch_servers.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/planning/plan/internal/launch/test_launch_cases.h"

namespace regatta::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Ended {
  int status = 0;
  std::string text;  // of both outputs
};

// A folder with a script, and with torchrun and deepspeed that print their arguments.
class ScriptFolder {
 public:
  ScriptFolder() : folder_(std::filesystem::path(testing::TempDir()) / "launch-servers") {
    std::filesystem::create_directories(folder_);
    for (const char* name : {"torchrun", "deepspeed"}) {
      std::ofstream(folder_ / name) << "#!/bin/bash\necho \"" << name << " $*\"\n"
                                    << "echo \"hca ${NCCL_IB_HCA:-none}\"\n";
      std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    }
  }
  ~ScriptFolder() { std::filesystem::remove_all(folder_); }
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  // With no other environment than `words`.
  Ended run(const std::string& program, const std::string& script, const std::string& words,
            const std::string& arguments = "") const {
    std::ofstream(folder_ / "script") << script;
    const std::string path = folder_.string();
    FILE* pipe = ::popen(("cd '" + path + "' && env -i PATH='" + path + "':\"$PATH\" " + words +
                          " " + program + " script " + arguments + " 2>&1")
                             .c_str(),
                         "r");
    Ended ended;
    std::array<char, 4096> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
      ended.text += buffer.data();
    ended.status = WEXITSTATUS(::pclose(pipe));
    return ended;
  }

 private:
  std::filesystem::path folder_;
};

bool is_installed(const std::string& program) {
  return std::system((program + " --version >/dev/null 2>&1").c_str()) == 0;
}

LaunchCase two_servers() {
  return {.model = preset("llama2-7b"),
          .strategy = {.tp = 2, .dp = 8, .sequence_parallel = true, .zero = 1},
          .global_batch = 64,
          .servers = 2,
          .placed = {.names = {"n7", "n3"}, .nics = 4, .rails = 4}};
}

topo::Cluster cluster() {
  return *topo::parse_cluster(
      "name: c\nfabric: {tiers: [leaf]}\nservers: {count: 4, type: dgx-h100}\n", "c.yaml");
}

TEST(LaunchServers, AreThoseOfThePlacementInTheOrderOfRanks) {
  const topo::Cluster four = cluster();
  std::vector<topo::DeviceRef> placement;
  for (const int server : {2, 0})
    for (int device = 0; device < 8; ++device)
      placement.push_back({ServerId{server}, device});
  const LaunchServers placed = launch_servers(four, 2, {}, &placement);
  EXPECT_THAT(placed.names, ElementsAre(four.servers[2].name, four.servers[0].name));
  EXPECT_EQ(placed.nics, four.type_of(ServerId{0}).nic_count);
}

TEST(LaunchServers, AreTheFirstThatMayBeUsedWithoutAPlacement) {
  const topo::Cluster four = cluster();
  EXPECT_THAT(launch_servers(four, 2, {four.servers[0].name}, nullptr).names,
              ElementsAre(four.servers[1].name, four.servers[2].name));
}

TEST(LaunchServers, StopAScriptOfWhichTheRankOrTheAddressIsNotSet) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is missing";
  const ScriptFolder folder;
  for (const Launcher launcher : {Launcher::kMegatron, Launcher::kTorchtitan}) {
    LaunchCase one = two_servers();
    if (launcher == Launcher::kTorchtitan) one.strategy.zero = 3;
    const std::string script = *one.script(launcher);
    const Ended no_address = folder.run("bash", script, "NODE_RANK=0");
    EXPECT_NE(no_address.status, 0);
    EXPECT_THAT(no_address.text, HasSubstr("MASTER_ADDR: is not set; set it to the address of the "
                                           "first server"));
    const Ended no_rank = folder.run("bash", script, "MASTER_ADDR=n7");
    EXPECT_NE(no_rank.status, 0);
    EXPECT_THAT(no_rank.text,
                HasSubstr("NODE_RANK: is not set; set it to the number of this server, 0 "
                          "to 1"));
    const Ended both = folder.run("bash", script, "MASTER_ADDR=n7 NODE_RANK=1");
    EXPECT_EQ(both.status, 0) << both.text;
    EXPECT_THAT(both.text, AllOf(HasSubstr("--node-rank 1 --master-addr n7 --master-port 29500"),
                                 HasSubstr("hca =mlx5_0,mlx5_1,mlx5_2,mlx5_3")));
  }
}

TEST(LaunchServers, TakeTheNodeRankFromThePlaceOfTheServerUnderSlurm) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is missing";
  const ScriptFolder folder;
  const std::string script = *two_servers().script(Launcher::kMegatron);
  const Ended second = folder.run("bash", script, "SLURM_STEP_ID=0 SLURMD_NODENAME=n3");
  EXPECT_EQ(second.status, 0) << second.text;
  EXPECT_THAT(second.text, HasSubstr("--node-rank 1 --master-addr n7"));
  const Ended other = folder.run("bash", script, "SLURM_STEP_ID=0 SLURMD_NODENAME=n9");
  EXPECT_NE(other.status, 0);
  EXPECT_THAT(other.text, HasSubstr("n9 is none of the servers of the plan"));
}

TEST(LaunchServers, ArePrintedAsAHostfileAndForSrun) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is missing";
  const ScriptFolder folder;
  const std::string script = *two_servers().script(Launcher::kMegatron);
  EXPECT_EQ(folder.run("bash", script, "", "--print-hostfile").text, "n7 slots=8\nn3 slots=8\n");
  EXPECT_EQ(folder.run("bash", script, "", "--print-servers").text, "n7,n3\n");
}

TEST(LaunchServers, AreTheHostfileOfDeepspeed) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is missing";
  const ScriptFolder folder;
  LaunchCase one = two_servers();
  one.strategy = {.dp = 16, .zero = 3};
  const std::string script = *one.script(Launcher::kDeepspeed);
  EXPECT_THAT(script, HasSubstr("n7 slots=8\nn3 slots=8\n"));
  EXPECT_THAT(folder.run("bash", script, "").text, HasSubstr("--hostfile hostfile --num_nodes 2"));
  EXPECT_THAT(folder.run("bash", script, "HOSTFILE=mine").text, HasSubstr("--hostfile mine"));
}

TEST(LaunchServers, StartARecipeOfMegatronBridgeWithTorchrun) {
  if (!is_installed("python3")) GTEST_SKIP() << "python3 is missing";
  const ScriptFolder folder;
  const std::string script = *two_servers().script(Launcher::kMegatronBridge);
  EXPECT_THAT(folder.run("python3", script, "NODE_RANK=0").text,
              HasSubstr("MASTER_ADDR: is not set; set it to the address of the first server"));
  EXPECT_THAT(folder.run("python3", script, "MASTER_ADDR=n7 NODE_RANK=0").text,
              HasSubstr("--nnodes 2 --nproc-per-node 8 --node-rank 0 --master-addr n7"));
  EXPECT_THAT(folder.run("python3", script, "SLURM_STEP_ID=0 SLURMD_NODENAME=n3").text,
              HasSubstr("--node-rank 1 --master-addr n7"));
  EXPECT_EQ(folder.run("python3", script, "", "--print-hostfile").text, "n7 slots=8\nn3 slots=8\n");
}

TEST(LaunchServers, NeedNothingForOneServer) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is missing";
  const ScriptFolder folder;
  LaunchCase one = two_servers();
  one.servers = 1;
  const Ended ended = folder.run("bash", *one.script(Launcher::kMegatron), "");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(HasSubstr("--node-rank 0 --master-addr localhost"),
                                HasSubstr("hca none"), Not(HasSubstr("--save"))));
  const Ended saved = folder.run("bash", *one.script(Launcher::kMegatron), "SAVE=there LOAD=here");
  EXPECT_THAT(saved.text, HasSubstr("--save there --save-interval 1000 --load here"));
}

}  // namespace
}  // namespace regatta::plan
