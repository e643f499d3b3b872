#include "regatta/replay/published.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/cost/stack.h"

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
  const Published& run = runs->at(1);
  EXPECT_EQ(run.model.hidden, 8192);
  EXPECT_EQ(run.strategy.tp * run.strategy.pp * run.strategy.dp, 512);
  EXPECT_EQ(run.global_batch, 1536);
  EXPECT_NEAR(run.measured, 15.0019, 1e-9);
  EXPECT_TRUE(runs->at(0).is_calibration);
  EXPECT_FALSE(run.is_calibration);
  EXPECT_NE(cost::find_stack(run.stack), nullptr);
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
              HasSubstr("row 1: \"tp\" is not what it should be"));
}

}  // namespace
}  // namespace regatta::replay
