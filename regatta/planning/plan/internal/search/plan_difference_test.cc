#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

using testing::HasSubstr;

ComparedPlan plan(const char* name, double matmul, double dp, double tp) {
  return {
      .name = name,
      .parts = {{"matmul", Seconds{matmul}}, {"dp_comm", Seconds{dp}}, {"tp_comm", Seconds{tp}}},
      .memory = 1e9};
}

TEST(ComparePlans, NamesWhatTheFasterPlanSavesAndWhatItPays) {
  const PlanDifference is = compare_plans(plan("A", 5, 1, 2), plan("B", 5, 4, 1));
  ASSERT_EQ(is.parts.size(), 2U);
  EXPECT_EQ(is.parts[0].part, "dp_comm");
  EXPECT_EQ(is.sentence,
            "A takes 20.0 % less time than B: it saves dp_comm 3 s, and pays tp_comm 1 s");
  EXPECT_THAT(compare_plans(plan("A", 5, 4, 1), plan("B", 5, 1, 2)).sentence,
              HasSubstr("B takes 20.0 % less time than A: it saves dp_comm 3 s"));
}

TEST(ComparePlans, OfAPlanFromItselfIsNothing) {
  const PlanDifference is = compare_plans(plan("A", 5, 1, 2), plan("B", 5, 1, 2));
  EXPECT_TRUE(is.parts.empty());
  EXPECT_EQ(is.sentence, "A and B are as fast");
}

TEST(ComparePlans, KnowsPartsThatOneOfThemLacks) {
  ComparedPlan a = plan("A", 5, 1, 2);
  a.parts.push_back({"bubble", Seconds{1}});
  const PlanDifference is = compare_plans(a, plan("B", 5, 1, 2));
  ASSERT_EQ(is.parts.size(), 1U);
  EXPECT_EQ(is.parts[0].part, "bubble");
  EXPECT_EQ(is.parts[0].b.value, 0);
}

}  // namespace
}  // namespace regatta::plan
