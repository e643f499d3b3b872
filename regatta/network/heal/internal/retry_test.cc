#include "regatta/network/heal/internal/retry.h"

#include <gtest/gtest.h>

namespace regatta::heal {
namespace {

TEST(Retry, IsDueAfterPausesThatDoubleUpToFiveSeconds) {
  Retry retry;
  EXPECT_FALSE(retry.due());
  EXPECT_FALSE(retry.begin(Seconds{0}));
  double now = 10;
  for (const double pause : {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0}) {
    retry.fail("x", Seconds{now});
    ASSERT_TRUE(retry.due());
    EXPECT_NEAR(retry.due()->value, now + pause, 1e-9);
    EXPECT_FALSE(retry.begin(Seconds{now}));
    now = retry.due()->value;
    EXPECT_TRUE(retry.begin(Seconds{now}));
  }
  EXPECT_TRUE(retry.end());
  retry.fail("x", Seconds{now});
  EXPECT_NEAR(retry.due()->value, now + 0.1, 1e-9);
}

TEST(Retry, TellsAFailureOnceUntilItIsAnotherOneOrOver) {
  Retry retry;
  EXPECT_TRUE(retry.fail("x", Seconds{0}));
  EXPECT_FALSE(retry.fail("x", Seconds{0})) << "in the same try";
  EXPECT_TRUE(retry.fail("y", Seconds{0}));
  ASSERT_TRUE(retry.begin(Seconds{1}));
  EXPECT_FALSE(retry.fail("x", Seconds{1}));
  EXPECT_FALSE(retry.end()) << "it fails still";
  ASSERT_TRUE(retry.begin(Seconds{2}));
  EXPECT_TRUE(retry.fail("y", Seconds{2})) << "another one than before";
  ASSERT_TRUE(retry.begin(Seconds{3}));
  const auto success = retry.end();
  ASSERT_TRUE(success);
  EXPECT_EQ(success->failure, "y");
  EXPECT_EQ(success->tries, 4);
  EXPECT_FALSE(retry.end());
  EXPECT_TRUE(retry.fail("y", Seconds{4}));
}

}  // namespace
}  // namespace regatta::heal
