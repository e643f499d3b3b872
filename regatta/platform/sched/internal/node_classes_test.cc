#include "regatta/platform/sched/internal/node_classes.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/test_random_gangs.h"

namespace regatta::sched {
namespace {

JobRequest random_whole_gang(RandomSequence& random) {
  JobRequest job;
  job.device_types = {"A"};
  while (job.roles.size() < 3) {
    Role role = random_role(random, 2);
    role.subgroup_replicas = 1;
    if (!role.is_sliced()) job.roles.push_back(role);
  }
  return job;
}

TEST(NodeClasses, HoldOnlyWhatATrialOfAllPlacementsPlacesAndMissLittleOfIt) {
  int held = 0;
  int fitting = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 6, random_int(random, 0, 2));
    const FreeCapacity free(snapshot);
    const JobRequest job = random_whole_gang(random);
    NodeClasses classes;
    for (int node = 0; node < free.nodes(); ++node)
      classes.add(class_of(free.node(node), free.free(node), free.node(node).device_type == "A"),
                  1);
    const bool is_held = classes.hold(job.roles, smallest_size(job));
    const bool fits = GangTrial(free, job, smallest_size(job)).fits();
    if (is_held) {
      ASSERT_TRUE(fits) << "seed " << seed;
    }
    held += is_held ? 1 : 0;
    fitting += fits ? 1 : 0;
  }
  EXPECT_GT(fitting, 500);
  EXPECT_GT(held, fitting * 9 / 10);
  RecordProperty("held", std::to_string(held) + " of " + std::to_string(fitting));
}

TEST(NodeClasses, ForgetNodesThatAreTakenAway) {
  ClusterNode node{.name = "n", .device_type = "A", .devices = 8};
  NodeCapacity free;
  free.is_open = true;
  free.whole_free = 0xff;
  NodeClasses classes;
  classes.add(class_of(node, free, true), 2);
  const std::vector<Role> roles = {{.devices = 6}, {.devices = 2}};
  EXPECT_TRUE(classes.hold(roles, {2, 2}));
  EXPECT_FALSE(classes.hold(roles, {2, 3}));
  classes.add(class_of(node, free, true), -1);
  EXPECT_TRUE(classes.hold(roles, {1, 1}));
  EXPECT_FALSE(classes.hold(roles, {2, 2}));
}

}  // namespace
}  // namespace regatta::sched
