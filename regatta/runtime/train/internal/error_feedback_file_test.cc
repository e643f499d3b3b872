#include "regatta/runtime/train/internal/error_feedback_file.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/file.h"
#include "regatta/runtime/train/internal/checkpoint.h"
#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

using Buckets = std::vector<comm::compress::ErrorFeedback>;

Buckets buckets_of(int dp) {
  const auto x = static_cast<float>(dp + 1);
  return {{.residual = {x, 2 * x}, .factor = {7}, .calls = 5}, {.residual = {10 * x}}};
}

class ErrorFeedbackFile : public testing::Test {
 protected:
  void SetUp() override {
    for (int dp = 0; dp < 4; ++dp)
      ASSERT_TRUE(save_error_feedback(folder_.path(), 3, {.tp = 1, .dp = dp}, buckets_of(dp)));
  }
  Result<Buckets> load(int dp, int replicas, std::size_t buckets = 2) const {
    Buckets into(buckets);
    const Status loaded =
        load_error_feedback(folder_.path(), 3, {{.tp = 1, .dp = dp}, replicas, 4}, into);
    if (!loaded) return loaded.error();
    return into;
  }
  std::string path(int dp) const {
    return step_folder(folder_.path(), 3) + "/pp0-tp1-dp" + std::to_string(dp) + ".feedback";
  }

  os::TempFolder folder_ = test::test_folder();
};

TEST_F(ErrorFeedbackFile, GivesEveryReplicaItsOwn) {
  for (int dp = 0; dp < 4; ++dp) {
    const auto loaded = load(dp, 4);
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto expected = buckets_of(dp);
      EXPECT_EQ((*loaded)[i].residual, expected[i].residual);
      EXPECT_EQ((*loaded)[i].factor, expected[i].factor);
      EXPECT_EQ((*loaded)[i].calls, expected[i].calls);
    }
  }
}

// The sum over the replicas, which is what the next gradient gets, is the same.
TEST_F(ErrorFeedbackFile, LosesNothingWhenTheNumberOfReplicasChanges) {
  for (const int replicas : {1, 2, 3, 6}) {
    std::vector<float> sum(3);
    for (int dp = 0; dp < replicas; ++dp) {
      const auto loaded = load(dp, replicas);
      ASSERT_TRUE(loaded);
      EXPECT_EQ((*loaded)[0].factor, std::vector<float>{7});
      EXPECT_EQ((*loaded)[0].calls, 5U);
      for (std::size_t i = 0; i < (*loaded)[0].residual.size(); ++i)
        sum[i] += (*loaded)[0].residual[i];
      for (const float x : (*loaded)[1].residual)
        sum[2] += x;
    }
    EXPECT_EQ(sum, (std::vector<float>{10, 20, 100})) << replicas << " replicas";
  }
}

TEST_F(ErrorFeedbackFile, IsNotMissedWhereNoneWasSaved) {
  Buckets into(2);
  EXPECT_TRUE(load_error_feedback(folder_.path(), 4, {{}, 2, 0}, into));
  EXPECT_TRUE(into[0].residual.empty());
  EXPECT_THAT(load_error_feedback(folder_.path(), 4, {{}, 2, 2}, into).error().message,
              testing::HasSubstr("missing or unreadable"));
}

TEST_F(ErrorFeedbackFile, RefusesAnotherJobsAndBrokenOnes) {
  EXPECT_THAT(load(0, 4, 3).error().message,
              testing::HasSubstr("2 buckets instead of 3: it is of another job"));
  std::string text = os::read_file(path(2)).value();
  ASSERT_TRUE(os::write_file(path(2), text.substr(0, text.size() - 3)));
  EXPECT_THAT(load(2, 4).error().message,
              testing::AllOf(testing::HasSubstr(path(2)), testing::HasSubstr("truncated")));
  text[60] = static_cast<char>(text[60] ^ 1);
  ASSERT_TRUE(os::write_file(path(2), text));
  EXPECT_THAT(load(2, 4).error().message, testing::HasSubstr("changed since it was written"));
  ASSERT_TRUE(os::write_file(path(2), "something"));
  EXPECT_THAT(load(2, 4).error().message, testing::HasSubstr("it holds no feedback"));
}

}  // namespace
}  // namespace regatta::train
