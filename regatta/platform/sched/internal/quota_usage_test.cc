#include "regatta/platform/sched/internal/quota_usage.h"

#include <gtest/gtest.h>

namespace regatta::sched {
namespace {

ResourceAmounts devices(long long count) {
  ResourceAmounts amounts;
  amounts[Resource::kCompute] = count * kDeviceMilli;
  return amounts;
}

// p (limit 10 devices, 6 of each user) above a (limit 8) and b (2 of each user).
QuotaTree small_tree() {
  std::vector<QuotaQueue> queues(3);
  queues[0].name = "p";
  queues[0].limit[0] = 10'000;
  queues[0].user_limit[0] = 6000;
  queues[1].name = "a";
  queues[1].parent = "p";
  queues[1].limit[0] = 8000;
  queues[2].name = "b";
  queues[2].parent = "p";
  queues[2].user_limit[0] = 2000;
  return *QuotaTree::create(queues);
}

std::string refusal(const QuotaTree& tree, const QuotaUsage& usage, int account, long long count) {
  const auto limit = usage.limit_passed(account, devices(count));
  EXPECT_EQ(usage.admits(account, devices(count)), !limit.has_value());
  return limit ? limit_text(tree, *limit, "u") : "";
}

TEST(QuotaUsage, CountsInTheLeafAndAllQueuesAbove) {
  const QuotaTree tree = small_tree();
  QuotaUsage usage(tree);
  const int a = usage.account(1, "u");
  const int b = usage.account(2, "u");
  EXPECT_NE(a, b);
  EXPECT_EQ(usage.account(1, "u"), a);
  EXPECT_EQ(usage.leaf_of(b), 2);
  usage.add(a, devices(3));
  usage.add(b, devices(1));
  EXPECT_EQ(usage.of_queue(0), devices(4));
  EXPECT_EQ(usage.of_queue(1), devices(3));
  usage.remove(a, devices(2));
  EXPECT_EQ(usage.of_queue(0), devices(2));
  EXPECT_EQ(usage.of_queue(1), devices(1));
  EXPECT_EQ(usage.of_queue(2), devices(1));
}

TEST(QuotaUsage, NamesTheFirstLimitFromTheLeafUpwards) {
  const QuotaTree tree = small_tree();
  QuotaUsage usage(tree);
  const int u = usage.account(1, "u");
  const int v = usage.account(1, "v");
  const int w = usage.account(2, "w");
  EXPECT_EQ(refusal(tree, usage, u, 6), "");
  EXPECT_EQ(refusal(tree, usage, u, 7), "user u has 0 devices of at most 6 devices in queue p");
  EXPECT_EQ(refusal(tree, usage, u, 9), "queue a has 0 devices of at most 8 devices");
  usage.add(v, devices(4));
  usage.add(u, devices(4));
  EXPECT_EQ(refusal(tree, usage, v, 1), "queue a is at its limit of 8 devices");
  EXPECT_EQ(refusal(tree, usage, w, 2), "");
  EXPECT_EQ(refusal(tree, usage, w, 3), "user u has 0 devices of at most 2 devices in queue b");
  usage.add(w, devices(2));
  EXPECT_EQ(refusal(tree, usage, w, 1), "user u is at the limit of 2 devices in queue b");
  EXPECT_EQ(refusal(tree, usage, usage.account(2, "x"), 1),
            "queue p is at its limit of 10 devices");
}

TEST(QuotaUsage, ALimitOfOneUserInAParentCountsAllQueuesBelow) {
  const QuotaTree tree = small_tree();
  QuotaUsage usage(tree);
  usage.add(usage.account(1, "u"), devices(5));
  const int b = usage.account(2, "u");
  EXPECT_EQ(refusal(tree, usage, b, 1), "");
  EXPECT_EQ(refusal(tree, usage, b, 2), "user u has 5 devices of at most 6 devices in queue p");
}

TEST(QuotaUsage, AQueuePastALimitStillAdmitsJobsThatDoNotTakeThatResource) {
  const QuotaTree tree = small_tree();
  QuotaUsage usage(tree);
  const int v = usage.account(1, "v");
  usage.add(v, devices(12));  // the limit was lowered while they ran
  ResourceAmounts cpu;
  cpu[Resource::kCpu] = 4000;
  EXPECT_TRUE(usage.admits(v, cpu));
  EXPECT_FALSE(usage.admits(v, devices(1)));
}

TEST(QuotaUsage, LimitsDevicesOfATypeForAQueueAndForItsUsers) {
  QuotaQueue queue;
  queue.name = "a";
  queue.device_types = {{.type = "h100", .limit = 8000, .user_limit = 6000}};
  const QuotaTree tree = *QuotaTree::create({queue});
  QuotaUsage usage(tree);
  const int u = usage.account(0, "u");
  const int v = usage.account(0, "v");
  const auto on_h100 = [](long long count) {
    ResourceAmounts amounts = devices(count);
    amounts.of_type[0] = amounts[Resource::kCompute];
    return amounts;
  };
  const auto refusal_on_h100 = [&](int account, long long count) {
    const auto limit = usage.limit_passed(account, on_h100(count));
    return limit ? limit_text(tree, *limit, "u") : "";
  };
  EXPECT_EQ(refusal_on_h100(u, 6), "");
  EXPECT_EQ(refusal_on_h100(u, 7),
            "user u has 0 devices of at most 6 devices of type h100 in queue a");
  EXPECT_EQ(refusal_on_h100(u, 9), "queue a has 0 devices of at most 8 devices of type h100");
  usage.add(u, on_h100(6));
  EXPECT_EQ(refusal_on_h100(u, 1), "user u is at the limit of 6 devices of type h100 in queue a");
  EXPECT_EQ(refusal(tree, usage, u, 100), "");  // of other types
  usage.add(v, on_h100(2));
  EXPECT_EQ(refusal_on_h100(v, 1), "queue a is at its limit of 8 devices of type h100");
  usage.remove(u, on_h100(6));
  EXPECT_EQ(refusal_on_h100(v, 4), "");
}

TEST(QuotaUsage, GivesEachOfManyUsersOneAccountInEachLeaf) {
  const QuotaTree tree = small_tree();
  QuotaUsage usage(tree);
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < 2000; ++i)
      EXPECT_EQ(usage.account(1 + i % 2, "user" + std::to_string(i / 2)), i);
}

TEST(KeyIndex, FindsEveryNumberAlsoWhereAllHashesAreEqual) {
  KeyIndex index;
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(index.find_or_add(7, i, [i](int number) { return number == i; }), i);
  for (int i = 0; i < 200; ++i) {
    const auto is_key = [i](int number) { return number == i; };
    EXPECT_EQ(index.find(7, is_key), i);
    EXPECT_EQ(index.find_or_add(7, 1000, is_key), i);
  }
  EXPECT_EQ(index.find(8, [](int /*number*/) { return true; }), -1);
}

}  // namespace
}  // namespace regatta::sched
