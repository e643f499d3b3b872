#include "regatta/runtime/bench/timing.h"

#include <gtest/gtest.h>

#include "regatta/model/cost/collective.h"
#include "regatta/runtime/bench/internal/batches.h"

namespace regatta::bench {
namespace {

TEST(Timing, GivesTheMiddleBatch) {
  const Timing timing{{3e-6, 1e-6, 2e-6}, 0};
  EXPECT_EQ(timing.median(), Seconds{2e-6});
  EXPECT_EQ(timing.least(), Seconds{1e-6});
  EXPECT_EQ(timing.largest(), Seconds{3e-6});
}

TEST(Append, KeepsTheBatchesAndErrorsOfAllRounds) {
  Contender all{"x", {{{1.0}, 0}, {{2.0}, 1}}};
  append(all, {"x", {{{3.0}, 0}, {{4.0}, 2}}});
  EXPECT_EQ(all.timings[0].batches_s, (std::vector<double>{1.0, 3.0}));
  EXPECT_EQ(all.timings[1].batches_s, (std::vector<double>{2.0, 4.0}));
  EXPECT_EQ(all.timings[1].wrong, 3);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::kBroadcast, 4), 1);
  for (const int ranks : {1, 2, 3, 8, 1000})
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveOp::kAllGather, ranks), cost::pass_share(ranks));
}

TEST(TimeBatches, CountsTheSlowestRank) {
  const auto yes = [] { return true; };
  const auto times = time_batches(4, yes, yes, [](double seconds) { return seconds + 1; });
  ASSERT_EQ(times.size(), 4U);
  EXPECT_GT(times[0], 1);
}

TEST(TimeBatches, EndsWithTheFirstCallThatFails) {
  int calls = 0;
  const auto fails = [&] { return ++calls < 10; };
  EXPECT_TRUE(time_batches(
                  4, fails, [] { return true; }, [](double s) { return s; })
                  .empty());
  EXPECT_EQ(calls, 10);
}

TEST(CountWrong, FindsEveryChangedElement) {
  const CollectiveShape shape = collective_shape(CollectiveOp::kAllToAll, 64, 2, 1);
  EXPECT_EQ(shape.count, 8U);
  std::vector<float> out(shape.out_count());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = expected(shape, i);
  EXPECT_EQ(count_wrong(shape, out.data()), 0);
  out[3] += 1;
  out[15] = -1;
  EXPECT_EQ(count_wrong(shape, out.data()), 2);
}

}  // namespace
}  // namespace regatta::bench
