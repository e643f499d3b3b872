#include "regatta/planning/plan/gpu_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::plan {
namespace {

using testing::HasSubstr;

Comparable plan(const char* name, double matmul, double dp, double tp) {
  return {
      .name = name,
      .parts = {{"matmul", Seconds{matmul}}, {"dp_comm", Seconds{dp}}, {"tp_comm", Seconds{tp}}},
      .memory = 1e9};
}

TEST(Difference, NamesWhatTheFasterPlanSavesAndWhatItPays) {
  const PlanDifference is = difference(plan("A", 5, 1, 2), plan("B", 5, 4, 1));
  ASSERT_EQ(is.parts.size(), 2U);
  EXPECT_EQ(is.parts[0].part, "dp_comm");
  EXPECT_EQ(is.sentence,
            "A takes 20.0 % less time than B: it saves dp_comm 3 s, and pays tp_comm 1 s");
  EXPECT_THAT(difference(plan("A", 5, 4, 1), plan("B", 5, 1, 2)).sentence,
              HasSubstr("B takes 20.0 % less time than A: it saves dp_comm 3 s"));
}

TEST(Difference, OfAPlanFromItselfIsNothing) {
  const PlanDifference is = difference(plan("A", 5, 1, 2), plan("B", 5, 1, 2));
  EXPECT_TRUE(is.parts.empty());
  EXPECT_EQ(is.sentence, "A and B are as fast");
}

TEST(Difference, KnowsPartsThatOneOfThemLacks) {
  Comparable a = plan("A", 5, 1, 2);
  a.parts.push_back({"bubble", Seconds{1}});
  const PlanDifference is = difference(a, plan("B", 5, 1, 2));
  ASSERT_EQ(is.parts.size(), 1U);
  EXPECT_EQ(is.parts[0].part, "bubble");
  EXPECT_EQ(is.parts[0].b.value, 0);
}

}  // namespace
}  // namespace regatta::plan
