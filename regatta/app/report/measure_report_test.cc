#include "regatta/app/report/measure_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace regatta::report {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

BenchResult bench_result() {
  BenchResult result;
  result.task.sizes = {1 << 20};
  result.race = {{"private", {{.batches_s = {1e-3, 2e-3, 3e-3}}}},
                 {"shared", {{.batches_s = {1e-3}}}},
                 {"gloo", {{.batches_s = {4e-3}}}}};
  result.notes = {"more ranks than cores"};
  return result;
}

TEST(BenchText, HasARowForEachSizeInTheColumnsOfNcclTests) {
  const BenchResult result = bench_result();
  EXPECT_THAT(bench_heading(result), StartsWith("all_reduce of f32 between 2 processes; times: the "
                                                "slowest rank, median of 7 batches in each round"));
  EXPECT_THAT(bench_row(result, 0),
              StartsWith("     1048576       262144       2000.00     0.52     0.52      0 "));
  EXPECT_THAT(bench_summary(result), HasSubstr("algbw, busbw: GB/s\n"));
  EXPECT_THAT(bench_summary(result), HasSubstr("gloo         2.00x   4.00x\n"));
  EXPECT_THAT(bench_summary(result), EndsWith("\nnote: more ranks than cores\n"));
  EXPECT_EQ(bench_json(result)["sizes"][0]["gloo"]["wrong"], 0);
  EXPECT_EQ(bench_json(result)["notes"][0], "more ranks than cores");
}

TEST(RatesText, BeginsWithTheClusterAndTheSourceOfItsRates) {
  cost::Rates rates;
  rates.source = "measured on 8 devices";
  EXPECT_EQ(rates_text("lab-4x2", rates), "cluster lab-4x2: measured on 8 devices\n\n");
}

TEST(TuningText, NamesTheOnlyOption) {
  comm::TuningChoice choice{.kind = comm::CallKind::kBarrier,
                            .reason = comm::ChoiceReason::kOnlyOne,
                            .tried = {{}},
                            .calls = 3};
  const TuningReport report{
      .op = "barrier", .ranks = 4, .choices = {choice}, .notes = {"no chunks in it"}};
  EXPECT_THAT(tuning_text(report),
              StartsWith("barrier between 4 ranks; predicted and measured: times per call; * marks "
                         "the setting in use\n\nbarrier "));
  EXPECT_THAT(tuning_text(report), HasSubstr("\n  reason: only option; 3 calls\n"));
  EXPECT_THAT(tuning_text(report), EndsWith("\n\nnote: no chunks in it\n"));
  EXPECT_EQ(tuning_json(report)["notes"][0], "no chunks in it");
}

comm::RankView idle_rank(int rank, int world_size) {
  comm::RankView view{.pid = 100 + rank, .state = 'S', .job = "gpt", .rank = rank};
  for (int peer = 0; peer < world_size; ++peer)
    view.peers.push_back({.name = "rank " + std::to_string(peer)});
  view.groups = {{.id = comm::kWorldGroup, .rank = rank, .submitted = 4, .ended = 4}};
  return view;
}

TEST(InspectionText, BeginsWithAVerdictAndCountsIdleRanks) {
  Inspection found;
  for (int rank = 0; rank < 50; ++rank)
    found.ranks.push_back(idle_rank(rank, 50));
  EXPECT_EQ(inspection_text(found),
            "job gpt: 50 of 50 ranks\n"
            "no rank is stuck: no operation is under way\n\n"
            "50 idle communicators of ranks are not listed; --json shows them\n");
  found.ranks[7].verdict = "all_reduce: rank 3 has not called it";
  EXPECT_THAT(inspection_text(found),
              StartsWith("job gpt: 50 of 50 ranks\nall_reduce: rank 3 has not called it\n"));
  EXPECT_EQ(inspection_json(found)["verdicts"].size(), 1U);
}

TEST(InspectionText, ListsAFewIdleRanks) {
  Inspection found;
  found.ranks = {idle_rank(0, 2), idle_rank(1, 2)};
  EXPECT_THAT(inspection_text(found), HasSubstr("rank 1"));
  EXPECT_THAT(inspection_text(found), Not(HasSubstr("are not listed")));
}

TEST(InspectionText, SaysThatNoJobRuns) {
  EXPECT_EQ(inspection_text({}), "no rank of a regatta job runs on this machine\n");
}

TEST(InspectionText, SaysWhatHasEnded) {
  EXPECT_EQ(ended_process_text("4711"), "process 4711 has ended\n");
  EXPECT_EQ(ended_job_text("gpt"), "job gpt has ended\n");
}

}  // namespace
}  // namespace regatta::report
