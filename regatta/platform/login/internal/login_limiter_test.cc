#include "regatta/platform/login/internal/login_limiter.h"

#include <string>

#include <gmock/gmock.h>

namespace regatta::login {
namespace {

TEST(LoginLimiter, LetsAFewMistakesPassAndThenWaitsLongerEachTime) {
  LoginLimiter limiter({.free = 3, .pause = Seconds{1}, .pause_max = Seconds{5}});
  Seconds now{100};
  for (int i = 0; i < 2; ++i)
    limiter.count_try("ada", now);
  EXPECT_EQ(limiter.wait("ada", now), Seconds{0});
  for (const double pause : {1.0, 2.0, 4.0, 5.0, 5.0}) {
    limiter.count_try("ada", now);
    EXPECT_EQ(limiter.wait("ada", now).value, pause);
    EXPECT_EQ(limiter.wait("eve", now), Seconds{0});
    now = now + Seconds{pause};
    EXPECT_EQ(limiter.wait("ada", now), Seconds{0});
  }
}

TEST(LoginLimiter, ForgetsFailuresAfterASuccessOrALongTime) {
  LoginLimiter limiter({.free = 1, .pause = Seconds{60}, .pause_max = Seconds{60}});
  limiter.count_try("ada", Seconds{0});
  EXPECT_GT(limiter.wait("ada", Seconds{0}).value, 0);
  limiter.succeed("ada");
  EXPECT_EQ(limiter.wait("ada", Seconds{0}), Seconds{0});
  LoginLimiter slow({.free = 2, .forget_after = Seconds{900}});
  slow.count_try("ada", Seconds{0});
  slow.count_try("ada", Seconds{901});
  EXPECT_EQ(slow.wait("ada", Seconds{901}), Seconds{0});
}

TEST(LoginLimiter, HoldsABoundedNumberOfKeys) {
  LoginLimiter limiter({.free = 1, .keys_max = 10});
  for (int i = 0; i < 1000; ++i)
    limiter.count_try(std::to_string(i), Seconds{0});
  EXPECT_LE(limiter.size(), 10U);
}

}  // namespace
}  // namespace regatta::login
