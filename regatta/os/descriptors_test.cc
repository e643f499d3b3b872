#include "regatta/os/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace regatta::os {
namespace {

rlimit current() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

class Descriptors : public testing::Test {
 protected:
  void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }
  const rlimit before_ = current();
};

TEST_F(Descriptors, RaiseTheSoftLimitNoFurtherThanNeeded) {
  if (before_.rlim_max < 400) GTEST_SKIP() << "the hard limit is too low";
  rlimit low = before_;
  low.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_TRUE(allow_descriptors(20));
  EXPECT_EQ(current().rlim_cur, 100U);
  ASSERT_TRUE(allow_descriptors(300));
  EXPECT_GE(current().rlim_cur, 300U);
  EXPECT_LT(current().rlim_cur, 400U);
}

TEST_F(Descriptors, NameTheHardLimitThatIsTooLow) {
  const auto status = allow_descriptors(before_.rlim_max);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kExhausted);
  EXPECT_THAT(status.error().message,
              testing::HasSubstr(" allowed; raise the hard limit (ulimit -Hn)"));
}

}  // namespace
}  // namespace regatta::os
