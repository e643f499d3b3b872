#include "regatta/planning/replay/internal/simplex_search.h"

#include <cmath>

#include <gtest/gtest.h>

namespace regatta::replay {
namespace {

TEST(LeastPoint, FindsTheBottomOfABentValley) {
  const auto valley = [](const Point& at) {
    return 100 * std::pow(at[1] - at[0] * at[0], 2) + std::pow(1 - at[0], 2);
  };
  const Point least = least_point(valley, {-1.2, 1});
  EXPECT_NEAR(least[0], 1, 1e-6);
  EXPECT_NEAR(least[1], 1, 1e-6);
}

TEST(LeastPoint, FindsACornerThatHasNoDerivative) {
  const auto corner = [](const Point& at) { return std::abs(at[0] - 0.3) + std::abs(at[1] + 2); };
  const Point least = least_point(corner, {0, 0}, {.tolerance = 1e-9});
  EXPECT_NEAR(least[0], 0.3, 1e-6);
  EXPECT_NEAR(least[1], -2, 1e-6);
}

TEST(LeastPoint, StopsEarlyWhereTheCornersAgree) {
  int calls = 0;
  const auto counted = [&](const Point& at) {
    ++calls;
    return std::pow(at[0] - 1, 2);
  };
  EXPECT_NEAR(least_point(counted, {0}, {.restarts = 1, .tolerance = 1e-6})[0], 1, 1e-2);
  EXPECT_LT(calls, 60);
}

TEST(LeastPoint, LeavesNothingFreeAsItIs) {
  const auto never = [](const Point&) { return 0.0; };
  EXPECT_TRUE(least_point(never, {}).empty());
}

}  // namespace
}  // namespace regatta::replay
