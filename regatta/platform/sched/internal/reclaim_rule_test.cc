#include "regatta/platform/sched/internal/reclaim_rule.h"

#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/queue_order.h"
#include "regatta/platform/sched/internal/test_random_quotas.h"

namespace regatta::sched {
namespace {

ResourceAmounts compute(long long amount) {
  ResourceAmounts amounts;
  amounts[Resource::kCompute] = amount;
  return amounts;
}

QuotaQueue guaranteed_queue(const std::string& name, const std::string& parent, long long amount) {
  QuotaQueue queue;
  queue.name = name;
  queue.parent = parent;
  queue.guaranteed = compute(amount);
  return queue;
}

struct ReclaimingJob {
  QuotaClaim claim;
  int account = 0;
  bool is_running = false;
};

// Lets a random waiting job evict a random running one, as often as the rule allows it. Whether two
// jobs evicted each other; counts in `reclaims`, and fails where it does not end.
bool reclaim_until_none_may(std::uint64_t seed, const RandomTreeOptions& options, ReclaimLoss loss,
                            int& reclaims) {
  packing::RandomSequence random(seed);
  const ResourceAmounts capacity = random_capacity(random);
  const QuotaTree tree = random_tree(random, capacity, options);
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  std::vector<ReclaimingJob> jobs(40);
  for (ReclaimingJob& job : jobs) {
    job.claim.leaf = at(tree.leaves(), random.below(tree.leaves().size()));
    for (std::size_t r = 0; r < kResources; ++r)
      if (random.below(2) > 0)
        job.claim.amounts.of[r] = 1 + static_cast<long long>(random.uniform() * 0.1 *
                                                             static_cast<double>(capacity.of[r]));
    const std::size_t type = options.has_device_types ? random.below(3) : 2;
    if (type < tree.device_types().size())
      job.claim.amounts.of_type[type] = job.claim.amounts[Resource::kCompute];
    job.account = usage.account(job.claim.leaf, "u");
    job.is_running = random.below(2) > 0;
    if (job.is_running) usage.add(job.account, job.claim.amounts);
  }
  std::set<std::pair<std::size_t, std::size_t>> evicted;
  bool is_mutual = false;
  const int reclaims_max = reclaims + 10'000;
  for (int idle = 0; idle < 8000;) {
    const std::size_t i = random.below(jobs.size());
    const std::size_t j = random.below(jobs.size());
    if (jobs[i].is_running || !jobs[j].is_running ||
        !rule.allows(usage, jobs[i].claim, jobs[j].claim, loss)) {
      ++idle;
      continue;
    }
    idle = 0;
    usage.remove(jobs[j].account, jobs[j].claim.amounts);
    usage.add(jobs[i].account, jobs[i].claim.amounts);
    jobs[j].is_running = false;
    jobs[j].claim.was_evicted = true;
    jobs[i].is_running = true;
    is_mutual |= evicted.contains({j, i});
    evicted.emplace(i, j);
    if (++reclaims > reclaims_max) {
      ADD_FAILURE() << "seed " << seed << ": does not end";
      break;
    }
  }
  return is_mutual;
}

constexpr std::array kLosses = {ReclaimLoss::kSurplus, ReclaimLoss::kWholeJob};

TEST(ReclaimRule, LeavesOfOneParentNeverEvictEachOthersJobsInTurn) {
  for (const ReclaimLoss loss : kLosses) {
    int reclaims = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed)
      EXPECT_FALSE(
          reclaim_until_none_may(seed, {.depth_max = 1, .guaranteed_part = 1}, loss, reclaims))
          << seed;
    EXPECT_GE(reclaims, 1000);
  }
}

// Two jobs may evict each other once each where a parent is guaranteed more than its children.
TEST(ReclaimRule, EndsInDeepTreesToo) {
  for (const ReclaimLoss loss : kLosses) {
    int mutual = 0;
    int reclaims = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed)
      mutual += reclaim_until_none_may(seed, {.depth_max = 3, .guaranteed_part = 1}, loss, reclaims)
                    ? 1
                    : 0;
    std::printf("trees of 1000 in which two jobs evicted each other: %d (%d reclaims)\n", mutual,
                reclaims);
    EXPECT_GE(reclaims, 1000);
  }
}

TEST(ReclaimRule, EndsWithGuaranteesByDeviceTypeToo) {
  for (const ReclaimLoss loss : kLosses) {
    int reclaims = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed)
      EXPECT_FALSE(reclaim_until_none_may(
          seed, {.depth_max = 1, .guaranteed_part = 1, .has_device_types = true}, loss, reclaims))
          << seed;
    for (std::uint64_t seed = 0; seed < 300; ++seed)
      reclaim_until_none_may(seed, {.depth_max = 3, .guaranteed_part = 1, .has_device_types = true},
                             loss, reclaims);
    EXPECT_GE(reclaims, 600);
  }
}

TEST(ReclaimRule, AQueueKeepsTheDevicesOfTheTypeThatItIsGuaranteed) {
  QuotaQueue a = guaranteed_queue("a", "", 6);
  a.device_types = {{.type = "h", .guaranteed = 4}};
  const QuotaTree tree = *QuotaTree::create({a, guaranteed_queue("b", "", 8)});
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  const auto on_h = [](long long amount) {
    ResourceAmounts amounts = compute(amount);
    amounts.of_type[0] = amount;
    return amounts;
  };
  const int account = usage.account(0, "u");
  usage.add(account, on_h(4));
  usage.add(account, compute(6));  // two of them guaranteed
  const QuotaClaim claim{.leaf = 1, .amounts = compute(4)};
  EXPECT_FALSE(rule.allows(usage, claim, {.leaf = 0, .amounts = on_h(4)}, ReclaimLoss::kWholeJob));
  EXPECT_TRUE(rule.allows(usage, claim, {.leaf = 0, .amounts = compute(4)}, ReclaimLoss::kSurplus));
  EXPECT_FALSE(
      rule.allows(usage, claim, {.leaf = 0, .amounts = compute(5)}, ReclaimLoss::kSurplus));
  EXPECT_TRUE(
      rule.protects(usage, {.leaf = 1, .amounts = compute(9)}, {.leaf = 0, .amounts = on_h(4)}));
  // It is above its guarantee of any devices, and takes back those of the type.
  usage.remove(account, on_h(4));
  usage.add(usage.account(1, "u"), compute(12));
  const QuotaClaim victim{.leaf = 1, .amounts = compute(4)};
  EXPECT_TRUE(rule.allows(usage, {.leaf = 0, .amounts = on_h(4)}, victim, ReclaimLoss::kSurplus));
  EXPECT_FALSE(
      rule.allows(usage, {.leaf = 0, .amounts = compute(4)}, victim, ReclaimLoss::kSurplus));
  EXPECT_FALSE(rule.allows(usage, {.leaf = 0, .amounts = on_h(5)}, victim, ReclaimLoss::kSurplus));
}

TEST(ReclaimRule, AClaimByPriorityLeavesQueuesTheirGuarantees) {
  const QuotaTree tree =
      *QuotaTree::create({guaranteed_queue("a", "", 4), guaranteed_queue("b", "", 4)});
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  usage.add(usage.account(0, "u"), compute(4));
  const QuotaClaim victim{.leaf = 0, .amounts = compute(2)};
  EXPECT_TRUE(rule.protects(usage, {.leaf = 1, .amounts = compute(5)}, victim));
  EXPECT_FALSE(rule.protects(usage, {.leaf = 1, .amounts = compute(4)}, victim));
  EXPECT_FALSE(rule.protects(usage, {.leaf = 0, .amounts = compute(9)}, victim));
  usage.add(usage.account(0, "u"), compute(1));
  EXPECT_FALSE(rule.protects(usage, {.leaf = 1, .amounts = compute(5)}, victim));
}

TEST(ReclaimRule, TakesAJobThatIsBorrowedInPartWhereToldSo) {
  const QuotaTree tree =
      *QuotaTree::create({guaranteed_queue("a", "", 4), guaranteed_queue("b", "", 4)});
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  const int b = usage.account(1, "u");
  usage.add(b, compute(8));
  EXPECT_FALSE(rule.allows(usage, {0, compute(4)}, {1, compute(8)}, ReclaimLoss::kSurplus));
  EXPECT_TRUE(rule.allows(usage, {0, compute(4)}, {1, compute(8)}, ReclaimLoss::kWholeJob));
  usage.remove(b, compute(8));
  usage.add(usage.account(0, "u"), compute(4));
  // The victim does not come back: it is more than its queue is guaranteed.
  EXPECT_FALSE(rule.allows(usage, {1, compute(8), true}, {0, compute(4)}, ReclaimLoss::kWholeJob));
}

TEST(ReclaimRule, LetsAnEvictedJobTakeBackWhatItsOwnQueueIsGuaranteedAlone) {
  const QuotaTree tree = *QuotaTree::create(
      {guaranteed_queue("p", "", 8), guaranteed_queue("a", "p", 2), guaranteed_queue("q", "", 0)});
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  const int a = *tree.find_leaf("a");
  const int q = *tree.find_leaf("q");
  usage.add(usage.account(q, "u"), compute(8));
  EXPECT_TRUE(rule.allows(usage, {a, compute(6)}, {q, compute(8)}, ReclaimLoss::kWholeJob));
  EXPECT_FALSE(rule.allows(usage, {a, compute(6), true}, {q, compute(8)}, ReclaimLoss::kWholeJob));
  EXPECT_TRUE(rule.allows(usage, {a, compute(2), true}, {q, compute(8)}, ReclaimLoss::kWholeJob));
}

TEST(ReclaimRule, TakesBackOnlyWhatIsBorrowedAndOnlyUpToTheGuarantee) {
  const QuotaTree tree =
      *QuotaTree::create({guaranteed_queue("a", "", 4), guaranteed_queue("b", "", 4)});
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  const int b = usage.account(1, "u");
  usage.add(b, compute(6));
  EXPECT_TRUE(rule.allows(usage, {0, compute(4)}, {1, compute(2)}, ReclaimLoss::kSurplus));
  EXPECT_FALSE(rule.allows(usage, {0, compute(5)}, {1, compute(2)},
                           ReclaimLoss::kSurplus));  // above its guarantee
  EXPECT_FALSE(rule.allows(usage, {0, compute(4)}, {1, compute(3)},
                           ReclaimLoss::kSurplus));  // b would be below its own
  EXPECT_FALSE(rule.allows(usage, {1, compute(1)}, {1, compute(2)},
                           ReclaimLoss::kSurplus));  // its own queue
  usage.remove(b, compute(2));
  EXPECT_FALSE(rule.allows(usage, {0, compute(1)}, {1, compute(1)},
                           ReclaimLoss::kSurplus));  // b borrows nothing now
}

TEST(ReclaimRule, ALeafWithoutAGuaranteeTakesBackWhatItsParentIsGuaranteed) {
  const QuotaTree tree =
      *QuotaTree::create({guaranteed_queue("p", "", 4), guaranteed_queue("q", "", 0),
                          guaranteed_queue("a", "p", 0), guaranteed_queue("b", "q", 0)});
  const ReclaimRule rule(tree);
  QuotaUsage usage(tree);
  const int a = *tree.find_leaf("a");
  const int b = *tree.find_leaf("b");
  usage.add(usage.account(b, "u"), compute(8));
  EXPECT_TRUE(rule.allows(usage, {a, compute(4)}, {b, compute(8)}, ReclaimLoss::kSurplus));
  EXPECT_FALSE(rule.allows(usage, {a, compute(5)}, {b, compute(8)}, ReclaimLoss::kSurplus));
  EXPECT_FALSE(rule.allows(usage, {b, compute(1)}, {a, compute(1)}, ReclaimLoss::kSurplus));
}

TEST(QueueOrder, ServesQueuesBelowTheirGuaranteeFirstAndThenTheLeastShare) {
  const QuotaTree tree = *QuotaTree::create(
      {guaranteed_queue("c", "", 0), guaranteed_queue("b", "", 0), guaranteed_queue("a", "", 4)});
  const ResourceAmounts capacity = compute(16);
  const FairShares shares = fair_shares(tree, {compute(16), compute(16), compute(16)}, capacity);
  QuotaUsage usage(tree);
  QueueOrder order(tree, shares, usage, capacity, {0, 1, 2});
  std::string served;
  for (int job = 0; job < 10; ++job) {
    const int leaf = order.next();
    served += tree.queue(leaf).name;
    usage.add(usage.account(leaf, "u"), compute(1));
  }
  // Fair shares are 8, 4 and 4: a leads until it has 4; then b and c come up to half of theirs.
  EXPECT_EQ(served, "aaaabcbcab");
  order.remove_next();
  EXPECT_NE(order.next(), -1);
}

}  // namespace
}  // namespace regatta::sched
