#include "regatta/platform/sched/internal/unfit_reason.h"

#include <gtest/gtest.h>

#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

// Four nodes below two leaves, with 8 devices, 96 CPUs, 1 TiB and 8 NICs each.
std::string reason_of(const JobRequest& job) {
  return unfit_reason(cluster_of(4, 2).nodes, job);
}

TEST(UnfitReason, NamesTheDeviceTypesThatDoNotExist) {
  JobRequest job = gang("a", 1, 8);
  job.device_types = {"b200", "b300"};
  EXPECT_EQ(reason_of(job), "no node has devices of type b200 or b300; the types are h100");
  job.device_types.emplace_back("h100");
  EXPECT_EQ(reason_of(job), "");
  EXPECT_EQ(unfit_reason({}, job), "no node has devices");
}

TEST(UnfitReason, NamesTheAmountThatAReplicaLacks) {
  EXPECT_EQ(reason_of(gang("a", 1, 16)),
            "a replica takes 16 devices, and no node that it may use has more than 8 devices");
  JobRequest job = gang("a", 1, 1);
  job.roles[0].cpu_milli = 96'500;
  EXPECT_EQ(reason_of(job),
            "a replica takes 96.5 cores, and no node that it may use has more than 96 cores");
  job = gang("a", 1, 1);
  job.roles[0].device_milli = 500;
  job.roles[0].device_memory_mib = 100 << 10;
  EXPECT_EQ(reason_of(job),
            "a replica takes 102400 MiB of device memory, and no node that it may use has more "
            "than 81920 MiB of device memory");
}

TEST(UnfitReason, NamesWhatNoSingleNodeHas) {
  std::vector<ClusterNode> nodes = cluster_of(2).nodes;
  nodes[0].cpu_milli = 1000;
  nodes[1].devices = 4;
  JobRequest job = gang("a", 1, 8);
  job.roles[0].cpu_milli = 2000;
  EXPECT_EQ(unfit_reason(nodes, job),
            "no node has together the devices, CPUs, memory and NICs that a replica takes");
}

TEST(UnfitReason, NamesTheDomainThatIsTooSmall) {
  EXPECT_EQ(reason_of(gang("a", 5, 8)),
            "it takes 40 devices, and the cluster has no more than 32 of one type");
  JobRequest job = gang("a", 3, 8);
  job.topology.required = TopologyLevel::kLeaf;
  EXPECT_EQ(reason_of(job), "it takes 24 devices, and no leaf has more than 16 of one type");
}

TEST(UnfitReason, OfAJobThatOnlyDoesNotDivideIsEmpty) {
  EXPECT_EQ(reason_of(gang("a", 5, 5)), "");
}

}  // namespace
}  // namespace regatta::sched
