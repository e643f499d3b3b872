#include "regatta/platform/sched/quota_tree.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::sched {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

QuotaQueue queue_of(const std::string& name, const std::string& parent, long long devices = 0) {
  QuotaQueue queue;
  queue.name = name;
  queue.parent = parent;
  queue.guaranteed[Resource::kCompute] = devices * kDeviceMilli;
  return queue;
}

std::string error_of(std::vector<QuotaQueue> queues) {
  const auto tree = QuotaTree::create(std::move(queues));
  if (tree) return "";
  EXPECT_EQ(tree.error().code, Code::kInvalidInput);
  return tree.error().message;
}

TEST(QuotaTree, NumbersQueuesDepthFirstWhateverTheirOrder) {
  const auto tree =
      QuotaTree::create({queue_of("b2", "b"), queue_of("a", ""), queue_of("b", ""),
                         queue_of("a1", "a"), queue_of("b1", "b"), queue_of("c", "")});
  ASSERT_TRUE(tree) << tree.error().message;
  std::vector<std::string> names;
  for (int queue = 0; queue < tree->size(); ++queue)
    names.push_back(tree->queue(queue).name);
  EXPECT_THAT(names, ElementsAre("a", "a1", "b", "b2", "b1", "c"));
  EXPECT_THAT(tree->leaves(), ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(tree->children(-1), ElementsAre(0, 2, 5));
  EXPECT_THAT(tree->children(2), ElementsAre(3, 4));
  EXPECT_EQ(tree->parent(0), -1);
  EXPECT_EQ(tree->parent(4), 2);
  EXPECT_EQ(tree->subtree_end(2), 5);
  EXPECT_EQ(tree->height(2), 1);
  EXPECT_EQ(tree->height(5), 0);
  EXPECT_EQ(tree->name_rank(4), 3);
}

TEST(QuotaTree, FindsLeavesByNameAndSaysWhatElseToUse) {
  const auto tree = QuotaTree::create({queue_of("a", ""), queue_of("a1", "a")});
  ASSERT_TRUE(tree);
  EXPECT_EQ(*tree->find_leaf("a1"), 1);
  EXPECT_EQ(tree->find_leaf("a").error().message,
            "queue a: it has queues below it, and jobs wait in one of those, like a1");
  EXPECT_EQ(tree->find_leaf("x").error().message,
            "queue 'x': there is no such queue; use one like a1");
  EXPECT_FALSE(tree->find_leaf(""));
}

TEST(QuotaTree, WithoutQueuesHasOneThatJobsNeedNotName) {
  const auto tree = QuotaTree::create({});
  ASSERT_TRUE(tree);
  EXPECT_EQ(*tree->find_leaf(""), 0);
  EXPECT_EQ(*tree->find_leaf("default"), 0);
  EXPECT_FALSE(tree->find_leaf("other"));
  EXPECT_THAT(tree->leaves(), ElementsAre(0));
}

TEST(QuotaTree, AParentThatSaysNothingIsGuaranteedWhatItsChildrenAre) {
  const auto tree =
      QuotaTree::create({queue_of("p", ""), queue_of("a", "p", 3), queue_of("b", "p", 5)});
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->queue(0).guaranteed[Resource::kCompute], 8000);
}

TEST(QuotaTree, NamesACircle) {
  EXPECT_EQ(
      error_of({queue_of("t", ""), queue_of("a", "b"), queue_of("b", "c"), queue_of("c", "a")}),
      "queue a: it is its own ancestor (a below b below c below a); give one of them another "
      "parent, or none");
  EXPECT_THAT(error_of({queue_of("a", "a")}), HasSubstr("(a below a)"));
  // The first queue that is not reached is below the circle, not in it.
  EXPECT_THAT(error_of({queue_of("x", "a"), queue_of("a", "b"), queue_of("b", "a")}),
              HasSubstr("queue a: it is its own ancestor (a below b below a)"));
}

TEST(QuotaTree, RefusesQueuesThatCannotBe) {
  EXPECT_EQ(error_of({queue_of("a", "b")}),
            "queue a: its parent b does not exist; add that queue or leave the parent out");
  EXPECT_EQ(error_of({queue_of("a", ""), queue_of("a", "")}),
            "queue a: it is there twice; give each queue a name of its own");
  EXPECT_EQ(error_of({queue_of("", "")}), "queues: a queue has no name; give it one");
  EXPECT_THAT(error_of({queue_of("a", "", -1)}),
              HasSubstr("queue a: it is guaranteed -1 devices, but must be from 0"));
  EXPECT_THAT(error_of({queue_of("a", "", 9'000'000'000'000'000)}),
              HasSubstr("but must be from 0"));
  for (const double weight : {0.0, -1.0, 1e7, std::nan("")}) {
    QuotaQueue queue = queue_of("a", "");
    queue.weight = weight;
    EXPECT_THAT(error_of({queue}), HasSubstr("queue a: its weight is")) << weight;
  }
}

TEST(QuotaTree, RefusesGuaranteesThatContradictEachOther) {
  EXPECT_EQ(
      error_of({queue_of("p", "", 4), queue_of("a", "p", 3), queue_of("b", "p", 2)}),
      "queue p: the queues below it are guaranteed 5 devices, but it is guaranteed 4 devices; "
      "raise its guarantee or lower theirs");
  QuotaQueue limited = queue_of("a", "", 3);
  limited.limit[0] = 2000;
  EXPECT_EQ(error_of({limited}),
            "queue a: it is guaranteed 3 devices, but its limit is 2 devices; raise the limit or "
            "guarantee less");
  QuotaQueue parent = queue_of("p", "");
  parent.limit[0] = 2000;
  EXPECT_THAT(
      error_of({parent, queue_of("a", "p", 3)}),
      HasSubstr("queue p: the queues below it are guaranteed 3 devices, but its limit is 2"));
  // Through a queue between them that says nothing.
  EXPECT_THAT(error_of({queue_of("p", "", 2), queue_of("q", "p"), queue_of("a", "q", 3)}),
              HasSubstr("queue p: the queues below it are guaranteed 3 devices"));
}

QuotaQueue typed_queue(const std::string& name, const std::string& parent, long long h100,
                       long long a100 = 0) {
  QuotaQueue queue = queue_of(name, parent);
  queue.device_types = {{.type = "h100", .guaranteed = h100 * kDeviceMilli},
                        {.type = "a100", .guaranteed = a100 * kDeviceMilli}};
  return queue;
}

TEST(QuotaTree, DevicesOfATypeArePartOfThoseThatAreGuaranteed) {
  const auto tree = QuotaTree::create(
      {queue_of("p", ""), typed_queue("a", "p", 3, 1), queue_of("b", "p", 5), queue_of("q", "")});
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_THAT(tree->device_types(), ElementsAre("a100", "h100"));
  EXPECT_EQ(tree->find_device_type("h100"), 1);
  EXPECT_EQ(tree->find_device_type("b200"), -1);
  EXPECT_EQ(tree->queue(1).guaranteed[Resource::kCompute], 4000);
  EXPECT_EQ(tree->queue(0).guaranteed[Resource::kCompute], 9000);
  EXPECT_EQ(tree->queue(0).guaranteed.of_type[1], 3000);
  EXPECT_EQ(tree->queue(3).guaranteed, ResourceAmounts{});
  QuotaQueue both = typed_queue("a", "", 3);
  both.guaranteed[Resource::kCompute] = 8000;
  EXPECT_EQ(QuotaTree::create({both})->queue(0).guaranteed[Resource::kCompute], 8000);
}

TEST(QuotaTree, RefusesQuotasOfDeviceTypesThatCannotBe) {
  QuotaQueue less = typed_queue("a", "", 3, 2);
  less.guaranteed[Resource::kCompute] = 4000;
  EXPECT_EQ(error_of({less}),
            "queue a: it is guaranteed 4 devices, but 5 devices by device type and for the queues "
            "below it; raise its guarantee or lower those");
  QuotaQueue limited = typed_queue("a", "", 3);
  limited.limit[0] = 2000;
  EXPECT_EQ(error_of({limited}),
            "queue a: it is guaranteed 3 devices by device type, but its limit is 2 devices; raise "
            "the limit or guarantee less");
  QuotaQueue type_limited = typed_queue("a", "", 3);
  type_limited.device_types[0].limit = 1000;
  EXPECT_EQ(error_of({type_limited}),
            "queue a: it is guaranteed 3 devices of type h100, but its limit is 1 device; raise "
            "the limit or guarantee less");
  EXPECT_EQ(error_of({typed_queue("p", "", 2), typed_queue("a", "p", 3)}),
            "queue p: the queues below it are guaranteed 3 devices of type h100, but it is "
            "guaranteed 2 devices; raise its guarantee or lower theirs");
  EXPECT_EQ(error_of({typed_queue("a", "", -1)}),
            "queue a: its quota of -1 devices of type h100 must be from 0 to 1000000000 devices");
  QuotaQueue twice = typed_queue("a", "", 1);
  twice.device_types[1].type = "h100";
  EXPECT_THAT(error_of({twice}), HasSubstr("queue a: its quota names device type h100 twice"));
  std::vector<QuotaQueue> many;
  for (int i = 0; i < 9; ++i) {
    many.push_back(queue_of("q" + std::to_string(i), ""));
    many.back().device_types = {{.type = "t" + std::to_string(i), .limit = 1000}};
  }
  EXPECT_EQ(error_of(many),
            "queues: their quotas name 9 device types, but at most 8 are possible; leave some out");
}

TEST(AmountsOf, AWholeDeviceCountsAllItsMemoryAndASliceItsOwn) {
  JobRequest job;
  job.roles.push_back(
      {.name = "worker", .devices = 8, .cpu_milli = 64'000, .memory_mib = 1024, .nic_milli = 8000});
  job.roles.push_back({.name = "server",
                       .devices = 1,
                       .device_milli = 250,
                       .device_memory_mib = 10'000,
                       .cpu_milli = 500});
  job.roles.push_back({.name = "driver", .cpu_milli = 1000, .memory_mib = 10});
  const std::vector<int> replicas{2, 3, 1};
  const ResourceAmounts amounts = amounts_of(job, replicas, 80'000);
  EXPECT_EQ(amounts[Resource::kCompute], 16'000 + 750);
  EXPECT_EQ(amounts[Resource::kDeviceMemory], 16 * 80'000 + 30'000);
  EXPECT_EQ(amounts[Resource::kCpu], 128'000 + 1500 + 1000);
  EXPECT_EQ(amounts[Resource::kMemory], 2048 + 10);
  EXPECT_EQ(amounts[Resource::kNic], 16'000);
}

TEST(AmountText, SaysTheUnit) {
  EXPECT_EQ(amount_text(Resource::kCompute, 64'000), "64 devices");
  EXPECT_EQ(amount_text(Resource::kCompute, 1000), "1 device");
  EXPECT_EQ(amount_text(Resource::kCpu, 12'500), "12.5 cores");
  EXPECT_EQ(amount_text(Resource::kDeviceMemory, 512), "512 MiB of device memory");
}

TEST(DominantShare, IsTheLargestAndInfiniteWithoutCapacity) {
  EXPECT_DOUBLE_EQ(dominant_share({{1, 0, 3, 0, 0}}, {{4, 4, 4, 4, 0}}), 0.75);
  EXPECT_TRUE(std::isinf(dominant_share({{1, 0, 0, 0, 1}}, {{4, 4, 4, 4, 0}})));
}

}  // namespace
}  // namespace regatta::sched
