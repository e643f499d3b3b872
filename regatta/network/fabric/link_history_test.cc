#include <gtest/gtest.h>

#include "regatta/network/fabric/flow_simulation.h"

namespace regatta::fabric {
namespace {

TEST(LinkHistory, DividesWhatCrossesOverTheBinsThatItCrosses) {
  LinkHistory history(2, 4, 1);
  history.add(1, 10, 0.5, 2.25);
  EXPECT_EQ(history.used(), 3U);
  EXPECT_DOUBLE_EQ(history.bytes(1, 0), 5);
  EXPECT_DOUBLE_EQ(history.bytes(1, 1), 10);
  EXPECT_DOUBLE_EQ(history.bytes(1, 2), 2.5);
  EXPECT_DOUBLE_EQ(history.bytes(0, 0), 0);
}

TEST(LinkHistory, MakesTwoBinsOneWhereTimeGoesOnAndLosesNothing) {
  LinkHistory history(1, 4, 1);
  history.add(0, 10, 0, 4);
  history.add(0, 2, 4, 16);
  EXPECT_DOUBLE_EQ(history.width(), 4);
  EXPECT_EQ(history.used(), 4U);
  EXPECT_DOUBLE_EQ(history.bytes(0, 0), 40);
  EXPECT_DOUBLE_EQ(history.bytes(0, 3), 8);
}

TEST(LinkHistory, MultipliesAllBytes) {
  LinkHistory history(2, 4, 1);
  history.add(0, 10, 0, 2);
  history.add(1, 3, 1, 2);
  const std::size_t used = history.used();
  history.multiply(2.5);
  EXPECT_DOUBLE_EQ(history.bytes(0, 0), 25);
  EXPECT_DOUBLE_EQ(history.bytes(1, 1), 7.5);
  EXPECT_EQ(history.used(), used);
}

TEST(LinkHistory, LeavesOutWhatTakesNoTime) {
  LinkHistory history(1, 2, 1);
  history.add(0, 10, 1, 1);
  EXPECT_EQ(history.used(), 0U);
}

}  // namespace
}  // namespace regatta::fabric
