#include "regatta/planning/replay/internal/determined_scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Determined, OneMeasurementDeterminesAtMostOneUnknown) {
  EXPECT_THAT(determined({{1, 0.9}}, 2, 0.5), ElementsAre(0));
  EXPECT_THAT(determined({{0.9, 1}}, 2, 0.5), ElementsAre(1));
}

TEST(Determined, TwoThatDifferDetermineTwo) {
  EXPECT_THAT(determined({{1, 0.1}, {0.1, 1}}, 2, 0.5), ElementsAre(0, 1));
}

TEST(Determined, AnyNumberOfEqualOnesCannotTellTwoUnknownsApart) {
  EXPECT_THAT(determined({{1, 1}, {1, 1}, {1, 1}, {1, 1}}, 2, 0.5), ElementsAre(0));
}

TEST(Determined, NothingIsSaidOfWhatNoMeasurementGrowsWith) {
  EXPECT_THAT(determined({{0, 0.1}, {0, 0.1}}, 2, 0.5), IsEmpty());
  EXPECT_THAT(determined({}, 3, 0.5), IsEmpty());
}

TEST(Determined, ManyWeakMeasurementsAddUp) {
  EXPECT_THAT(determined(std::vector<std::vector<double>>(30, {0.1}), 1, 0.5), ElementsAre(0));
}

}  // namespace
}  // namespace regatta::replay
