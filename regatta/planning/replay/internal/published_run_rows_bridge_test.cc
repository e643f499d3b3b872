#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/replay/internal/published_run.h"
#include "regatta/planning/replay/internal/test_tables.h"

namespace regatta::replay {
namespace {

using testing::HasSubstr;

constexpr const char* kSet = "megatron_bridge_part";
constexpr const char* kColumns =
    "release,kind,model,note,system,gpus,precision,gbs,mbs,seq,fsdp,tp,pp,cp,vp,ep,tokens_s_gpu,"
    "tflops_gpu\n";
constexpr const char* kQwen =
    "26.04,Pre-Training,Qwen3_30B_a3B,,DGX-H100,16,FP8-CS,1024,1,4096,,1,2,1,12,8,9000,207\n";

PublishedTable table_of(const std::string& rows) {
  const auto table = read_published_table(kSet, kColumns + rows);
  EXPECT_TRUE(table) << table.error().message;
  return table ? *table : PublishedTable{};
}

TEST(BridgeRow, IsARunOfThePlanner) {
  const PublishedTable table = table_of(kQwen);
  ASSERT_EQ(table.runs.size(), 1U);
  const PublishedRun& run = table.runs[0];
  EXPECT_EQ(run.model.preset, "qwen3-30b-a3b");
  EXPECT_EQ(run.model.seq, 4096);
  EXPECT_EQ(run.server.device.name, "h100-sxm");
  EXPECT_EQ(run.precision, workload::Precision::kFp8);
  EXPECT_EQ(run.strategy.dp, 8);
  EXPECT_EQ(run.strategy.ep, 8);
  EXPECT_EQ(run.strategy.virtual_stages, 12);
  EXPECT_NEAR(run.measured, 1024.0 * 4096 / (9000 * 16), 1e-9);
  EXPECT_EQ(run.stack, "megatron-bridge");
  EXPECT_TRUE(run.is_recompute_open);
}

TEST(BridgeRow, IsLaunchedAndRecomputedAsItsRecipeSays) {
  using workload::Recompute;
  const PublishedTable table = table_of(
      "26.08,Pre-Training,GPT OSS 120B,,DGX-GB200,64,MXFP8,1280,4,4096,,1,1,1,,64,28672,934\n"
      "26.04,Pre-Training,GPT OSS 120B,,DGX-B200,64,BF16,1280,4,4096,0,1,1,1,,8,13045,355\n"
      "26.06,Pre-Training,Kimi_K2,,DGX-GB300,256,MXFP8,4096,2,4096,,1,4,1,4,64,5372,1099\n"
      "26.06,Pre-Training,Nemotron_3_Super,,DGX-GB200,64,MXFP8,512,1,8192,,2,1,1,,64,6742,571\n"
      "26.04,Pre-Training,LLAMA3_70B,,DGX-GB200,64,NVFP4,256,1,8192,,2,4,1,5,,4898,2201\n");
  ASSERT_EQ(table.runs.size(), 5U);
  const auto expect = [&](std::size_t row, const char* stack, Recompute recompute) {
    EXPECT_EQ(table.runs[row].stack, stack) << table.runs[row].name;
    EXPECT_EQ(table.runs[row].strategy.recompute, recompute) << table.runs[row].name;
    EXPECT_FALSE(table.runs[row].is_recompute_open) << table.runs[row].name;
  };
  expect(0, "megatron-bridge-graphs", Recompute::kNone);
  expect(1, "megatron-bridge-alltoall", Recompute::kPointwise);
  expect(2, "megatron-bridge", Recompute::kPointwise);
  expect(3, "megatron-bridge", Recompute::kNone);
  expect(4, "megatron-bridge-dense", Recompute::kNone);
}

TEST(BridgeRow, IsHeldOutUnlessItsModelIsFitted) {
  EXPECT_TRUE(table_of(kQwen).runs.at(0).is_calibration);
  const PublishedTable dense = table_of(
      "26.04,Pre-Training,LLAMA3_70B,,DGX-H100,64,FP8,128,1,8192,,4,8,1,5,,1600,719\n"
      "26.04,Pre-Training,LLAMA3_8B,,DGX-H100,8,FP8,128,1,8192,1,1,1,1,,,14000,700\n");
  ASSERT_EQ(dense.runs.size(), 2U);
  EXPECT_FALSE(dense.runs[0].is_calibration);
  EXPECT_TRUE(dense.runs[0].strategy.sequence_parallel);
  EXPECT_EQ(dense.runs[1].strategy.zero, 3) << "its weights are sharded, too";
}

TEST(BridgeRow, CountsTheFastestReleaseOfAConfiguration) {
  std::string faster = kQwen;
  faster.replace(0, 5, "26.06").replace(faster.find(",9000,"), 6, ",9600,");
  std::string dropping = kQwen;
  dropping.replace(dropping.find(",,DGX"), 2, ",tokendrop,");
  const PublishedTable table = table_of(kQwen + faster + dropping);
  ASSERT_EQ(table.runs.size(), 2U);
  EXPECT_NEAR(table.runs[0].measured, 1024.0 * 4096 / (9600 * 16), 1e-9);
  EXPECT_EQ(table.runs[1].model.experts.capacity, 1);
  EXPECT_EQ(table.left_out.at("of slower releases of a configuration"), 1);
}

TEST(BridgeRow, IsNamedWhereThePlannerHasNoSuchThing) {
  const auto reason_of = [](const std::string& from, const std::string& to) {
    std::string row = kQwen;
    row.replace(row.find(from), from.size(), to);
    const PublishedTable table = table_of(row);
    EXPECT_TRUE(table.runs.empty());
    return table.left_out.empty() ? "" : table.left_out.begin()->first;
  };
  EXPECT_EQ(reason_of("DGX-H100", "DGX-X1"), "on DGX-X1 (no such server preset)");
  EXPECT_EQ(reason_of("Qwen3_30B_a3B", "Qwen9"), "of Qwen9 (no such model preset)");
  EXPECT_EQ(reason_of("FP8-CS", "FP2"), "in FP2 (no such precision)");
  EXPECT_EQ(reason_of("Pre-Training", "DPO"), "of DPO (no such training)");
}

TEST(BridgeRow, IsPlannedOnRacksAndInNarrowPrecisions) {
  const PublishedTable table = table_of(
      "26.08,Pre-Training,DeepSeekV3,,DGX-GB300,256,MXFP8,4096,1,4096,,1,2,1,8,32,6000,1600\n"
      "26.04,Pre-Training,LLAMA3_70B,,DGX-GB200,64,NVFP4,256,1,8192,,1,4,1,5,,4000,1900\n");
  ASSERT_EQ(table.runs.size(), 2U);
  EXPECT_EQ(table.runs[0].precision, workload::Precision::kMxfp8);
  EXPECT_EQ(table.runs[0].server.scale_up.servers, 18);
  EXPECT_EQ(table.runs[1].precision, workload::Precision::kNvfp4);
}

std::vector<int> layers_of(const std::string& row) {
  const PublishedTable table = table_of(row);
  return table.runs.empty() ? std::vector<int>{} : table.runs[0].strategy.stage_layers;
}

std::vector<int> runs_of(const std::vector<std::pair<int, int>>& counts) {
  std::vector<int> all;
  for (const auto& [count, layers] : counts)
    all.insert(all.end(), static_cast<std::size_t>(count), layers);
  return all;
}

// 126 layers on 16 stages of 8 parts.
TEST(BridgeRow, HasPartsForTheEmbeddingAndTheOutputWhereThereAreMoreThanLayers) {
  EXPECT_EQ(layers_of("26.06,Pre-Training,LLAMA3.1_405B,,DGX-GB200,256,NVFP4,1536,1,8192,,4,16,1,8,"
                      ",1000,2900\n"),
            runs_of({{1, 0}, {126, 1}, {1, 0}}));
}

TEST(BridgeRow, HasFewerLayersBesideTheModuleThatPredicts) {
  const std::string head = "26.06,Pre-Training,DeepSeekV3,,DGX-GB300,256,MXFP8,4096,1,4096,,";
  EXPECT_EQ(layers_of(head + "1,2,1,8,32,6000,1600\n"), runs_of({{15, 4}, {1, 1}}));
  EXPECT_EQ(layers_of(head + "1,8,1,,8,6000,1600\n"), runs_of({{7, 8}, {1, 5}}));
  EXPECT_EQ(layers_of(head + "1,8,1,4,8,6000,1600\n"), runs_of({{1, 1}, {30, 2}, {1, 0}}));
  EXPECT_EQ(layers_of("26.06,Pre-Training,Kimi_K2,,DGX-GB300,256,MXFP8,4096,2,4096,,1,4,1,4,64,"
                      "5000,1000\n"),
            runs_of({{15, 4}, {1, 1}}));
}

TEST(BridgeRow, HasTheModulesThatPredictUnlessItsNoteSaysNo) {
  const std::string numbers = "DGX-H100,1024,FP8-CS,8192,1,4096,0,1,8,1,4,64,1297,338\n";
  const PublishedTable table = table_of(
      "26.08,Pre-Training,Nemotron_3_Super,,DGX-GB200,64,MXFP8,512,1,8192,,2,1,1,,64,7040,600\n"
      "25.09,Pre-Training,DeepSeekV3,dropless," +
      numbers + "25.09,Pre-Training,DeepSeekV3,w/o MTP," + numbers);
  ASSERT_EQ(table.runs.size(), 3U);
  EXPECT_EQ(table.runs[0].model.mtp_layers, 2);
  EXPECT_EQ(table.runs[1].model.mtp_layers, 1);
  EXPECT_EQ(table.runs[2].model.mtp_layers, 0);
}

TEST(BridgeRow, OfFineTuningHasPackedSamplesAndAdapters) {
  const PublishedTable table = table_of(
      "26.06,SFT,LLAMA3_70B,,DGX-H100,32,FP8,32,1,4096,,2,4,1,20,,1600,719\n"
      "26.06,LoRA,LLAMA3_70B,,DGX-H100,8,FP8,32,1,4096,,2,4,1,20,,2600,735\n");
  ASSERT_EQ(table.runs.size(), 2U);
  EXPECT_FALSE(is_frozen(table.runs[0].model));
  EXPECT_EQ(table.runs[0].model.packed, 200);
  EXPECT_EQ(table.runs[1].model.packed, 200);
  EXPECT_EQ(table.runs[1].model.adapters, (workload::Adapters{.rank = 16, .qkv = true}));
}

TEST(BridgeRow, MustHaveItsNumbers) {
  std::string row = kQwen;
  row.replace(row.find(",16,FP8"), 3, ",x");
  const auto table = read_published_table(kSet, kColumns + row);
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("row 1: gpus 'x' is not a whole number from 1"));
}

TEST(BridgeTable, IsReadToItsLastRow) {
  const auto text = published_table_text(REGATTA_TESTDATA, kSet);
  if (!text) GTEST_SKIP() << "the published tables are not beside the project";
  const auto table = read_published_table(kSet, *text);
  ASSERT_TRUE(table) << table.error().message;
  const int left_out =
      std::accumulate(table->left_out.begin(), table->left_out.end(), 0,
                      [](int sum, const auto& reason) { return sum + reason.second; });
  EXPECT_EQ(static_cast<int>(table->runs.size()) + left_out, 126);
  EXPECT_GE(table->runs.size(), 7U);
}

}  // namespace
}  // namespace regatta::replay
