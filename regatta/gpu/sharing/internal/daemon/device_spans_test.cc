#include "regatta/gpu/sharing/internal/daemon/device_spans.h"

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

TEST(DeviceSpans, ChargeNoTimeTwice) {
  DeviceSpans spans;
  EXPECT_EQ(spans.charge(100, 200), 100U);
  EXPECT_EQ(spans.charge(150, 250), 50U);
  EXPECT_EQ(spans.charge(110, 180), 0U);
  EXPECT_EQ(spans.charge(300, 300), 0U);
}

TEST(DeviceSpans, CountASpanOnceWhereTwoBeforeItOverlap) {
  DeviceSpans spans;
  spans.charge(100, 200);
  spans.charge(150, 250);
  EXPECT_EQ(spans.uncharged(100, 260), 10U);
  EXPECT_EQ(spans.uncharged(50, 400), 200U);
  EXPECT_EQ(spans.uncharged(120, 240), 0U);
}

// One that began long before: the next one's short turns are not its own, the rest is.
TEST(DeviceSpans, ChargeALongSpanForAllButWhatOthersHadInIt) {
  DeviceSpans spans;
  EXPECT_EQ(spans.charge(1000, 1006), 6U);
  EXPECT_EQ(spans.charge(1020, 1026), 6U);
  EXPECT_EQ(spans.charge(0, 1500), 1488U);
}

}  // namespace
}  // namespace regatta::sharing
