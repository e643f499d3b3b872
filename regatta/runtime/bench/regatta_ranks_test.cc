#include "regatta/runtime/bench/regatta_ranks.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/comm/tuner.h"

namespace regatta::bench {
namespace {

using testing::HasSubstr;

class RegattaRanks : public testing::TestWithParam<CollectiveOp> {};

INSTANTIATE_TEST_SUITE_P(Ops, RegattaRanks, testing::ValuesIn(kCollectiveOps),
                         [](const auto& op) { return to_string(op.param); });

TEST_P(RegattaRanks, GiveRightResultsWithPrivateAndSharedBuffers) {
  const BenchTask task{.op = GetParam(), .sizes = {1024, 3000001}, .ranks = 3, .batches = 2};
  const auto run = run_regatta_ranks(task, {});
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->contenders.size(), 2U);
  EXPECT_FALSE(run->choices.empty());
  for (const Contender& contender : run->contenders) {
    ASSERT_EQ(contender.timings.size(), 2U);
    for (const Timing& timing : contender.timings) {
      EXPECT_EQ(timing.wrong, 0) << contender.name;
      ASSERT_EQ(timing.batches_s.size(), 2U);
      EXPECT_GT(timing.least().value, 0);
    }
  }
}

TEST(RegattaRanksChoices, TellPrivateFromSharedBuffers) {
  const auto run = run_regatta_ranks({.sizes = {1 << 20}, .ranks = 2, .batches = 1}, {});
  ASSERT_TRUE(run) << run.error().message;
  std::vector<std::string> buffers;
  for (const comm::TuningChoice& choice : run->choices)
    if (choice.kind == comm::CallKind::kAllReduce && choice.bytes_from == 1 << 20)
      buffers.push_back(buffers_of(choice));
  EXPECT_THAT(buffers, testing::UnorderedElementsAre("private", "shared"));
  EXPECT_THAT(format_tuning(run->choices), HasSubstr("\"buffers\": \"shared\""));
}

TEST(RegattaRanksWithCompression, TimeCompressedCallsBesidePlainOnes) {
  BenchTask task{.sizes = {400000}, .ranks = 2, .batches = 2};
  task.settings.compression = comm::compress::CompressionKind::kInt8;
  const auto run = run_regatta_ranks(task, {});
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->contenders.size(), 3U);
  EXPECT_EQ(run->contenders[2].name, "int8");
  const Timing& timing = run->contenders[2].timings[0];
  EXPECT_EQ(timing.batches_s.size(), 2U);
  EXPECT_EQ(timing.kind, "int8");
  ASSERT_TRUE(timing.error);
  EXPECT_GT(*timing.error, 1e-4);
  EXPECT_LT(*timing.error, 0.01);
  EXPECT_FALSE(run->contenders[0].timings[0].error);
}

// In a lab that gives a rank to each of these servers, over links of 1 Gbit/s.
TestEnvironment lab_with(const std::vector<std::string>& servers) {
  TestEnvironment environment{.lab = lab::LabInfo{}};
  for (const std::string& server : servers)
    environment.places.push_back({.server = server, .link_rate = {125e6}});
  return environment;
}

TEST(AllReduceBounds, AreThoseOfTheServersForEachSize) {
  const BenchTask task{.sizes = {1'000'000, 4'000'000}, .ranks = 4};
  const auto four = all_reduce_bounds(task, lab_with({"s0", "s1", "s2", "s3"}));
  ASSERT_EQ(four.size(), 2U);
  EXPECT_NEAR(four[0].value, 1.5e6 / 125e6, 1e-12);
  EXPECT_NEAR(four[1].value, 6e6 / 125e6, 1e-12);
  // Ranks of a server share its link, in whatever order they come.
  const auto two = all_reduce_bounds(task, lab_with({"s0", "s1", "s0", "s1"}));
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NEAR(two[0].value, 1e6 / 125e6, 1e-12);
}

TEST(AllReduceBounds, AreNotKnownForOtherCallsOnOneServerAndWithoutALab) {
  const BenchTask task{.sizes = {1'000'000}, .ranks = 2};
  EXPECT_TRUE(all_reduce_bounds(task, lab_with({"s0", "s0"})).empty());
  TestEnvironment no_lab = lab_with({"s0", "s1"});
  no_lab.lab.reset();
  EXPECT_TRUE(all_reduce_bounds(task, no_lab).empty());
  const BenchTask broadcast{.op = CollectiveOp::kBroadcast, .sizes = {1'000'000}, .ranks = 2};
  EXPECT_TRUE(all_reduce_bounds(broadcast, lab_with({"s0", "s1"})).empty());
}

TEST(RegattaRanksLimits, RefuseWhatDoesNotFitIntoTheSharedControl) {
  const BenchTask good{.sizes = {1024}, .ranks = 2, .batches = 1};
  std::vector<BenchTask> wrong(6, good);
  wrong[0].ranks = 0;
  wrong[1].ranks = kRanksMax + 1;
  wrong[2].batches = 0;
  wrong[3].batches = kBatchesMax + 1;
  wrong[4].sizes.assign(kSizesMax + 1, 1024);
  wrong[5].settings.tuning.assign(kTuningMax, ' ');
  for (const BenchTask& task : wrong) {
    const auto run = run_regatta_ranks(task, {});
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().code, Code::kInvalidInput);
  }
  EXPECT_EQ(run_regatta_ranks(wrong[1], {}).error().message, "benchmark: ranks go from 1 to 64");
}

TEST(RegattaRanksLimits, RefuseSizesOfWhichARankHasNothing) {
  const BenchTask task{
      .op = CollectiveOp::kAllToAll, .sizes = {1024, 15}, .ranks = 4, .batches = 1};
  const auto run = run_regatta_ranks(task, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kInvalidInput);
  EXPECT_EQ(run.error().message,
            "benchmark: all_to_all of 15 bytes has no element for each of 4 ranks; take at least "
            "16 bytes");
}

// The text of a tuning file with one entry.
std::string tuning_with(const std::string& chunk_bytes, const std::string& connections) {
  return R"({"version": 1, "choices": [{"operation": "all_reduce", "bytes_from": 1024, "ranks": 2,
             "servers": 1, "chosen": 0, "calls": 9, "tried": [{"algorithm": "staged", "calls": 9,
             "predicted_s": 0, "observed_s": 0.001, "chunk_bytes": )" +
         chunk_bytes + ", \"connections\": " + connections + "}]}]}";
}

TEST(RegattaRanksLimits, RefuseATuningFileThatAsksForWhatNoFlagCan) {
  BenchTask task{.sizes = {1024}, .ranks = 2, .batches = 1};
  const auto error_with = [&](const std::string& chunk_bytes, const std::string& connections) {
    task.settings.tuning = tuning_with(chunk_bytes, connections);
    const auto run = run_regatta_ranks(task, {});
    return run ? "" : run.error().message;
  };
  EXPECT_EQ(error_with("0", "0"), "");
  EXPECT_EQ(error_with("4096", "64"), "");
  for (const char* chunk_bytes : {"7", "4095", "67108865", "9223372036854775807"})
    EXPECT_THAT(error_with(chunk_bytes, "0"),
                HasSubstr("choices[0].tried[0].chunk_bytes: neither 0 nor from 4096"));
  EXPECT_THAT(error_with("0", "65"),
              HasSubstr("choices[0].tried[0].connections: expected an integer from 0 to 64"));
}

}  // namespace
}  // namespace regatta::bench
