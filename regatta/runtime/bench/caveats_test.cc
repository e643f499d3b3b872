#include "regatta/runtime/bench/caveats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::bench {
namespace {

using comm::Algorithm;
using comm::CallKind;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kKiB = 1024;

comm::TuningChoice chosen(std::size_t bytes_from, const comm::Setting& setting,
                          CallKind kind = CallKind::kAllReduce) {
  return {.kind = kind, .bytes_from = bytes_from, .tried = {{.setting = setting}}};
}

BenchTask task_with(const comm::Setting& forced) {
  BenchTask task{.sizes = {64 * kKiB}};
  task.settings.forced = forced;
  return task;
}

TEST(ChoicesOf, LeaveOutOtherSizesAndOperations) {
  const std::vector<comm::TuningChoice> all = {
      chosen(64 * kKiB, {}), chosen(32 * kKiB, {}), chosen(128 * kKiB, {}),
      chosen(64 * kKiB, {}, CallKind::kBroadcast), chosen(0, {.algorithm = Algorithm::kOneShot})};
  const auto large = choices_for_task(task_with({}), all);
  ASSERT_EQ(large.size(), 1U);
  EXPECT_EQ(large[0].bytes_from, 64 * kKiB);
  BenchTask small = task_with({});
  small.sizes = {4 * kKiB};
  ASSERT_EQ(choices_for_task(small, all).size(), 1U);
  EXPECT_EQ(choices_for_task(small, all)[0].bytes_from, 0U);
}

TEST(ChoicesOf, GrowInSize) {
  BenchTask task;
  task.sizes = {64 * kKiB, kKiB, 16 * kKiB};
  const auto choices =
      choices_for_task(task, {chosen(16 * kKiB, {}), chosen(64 * kKiB, {}),
                              chosen(16 * kKiB, {.algorithm = Algorithm::kInPlace}),
                              chosen(0, {.algorithm = Algorithm::kOneShot})});
  std::vector<std::size_t> sizes;
  for (const comm::TuningChoice& choice : choices)
    sizes.push_back(choice.bytes_from / kKiB);
  EXPECT_THAT(sizes, ElementsAre(0, 16, 16, 64));
}

TEST(DescribeUnusedSettings, NamesWhatRanInsteadOfAForcedAlgorithm) {
  const std::vector<comm::TuningChoice> choices = {
      chosen(64 * kKiB, {.algorithm = Algorithm::kStaged}),
      chosen(64 * kKiB, {.algorithm = Algorithm::kInPlace}),
      chosen(256 * kKiB, {.algorithm = Algorithm::kInPlace})};
  EXPECT_THAT(describe_unused_settings(task_with({.algorithm = Algorithm::kRing}), choices),
              ElementsAre("--algorithm ring was not used: staged and in-place ran"));
  EXPECT_THAT(describe_unused_settings(task_with({.algorithm = Algorithm::kStaged}), choices),
              ElementsAre("--algorithm staged was not used everywhere: in-place ran too"));
}

TEST(DescribeUnusedSettings, NamesConnectionsWhereThereIsNoNetwork) {
  EXPECT_THAT(describe_unused_settings(task_with({.connections = 4}), {chosen(64 * kKiB, {})}),
              ElementsAre("--connections 4 was not used: inside a server nothing goes over a "
                          "network"));
}

TEST(DescribeUnusedSettings, SaysNothingWhereAllWasUsedOrNothingForced) {
  const comm::Setting setting{.algorithm = Algorithm::kRing, .connections = 2};
  EXPECT_THAT(describe_unused_settings(task_with(setting), {chosen(64 * kKiB, setting)}),
              IsEmpty());
  EXPECT_THAT(describe_unused_settings(task_with({}), {chosen(64 * kKiB, setting)}), IsEmpty());
  EXPECT_THAT(describe_unused_settings(task_with(setting), {}), IsEmpty());
}

TEST(DescribeRounding, CountsSizesThatAreNoWholeParts) {
  EXPECT_THAT(
      describe_rounding({.op = CollectiveOp::kAllToAll, .sizes = {1024, 24, 4096}, .ranks = 3}),
      ElementsAre("sizes are rounded down to multiples of 12 bytes: 1024 to 1020, and 1 "
                  "more"));
  EXPECT_THAT(describe_rounding({.sizes = {10}, .ranks = 3}),
              ElementsAre("sizes are rounded down to multiples of 4 bytes: 10 to 8"));
  EXPECT_THAT(describe_rounding({.sizes = {1024, 8}, .ranks = 3}), IsEmpty());
}

TEST(DescribeOversubscription, WarnsOfMpichWithMoreRanksThanCores) {
  const BenchTask task{.ranks = 4};
  EXPECT_THAT(describe_oversubscription(task, {"openmpi", "mpich"}, 2),
              ElementsAre("mpich never gives a core away while it waits: 4 ranks on 2 cores are "
                          "no fair comparison"));
  EXPECT_THAT(describe_oversubscription(task, {"mpich"}, 4), IsEmpty());
  EXPECT_THAT(describe_oversubscription(task, {"openmpi", "gloo"}, 2), IsEmpty());
}

}  // namespace
}  // namespace regatta::bench
