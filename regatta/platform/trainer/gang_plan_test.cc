#include "regatta/platform/trainer/gang_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/platform/trainer/training_request.h"

namespace regatta::trainer {
namespace {

workload::Job small_job() {
  return parse_training(R"({"model":{"kind":"gpt","layers":4,"hidden":64,"heads":4,"seq":16,
      "vocab":256},"data":{"text":"/data"},"global_batch":8,"steps":3})")
      .value();
}

// Ranks of two nodes on one machine, in turns.
std::vector<GangMember> four_members() {
  std::vector<GangMember> members;
  for (int rank = 0; rank < 4; ++rank)
    members.push_back({.rank = rank,
                       .node = rank % 2 == 0 ? "a" : "b",
                       .host = "machine",
                       .cores = 2,
                       .address = fmt::format("10.0.0.{}", rank % 2)});
  return members;
}

TEST(GangCluster, MakesServersOfNodesThatShareTheCoresOfAMachine) {
  const auto cluster = gang_cluster(four_members());
  ASSERT_TRUE(cluster) << cluster.error().message;
  ASSERT_EQ(cluster->servers.size(), 2U);
  EXPECT_EQ(cluster->type_of(ServerId{1}).device_count, 2);
  EXPECT_DOUBLE_EQ(cluster->type_of(ServerId{1}).device.cpu_share, 0.5);
  EXPECT_TRUE(gang_cluster({four_members().front()})) << "one rank alone";
}

TEST(PlanGang, GivesEachMemberTheRankOfItsDevice) {
  const workload::Job job = small_job();
  const auto members = four_members();
  const auto plan = plan_gang(job, members, "");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->member_of_rank, testing::UnorderedElementsAre(0, 1, 2, 3));
  const auto specs = worker_specs(*plan, job, members, "token");
  ASSERT_EQ(specs.size(), 4U);
  for (int member = 0; member < 4; ++member) {
    const nlohmann::json& spec = specs[static_cast<std::size_t>(member)];
    EXPECT_EQ(plan->member_of_rank.at(spec["rank"].get<std::size_t>()), member);
    EXPECT_EQ(spec["server"], members.at(static_cast<std::size_t>(member)).node);
    EXPECT_EQ(spec["world_size"], 4);
    EXPECT_FALSE(spec["resume"].get<bool>());
  }
  const nlohmann::json predicted = prediction_json(*plan, job);
  EXPECT_GT(predicted["step_time_s"], 0.0);
  EXPECT_GT(predicted["memory_bytes"], 0);
}

TEST(PlanGang, KeepsTheDegreesOfACheckpoint) {
  const workload::Job job = small_job();
  workload::Strategy saved;
  saved.tp = 2;
  saved.pp = 2;
  const nlohmann::json manifest = {{"strategy", workload::strategy_to_json(saved)}};
  const auto plan = plan_gang(job, four_members(), manifest.dump());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->plan.strategy.tp, 2);
  EXPECT_EQ(plan->plan.strategy.pp, 2);
  EXPECT_TRUE(plan->resumes);
  const auto three = std::vector<GangMember>{four_members()[0]};
  EXPECT_FALSE(plan_gang(job, three, manifest.dump())) << "one device is no 2 x 2";
}

TEST(GangMember, IsReadAsItWasWritten) {
  const GangMember member = four_members()[3];
  const auto read = parse_member(to_json(member).dump());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->address, member.address);
  EXPECT_FALSE(parse_member(R"({"rank":-1,"node":"a","host":"","cores":1,"address":""})"));
}

}  // namespace
}  // namespace regatta::trainer
