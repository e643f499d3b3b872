#include "regatta/planning/replay/internal/published_run.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/presets.h"

namespace regatta::replay {
namespace {

using testing::HasSubstr;

constexpr const char* kVtrain =
    "params_b,gpus,gbs,mbs,hidden,heads,layers,seq,tp,dp,pp,iter_ms\n"
    "3.6,64,512,8,3072,32,30,2048,1,64,1,3566.5\n"
    "3.6,64,512,2,3072,32,30,2048,2,32,1,\n"
    "39.1,512,1536,2,8192,64,48,2048,8,8,8,15001.9\n";

TEST(ReadPublished, MakesARowWhatThePlannerTakes) {
  const auto runs = read_published("vtrain_multi_a100_part", kVtrain);
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 2U);  // one has no time
  const PublishedRun& run = runs->at(1);
  EXPECT_EQ(run.model.hidden, 8192);
  EXPECT_EQ(run.strategy.tp * run.strategy.pp * run.strategy.dp, 512);
  EXPECT_EQ(run.global_batch, 1536);
  EXPECT_NEAR(run.measured, 15.0019, 1e-9);
  EXPECT_TRUE(runs->at(0).is_calibration);
  EXPECT_FALSE(run.is_calibration);
  EXPECT_NE(cost::find_software_stack(run.stack), nullptr);
}

TEST(ReadPublished, NamesWhatIsWrong) {
  const auto error_of = [](const std::string& name, const std::string& text) {
    const auto runs = read_published(name, text);
    return runs ? "none" : runs.error().message;
  };
  EXPECT_THAT(error_of("mine", kVtrain), HasSubstr("mine: no set of published runs is called so"));
  std::string text = kVtrain;
  text.replace(text.find(",1,64,1,"), 8, ",x,64,1,");
  EXPECT_THAT(error_of("vtrain_multi_a100_part", text),
              HasSubstr("row 1: tp 'x' is not a whole number from 1; write it as published"));
}

constexpr const char* kOwn =
    "model,server,gpus,tp,pp,vp,mbs,gbs,precision,recompute,stack,step_s,tokens_s_gpu\n"
    "llama3-70b,dgx-h100,64,4,8,5,1,256,fp8,,nemo,,1621\n"
    "gpt3-175b,dgx-a100-80g,64,8,8,,1,64,fp16,full,megatron-lm-2022,18.13,\n";

TEST(ReadPublished, TakesRunsOfOnesOwnThatSayAllThemselves) {
  const auto runs = read_published("last-week", kOwn);
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 2U);
  const PublishedRun& llama = runs->at(0);
  EXPECT_EQ(llama.strategy.dp, 2);
  EXPECT_EQ(llama.strategy.schedule, workload::PipelineSchedule::kInterleaved);
  EXPECT_TRUE(llama.strategy.sequence_parallel);
  EXPECT_NEAR(llama.measured, 256 * 8192 / (1621.0 * 64), 1e-9);
  EXPECT_FALSE(llama.is_calibration);
  EXPECT_EQ(runs->at(1).strategy.recompute, workload::Recompute::kFull);
  EXPECT_EQ(runs->at(1).measured, 18.13);
}

TEST(ReadPublished, SaysWhatAColumnOfOnesOwnRunsMustHold) {
  const auto error_with = [](const std::string& from, const std::string& to) {
    std::string text = kOwn;
    text.replace(text.find(from), from.size(), to);
    const auto runs = read_published("last-week", text);
    return runs ? "none" : runs.error().message;
  };
  EXPECT_THAT(error_with("llama3-70b", "llama9"),
              HasSubstr("row 1: model 'llama9' is not the name of a model preset; correct it"));
  EXPECT_THAT(error_with("dgx-h100", "dgx"), HasSubstr("server 'dgx'"));
  EXPECT_THAT(error_with(",64,4,8,", ",60,4,8,"), HasSubstr("a multiple of tp x pp x cp"));
  EXPECT_THAT(error_with(",64,4,8,", ",64,65536,65536,"), HasSubstr("a multiple of tp x pp x cp"));
  EXPECT_THAT(error_with(",64,4,8,5,", ",64,4,8,7,"), HasSubstr("none"));
  std::string more = "zero,sp," + std::string(kOwn);
  more.replace(more.find("llama3"), 6, "4,,llama3");
  more.replace(more.find("gpt3"), 4, "0,maybe,gpt3");
  EXPECT_THAT(read_published("last-week", more).error().message, HasSubstr("from 0 to 3"));
  more.replace(more.find("4,,llama3"), 1, "3");
  EXPECT_THAT(read_published("last-week", more).error().message, HasSubstr("yes or no"));
  EXPECT_THAT(error_with("fp8", "int3"), HasSubstr("precision 'int3'"));
  EXPECT_THAT(error_with(",full,", ",some,"), HasSubstr("row 2: recompute 'some'"));
  EXPECT_THAT(error_with("nemo", "mine"), HasSubstr("stack 'mine'"));
  EXPECT_THAT(error_with("1621", ""), HasSubstr("tokens_s_gpu ''"));
  EXPECT_THAT(error_with("18.13,", "18.13,113"),
              HasSubstr("row 2: tokens_s_gpu '113' is not left empty beside step_s"));
}

TEST(ReadPublished, SaysWhichColumnOfOnesOwnRunsIsWrong) {
  const auto error_with = [](const std::string& from, const std::string& to) {
    std::string text = kOwn;
    text.replace(text.find(from), from.size(), to);
    const auto runs = read_published("mine", text);
    return runs ? "none" : runs.error().message;
  };
  EXPECT_EQ(error_with(",gpus,", ",gpu,"), "mine: no column is called 'gpu'; did you mean 'gpus'?");
  EXPECT_THAT(error_with(",vp,", ",what is this,"), HasSubstr("the columns are model, server,"));
  EXPECT_EQ(error_with(",vp,", ",pp,"), "mine:1: two columns are called 'pp'; rename one");
  EXPECT_EQ(error_with(",gpus,", ",seq,"), "mine: the column gpus is missing; add it");
  EXPECT_EQ(error_with("18.13,", "18.13"),
            "mine:3: 12 values where 13 columns are named, none for 'tokens_s_gpu'; write one for "
            "each");
  EXPECT_EQ(error_with("18.13,", "18.13,,9"),
            "mine:3: 14 values where 13 columns are named, none named for '9'; write one for each");
  EXPECT_EQ(read_published("mine", "").error().message,
            "mine: no line names the columns; give a table of measured runs");
}

TEST(ReadOwnRuns, TakesTheServerAndTheStackThatRowsLeaveOut) {
  const char* const kShort =
      "model,server,gpus,mbs,gbs,precision,step_s\n"
      "llama3-8b,,16,1,128,bf16,9\n"
      "llama3-8b,h200-8,16,1,128,bf16,8\n";
  topo::ServerType server = *topo::find_server_preset("dgx-h100");
  server.nic_count = 4;
  const auto runs = read_own_runs("mine", kShort, {.server = &server, .stack = "nemo"});
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(runs->at(0).server.nic_count, 4);
  EXPECT_EQ(runs->at(0).stack, "nemo");
  EXPECT_EQ(runs->at(1).server.device.name, "h200-sxm");
  EXPECT_EQ(read_own_runs("mine", kShort, {.server = &server}).error().message,
            "mine: the column stack is missing; add it");
  EXPECT_THAT(read_own_runs("mine", kShort, {.stack = "nemo"}).error().message,
              HasSubstr("row 1: server '' is not the name of a server preset"));
}

}  // namespace
}  // namespace regatta::replay
