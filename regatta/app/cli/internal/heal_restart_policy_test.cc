#include "regatta/app/cli/internal/heal_restart_policy.h"

#include <gtest/gtest.h>

namespace regatta::cli {
namespace {

// Whether the state is forgotten after `count` ends, each `lived` after its start.
bool forgets_after(int count, double lived, double hung) {
  Seconds now{100};
  RestartPolicy policy(now);
  bool forgets = false;
  for (int i = 0; i < count; ++i) {
    now += Seconds{lived};
    forgets = policy.end(now, Seconds{hung});
    now += Seconds{5};
    policy.restart(now);
  }
  return forgets;
}

TEST(RestartPolicy, ForgetsTheStateAfterThreeEarlyEndsInARow) {
  EXPECT_FALSE(forgets_after(2, 0.5, 0));
  EXPECT_TRUE(forgets_after(3, 0.5, 0));
  EXPECT_TRUE(forgets_after(4, 0.5, 0));
  EXPECT_FALSE(forgets_after(9, 1.5, 0));
}

TEST(RestartPolicy, CallsAHangEarlyByWhenItBegan) {
  EXPECT_TRUE(forgets_after(3, 60.5, 60.1)) << "before its first beat";
  EXPECT_TRUE(forgets_after(3, 11.5, 2.1));
  EXPECT_FALSE(forgets_after(2, 60.5, 60.1));
  EXPECT_FALSE(forgets_after(9, 12.5, 2.1));
}

TEST(RestartPolicy, BeginsAgainAfterALateEnd) {
  RestartPolicy policy(Seconds{0});
  const auto ends_at = [&](double at) {
    const bool forgets = policy.end(Seconds{at}, {});
    policy.restart(Seconds{at});
    return forgets;
  };
  EXPECT_FALSE(ends_at(0.5));
  EXPECT_FALSE(ends_at(1));
  EXPECT_FALSE(ends_at(9));
  EXPECT_FALSE(ends_at(9.5));
  EXPECT_FALSE(ends_at(10));
  EXPECT_TRUE(ends_at(10.5));
}

// While no process can be started, the end of the last one is found again and again.
TEST(RestartPolicy, CountsAnEndOnceWhileStartsFail) {
  RestartPolicy policy(Seconds{0});
  for (int i = 0; i < 20; ++i)
    EXPECT_FALSE(policy.end(Seconds{0.5 + 0.01 * i}, {}));
  policy.restart(Seconds{20});
  EXPECT_FALSE(policy.end(Seconds{20.5}, {}));
  policy.restart(Seconds{21});
  EXPECT_TRUE(policy.end(Seconds{21.5}, {}));
  EXPECT_FALSE(policy.end(Seconds{21.6}, {})) << "it was told";
}

}  // namespace
}  // namespace regatta::cli
