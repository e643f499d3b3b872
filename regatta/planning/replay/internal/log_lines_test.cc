#include "regatta/planning/replay/internal/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::replay {
namespace {

using testing::ElementsAre;

TEST(LogLines, EndAtLineFeedsAndAtTheReturnsOfAProgressBar) {
  EXPECT_THAT(log_lines("a\rb\nc"), ElementsAre("a", "b", "c"));
}

TEST(LogLines, HaveNoColors) {
  EXPECT_THAT(log_lines("\033[31mstep:  1 \033[38;5;208mx\033[0m"), ElementsAre("step:  1 x"));
  EXPECT_THAT(log_lines("a\033"), ElementsAre("a"));
}

TEST(NumberAfter, ReadsThousandsAndExponents) {
  EXPECT_EQ(number_after("tps: 6,922  tflops: 1", "tps:"), 6922);
  EXPECT_EQ(number_after("(ms): 41236.4 | rate", "(ms):"), 41236.4);
  EXPECT_EQ(number_after("timing in s=3.13]", "in s="), 3.13);
  EXPECT_EQ(number_after("lr: 1e-3", "lr:"), 1e-3);
}

TEST(NumberAfter, FindsNoneInOtherText) {
  EXPECT_FALSE(number_after("tps: none", "tps:"));
  EXPECT_FALSE(number_after("tps:", "tps:"));
  EXPECT_FALSE(number_after("loss: nan", "loss:"));
  EXPECT_FALSE(number_after("a", "tps:"));
}

TEST(SettingIn, ReadsArgumentsAsMegatronPrintsThem) {
  const auto setting = setting_in("[default0]:  micro_batch_size ...................... 4");
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->first, "micro_batch_size");
  EXPECT_EQ(setting->second, "4");
}

TEST(SettingIn, ReadsLongKeysOfDeepSpeed) {
  const auto setting =
      setting_in("[2026-02-02] [INFO] [config.py:1003:print]   train_micro_batch_size_per_gpu  4");
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->first, "train_micro_batch_size_per_gpu");
  EXPECT_EQ(setting->second, "4");
}

TEST(SettingIn, ReadsYamlAndJsonBehindALabel) {
  for (const char* const line : {"0:   precision: 'bf16-mixed'", "      precision: bf16-mixed"}) {
    const auto yaml = setting_in(line);
    ASSERT_TRUE(yaml);
    EXPECT_EQ(yaml->first, "precision");
    EXPECT_EQ(yaml->second, "bf16-mixed");
  }
  const auto json = setting_in("    \"train_batch_size\": 64, ");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->first, "train_batch_size");
  EXPECT_EQ(json->second, "64");
}

TEST(SettingIn, FindsNoneInOtherText) {
  EXPECT_FALSE(setting_in("using torch.bfloat16 for parameters ..."));
  EXPECT_FALSE(setting_in(""));
  EXPECT_FALSE(setting_in(": "));
}

}  // namespace
}  // namespace regatta::replay
