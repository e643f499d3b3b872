#include <gmock/gmock.h>

#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric {
namespace {

TEST(QueueHistory, KeepsTheMostOfEachBin) {
  QueueHistory history(2, 4, 1);
  history.add(1, 100, 0.5, 1);
  history.add(1, 300, 1.5, 2.5);
  history.add(1, 200, 2, 3);
  EXPECT_EQ(history.used(), 3U);
  EXPECT_EQ(history.bytes(1, 0), 100);
  EXPECT_EQ(history.bytes(1, 1), 300);
  EXPECT_EQ(history.bytes(1, 2), 300);
  EXPECT_EQ(history.bytes(0, 1), 0);
}

TEST(QueueHistory, MakesOneBinOfTwoAsTimeGoesOn) {
  QueueHistory history(1, 4, 1);
  history.add(0, 100, 0, 1);
  history.add(0, 300, 1, 2);
  history.add(0, 200, 8, 9);
  EXPECT_EQ(history.width(), 4);
  EXPECT_EQ(history.used(), 3U);
  EXPECT_EQ(history.bytes(0, 0), 300);
  EXPECT_EQ(history.bytes(0, 1), 0);
  EXPECT_EQ(history.bytes(0, 2), 200);
}

}  // namespace
}  // namespace regatta::fabric
